"""The vGPUs that hosts offer: profiles, and vendor device groups."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pyVmomi import vim, vmodl

from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import Busy, Missing, Rejected, Unreachable
from bfinfra.model.records import dataclass

Read = Mapping[type[Any], Sequence[str]]
"""Type → its properties."""
MANAGER = "configManager.assignableHardwareManager"
CARDS = "config.graphicsInfo"
DEVICES, PASSED = "hardware.pciDevice", "config.pciPassthruInfo"
NVIDIA = 0x10DE
Json = dict[str, Any]
Model = tuple[int, int]
"""PCI vendor and device."""
OFFERED: Read = {
    vim.HostSystem: ["name", "parent", "config.sharedPassthruGpuTypes", CARDS, MANAGER],
    vim.ComputeResource: ["name"],
}


@dataclass(frozen=True, slots=True)
class HostOffer:
    """`profiles`: vGPU profiles that VMs can get now, () also if the host doesn't report them; `groups`:
    vendor device group → its devices in vSphere's JSON; `cards`: bytes of each GPU; `models`: model (vendor,
    device) → how many cards of it are passed through, and how many there are; read for groups of more than
    vGPUs.
    """

    host: str
    cluster: str
    profiles: tuple[str, ...] = ()
    groups: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    cards: tuple[int, ...] = ()
    models: Mapping[Model, tuple[int, int]] = field(default_factory=dict)
    cluster_id: str = ""

    @property
    def profiles_of_groups(self) -> dict[str, tuple[str, ...]]:
        """Vendor device group → the profile of each of its vGPUs. Not of one with whole GPUs."""
        found = {
            name: tuple(str(each["vgpu"]) for each in _backings(devices) if each.get("vgpu"))
            for name, devices in self.groups.items()
            if not any(vendor == NVIDIA for each in _backings(devices) for vendor, _ in _models(each))
        }
        return {name: profiles for name, profiles in found.items() if profiles}

    def others_of_group(self, name: str) -> tuple[tuple[Model, ...], ...]:
        """The devices beside the vGPUs in a group, such as network cards: the models that each may be; () for
        a part of a card, of which hosts don't tell the number.
        """
        return tuple(_models(each) for each in _backings(self.groups.get(name, ())) if not each.get("vgpu"))


def _backings(devices: Iterable[Json]) -> list[Json]:
    return [each.get("backing") or {} for each in devices]


def _models(backing: Json) -> tuple[Model, ...]:
    """The models that vSphere may pick a whole card from."""
    allowed = backing.get("allowedDevice") or ()
    return tuple((each["vendorId"] & 0xFFFF, each["deviceId"] & 0xFFFF) for each in allowed)


class Vgpus:
    """The vGPUs that the hosts of one vCenter offer. Raises RemoteError."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def offered(self, *, groups: bool) -> tuple[HostOffer, ...]:
        """Every host, in one bulk read; with `groups` in one more call a host, and in a second bulk read if
        there is more in a group than vGPUs.
        """

        def read(content: vim.ServiceInstanceContent) -> tuple[HostOffer, ...]:
            rows = properties.below(content, content.rootFolder, OFFERED, properties.whole)
            clusters = {row.moid: row.name for row in rows if isinstance(row.ref, vim.ComputeResource)}
            found = tuple(
                HostOffer(
                    str(row["name"]),
                    clusters.get(refs.moid(row["parent"]), ""),
                    tuple(map(str, row["config.sharedPassthruGpuTypes"] or ())),
                    _groups(row[MANAGER]) if groups else {},
                    tuple(int(each.memorySizeInKB or 0) << 10 for each in row[CARDS] or ()),
                    cluster_id=refs.moid(row["parent"]),
                )
                for row in rows
                if isinstance(row.ref, vim.HostSystem)
            )
            if not any(each.others_of_group(name) for each in found for name in each.groups):
                return found
            models = _models_of_hosts(content)
            return tuple(replace(each, models=models.get(each.host, {})) for each in found)

        return self._session.read(read)

    def components(self) -> Mapping[str, Sequence[Json]]:
        """The devices of each vendor device group that a host offers."""
        return {name: found for each in self.offered(groups=True) for name, found in each.groups.items()}


def _models_of_hosts(content: vim.ServiceInstanceContent) -> dict[str, dict[Model, tuple[int, int]]]:
    """Host → its `models`."""
    found: dict[str, dict[Model, tuple[int, int]]] = {}
    wanted: Read = {vim.HostSystem: ["name", DEVICES, PASSED]}
    for row in properties.below(content, content.rootFolder, wanted, properties.whole):
        active = {each.id for each in row[PASSED] or () if each.passthruActive}
        cards = [(each.vendorId & 0xFFFF, each.deviceId & 0xFFFF, each.id) for each in row[DEVICES] or ()]
        passed = Counter((vendor, device) for vendor, device, address in cards if address in active)
        there = Counter((vendor, device) for vendor, device, _ in cards)
        found[str(row["name"])] = {model: (passed[model], count) for model, count in there.items()}
    return found


def _groups(manager: Any) -> dict[str, Sequence[Json]]:
    """The groups of a host; none of a host before 8.0.0.1, or one that doesn't answer. pyVmomi doesn't ask a
    vCenter whose version lacks the method.
    """
    with contextlib.suppress(Busy, Missing, Rejected, Unreachable, vmodl.fault.MethodNotFound):
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
