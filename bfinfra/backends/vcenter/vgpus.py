"""The vGPUs that hosts offer: profiles, and vendor device groups."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import unquote

from pyVmomi import vim

from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import Busy, Missing, Rejected, Unreachable
from bfinfra.model.records import dataclass

MANAGER = "configManager.assignableHardwareManager"
CARDS = "config.graphicsInfo"
OFFERED: Mapping[type[Any], Sequence[str]] = {
    vim.HostSystem: ["name", "parent", "config.sharedPassthruGpuTypes", CARDS, MANAGER],
    vim.ComputeResource: ["name"],
}


@dataclass(frozen=True, slots=True)
class HostOffer:
    """`profiles`: vGPU profiles that VMs can get now, () also if the host doesn't report them; `groups`:
    vendor device group → its devices in vSphere's JSON; `cards`: bytes of each GPU.
    """

    host: str
    cluster: str
    profiles: tuple[str, ...] = ()
    groups: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    cards: tuple[int, ...] = ()

    @property
    def profiles_of_groups(self) -> dict[str, tuple[str, ...]]:
        """Vendor device group → the profile of each of its vGPUs. Not of one with other devices beside them,
        such as network cards.
        """
        found = {
            name: tuple(str((each.get("backing") or {}).get("vgpu") or "") for each in devices)
            for name, devices in self.groups.items()
        }
        return {name: profiles for name, profiles in found.items() if profiles and all(profiles)}


class Vgpus:
    """The vGPUs that the hosts of one vCenter offer. Raises RemoteError."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def offered(self, *, groups: bool) -> tuple[HostOffer, ...]:
        """Every host, in one bulk read; with `groups` in one more call a host."""

        def read(content: vim.ServiceInstanceContent) -> tuple[HostOffer, ...]:
            rows = properties.below(content, content.rootFolder, OFFERED, properties.whole)
            clusters = {
                row.moid: unquote(row["name"] or "")
                for row in rows
                if isinstance(row.ref, vim.ComputeResource)
            }
            return tuple(
                HostOffer(
                    str(row["name"]),
                    clusters.get(refs.moid(row["parent"]), ""),
                    tuple(map(str, row["config.sharedPassthruGpuTypes"] or ())),
                    _groups(row[MANAGER]) if groups else {},
                    tuple(int(each.memorySizeInKB or 0) << 10 for each in row[CARDS] or ()),
                )
                for row in rows
                if isinstance(row.ref, vim.HostSystem)
            )

        return self._session.read(read)

    def components(self) -> Mapping[str, Sequence[dict[str, Any]]]:
        """The devices of each vendor device group that a host offers."""
        return {name: found for each in self.offered(groups=True) for name, found in each.groups.items()}


def _groups(manager: Any) -> dict[str, Sequence[dict[str, Any]]]:
    """The groups of a host; none of a host before 8.0.0.1, or one that doesn't answer."""
    with contextlib.suppress(Busy, Missing, Rejected, Unreachable):
        found = manager.RetrieveVendorDeviceGroupInfo() if manager is not None else None
        return {
            str(each.deviceGroupName): [_plain(part.device) for part in each.componentDeviceInfo or ()]
            for each in found or ()
        }
    return {}


def _plain(value: Any) -> Any:
    """A data object of pyVmomi in vSphere's JSON."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not hasattr(value, "_GetPropertyList"):
        return value
    names = (each.name for each in value._GetPropertyList())  # noqa: SLF001 - pyVmomi's public name
    held = {name: getattr(value, name) for name in names}
    return {
        "_typeName": type(value)._wsdlName,  # noqa: SLF001 - as above
        **{name: _plain(each) for name, each in held.items() if each is not None and each != []},
    }
