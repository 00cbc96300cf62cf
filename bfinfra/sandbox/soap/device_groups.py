"""Vendor device groups: what hosts offer, and the groups of a machine. As recorded of a host with four A100s,
and by the documentation of VirtualDeviceGroups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory import vgpus
from bfinfra.sandbox.inventory.hosts import vendor_name
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.hosts import need_connected
from bfinfra.sandbox.soap.vm_pci import PCI
from bfinfra.sandbox.world_hosts import MODEL

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

PROPERTY = "configSpec.deviceGroups"
Devices = Sequence[vim.vm.device.VirtualDevice]
VENDOR = vim.vm.VirtualDeviceGroups.VendorDeviceGroup


@method("vim.host.AssignableHardwareManager", "RetrieveVendorDeviceGroupInfo", writes=False)
def retrieve(call: Call, this: Managed, _: object) -> list[vim.vm.VendorDeviceGroupInfo]:
    """The groups of a host that shares its cards."""
    host = call.inventory.objects[this.hidden["host"]]
    need_connected(host)
    return infos([host])


def infos(hosts: list[Managed]) -> list[vim.vm.VendorDeviceGroupInfo]:
    """The groups of hosts, each once."""
    offered = {name: (host, each) for host in hosts for name, each in vgpus.groups(host).items()}
    return [
        vim.vm.VendorDeviceGroupInfo(
            name="",
            deviceGroupName=name,
            deviceGroupDescription=_description(name, sum(not MODEL.fullmatch(each) for each in parts)),
            componentDeviceInfo=[_component(host, each) for each in parts],
        )
        for name, (host, parts) in offered.items()
    ]


def _description(name: str, count: int) -> str:
    """`Nvidia:2@grid_a100-40c%NVLink` → 2 Nvidia grid_a100-40c NVLink."""
    vendor, _, rest = name.partition("@")
    return " ".join((str(count), vendor.partition(":")[0], *rest.split("%"))).strip()


def _component(host: Managed, part: str) -> vim.vm.VendorDeviceGroupInfo.ComponentDeviceInfo:
    if MODEL.fullmatch(part):
        return _nic(host, part)
    device = PCI(key=0, backing=PCI.VmiopBackingInfo(vgpu=part))
    return vim.vm.VendorDeviceGroupInfo.ComponentDeviceInfo(
        type="nvidiaVgpu",
        vendorName="NVIDIA Corporation",
        deviceName=f"{vgpus.driver_name(host, part)} {part}",
        isConfigurable=False,
        device=device,
    )


def _nic(host: Managed, part: str) -> vim.vm.VendorDeviceGroupInfo.ComponentDeviceInfo:
    """A network card that is passed through."""
    vendor, number = vgpus.model(part)
    address = next(iter(vgpus.passed(host, frozenset(((vendor, number),)))))
    name = next(each.deviceName for each in host["hardware"].pciDevice if each.id == address)
    allowed = PCI.AllowedDevice(vendorId=vendor, deviceId=number)
    backing = PCI.DynamicBackingInfo(deviceName=name, allowedDevice=[allowed])
    return vim.vm.VendorDeviceGroupInfo.ComponentDeviceInfo(
        type="pciPassthru",
        vendorName=vendor_name(vendor),
        deviceName=name,
        isConfigurable=False,
        device=PCI(key=0, backing=backing),
    )


def changed_groups(
    config: vim.vm.ConfigInfo, spec: vim.vm.ConfigSpec, devices: Devices
) -> vim.vm.VirtualDeviceGroups | None:
    """The machine's groups after a change, where each has all its devices and each device its group.
    InvalidArgument also if a group that it had has other devices now: a group comes and goes as a whole.
    """
    found = config.deviceGroups if spec.deviceGroups is None else spec.deviceGroups
    groups, after = _listed(found), _members(devices)
    names = _names(groups)
    if odd := sorted(names.keys() ^ after.keys()):
        raise _wrong(f"the group {odd[0]} has no devices, or its devices have no group")
    if any(sorted(places.values()) != [*range(len(places))] for places in after.values()):
        raise _wrong("the devices of a group are numbered from 0")
    had, before = _names(_listed(config.deviceGroups)), _members(config.hardware.device)
    added = _members([each.device for each in spec.deviceChange or () if each.operation == "add"])
    for key, name in names.items():
        if after[key] != (before[key] if had.get(key) == name else added.get(key)):
            raise _wrong(f"the devices of the group {key} can't change: it comes and goes as a whole")
    return found if groups else None


def _listed(groups: vim.vm.VirtualDeviceGroups | None) -> list[vim.vm.VirtualDeviceGroups.DeviceGroup]:
    return list(groups.deviceGroup) if groups else []


def _names(groups: Sequence[vim.vm.VirtualDeviceGroups.DeviceGroup]) -> dict[int, str]:
    """Key of each group → its name."""
    if not all(isinstance(each, VENDOR) for each in groups):
        raise _wrong("a group is a VendorDeviceGroup")
    found = {each.groupInstanceKey: str(each.deviceGroupName) for each in groups}
    if len(found) != len(groups):
        raise _wrong("two groups have one key")
    return found


def _members(devices: Devices) -> dict[int, dict[int, int]]:
    """Key of each group → key of each of its devices → its place in the group."""
    found: dict[int, dict[int, int]] = {}
    for each in devices:
        if (place := each.deviceGroupInfo) is not None:
            found.setdefault(place.groupInstanceKey, {})[each.key] = place.sequenceId
    return found


def _wrong(why: str) -> vmodl.MethodFault:
    return vmodl.fault.InvalidArgument(
        invalidProperty=PROPERTY, msg=f"A specified parameter was not correct: {PROPERTY}: {why}"
    )
