"""VM classes over REST. Source: com.vmware.vcenter.namespace_management.VirtualMachineClasses (vmware-vcenter
9.1).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.model.errors import Malformed, Missing
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

VM_CLASSES = "/api/vcenter/namespace-management/virtual-machine-classes"
MIB = 2**20


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Device:
    """Any free PCI device of these ids (as in lspci); `label`: hosts' own label of their cards, "" for
    any.
    """

    vendor: int
    device: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class VmClass:
    """`memory` in bytes; the reservations are per cent of cpus and memory; `vgpus`: profiles; `namespaces`:
    those that offer it.
    """

    cpus: int
    memory: int
    cpu_reservation: int = 0
    memory_reservation: int = 0
    description: str = ""
    vgpus: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    namespaces: tuple[str, ...] = field(default=(), compare=False)


class VmClasses:
    """The VM classes of one vCenter. Raises RemoteError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def list(self) -> Mapping[str, VmClass]:
        """Every class that isn't being deleted, in one read; () without vSphere with Tanzu."""
        try:
            found = self._rest.get(VM_CLASSES)
        except Missing:
            return {}
        if not isinstance(found, list):
            raise Malformed(
                "the VM classes can't be read", server=self._rest.server, why=type(found).__name__
            )
        return {each["id"]: read(each) for each in found if each.get("config_status") != "REMOVING"}

    def create(self, name: str, wanted: VmClass) -> None:
        """Make a class."""
        self._rest.post(VM_CLASSES, {"id": name, **_body(wanted)})

    def update(self, name: str, wanted: VmClass) -> None:
        """Set everything that can be set; existing VMs keep what they have."""
        self._rest.patch(f"{VM_CLASSES}/{quote(name)}", _body(wanted))

    def delete(self, name: str) -> None:
        """Delete a class. One that is already gone is fine. Refused while a namespace offers it."""
        try:
            self._rest.delete(f"{VM_CLASSES}/{quote(name)}")
        except Missing:
            return


def read(info: Mapping[str, Any]) -> VmClass:
    """A class from the API's description."""
    devices = info.get("devices")
    vgpus, cards = _listed(devices) if devices else _specified(info.get("config_spec") or {})
    return VmClass(
        info.get("cpu_count") or 0,
        (info.get("memory_MB") or 0) * MIB,
        info.get("cpu_reservation") or 0,
        info.get("memory_reservation") or 0,
        info.get("description") or "",
        tuple(sorted(vgpus)),
        tuple(sorted(cards)),
        tuple(sorted(info.get("namespaces") or ())),
    )


def _listed(devices: Mapping[str, Any]) -> tuple[Iterable[str], Iterable[Device]]:
    """Profiles and cards, in the form before 8.0.2."""
    cards = devices.get("dynamic_direct_path_IO_devices") or ()
    return (
        (each["profile_name"] for each in devices.get("vgpu_devices") or ()),
        (Device(each["vendor_id"], each["device_id"], each.get("custom_label") or "") for each in cards),
    )


def _specified(spec: Mapping[str, Any]) -> tuple[Iterable[str], Iterable[Device]]:
    """The same in the form since 8.0.2: devices of a ConfigSpec in vSphere's JSON, with an entry for each
    device that a card may be.
    """
    changes = (each for each in spec.get("deviceChange") or () if each.get("operation") == "add")
    backings = [(each.get("device") or {}).get("backing") or {} for each in changes]
    cards = ((each, card) for each in backings for card in each.get("allowedDevice") or ())
    return (
        (
            each["vgpu"]
            for each in backings
            if each.get("_typeName") == "VirtualPCIPassthroughVmiopBackingInfo"
        ),
        (Device(card["vendorId"], card["deviceId"], each.get("customLabel") or "") for each, card in cards),
    )


def _body(wanted: VmClass) -> dict[str, Any]:
    cards = [
        {
            "vendor_id": each.vendor,
            "device_id": each.device,
            **({"custom_label": each.label} if each.label else {}),
        }
        for each in wanted.devices
    ]
    return {
        "cpu_count": wanted.cpus,
        "memory_MB": wanted.memory // MIB,
        "cpu_reservation": wanted.cpu_reservation,
        "memory_reservation": wanted.memory_reservation,
        "description": wanted.description,
        "devices": {
            "vgpu_devices": [{"profile_name": each} for each in wanted.vgpus],
            "dynamic_direct_path_IO_devices": cards,
        },
    }
