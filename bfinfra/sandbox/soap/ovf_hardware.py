"""OVF hardware items as device changes of a ConfigSpec."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.ovf_descriptor import Descriptor, Item

DEVICE = vim.vm.device
CPU, MEMORY, IDE, SCSI, NIC, FLOPPY, CD, DVD, DISK, SATA, USB = 3, 4, 5, 6, 10, 14, 15, 16, 17, 20, 23
SCSI_TYPES = {
    "lsilogic": DEVICE.VirtualLsiLogicController,
    "lsilogicsas": DEVICE.VirtualLsiLogicSASController,
    "virtualscsi": DEVICE.ParaVirtualSCSIController,
    "buslogic": DEVICE.VirtualBusLogicController,
}
NIC_TYPES = {
    "vmxnet3": DEVICE.VirtualVmxnet3,
    "e1000": DEVICE.VirtualE1000,
    "e1000e": DEVICE.VirtualE1000e,
    "pcnet32": DEVICE.VirtualPCNet32,
}
UNITS = {"byte * 2^20": 1, "byte * 2^30": 1024, "megabytes": 1, "gigabytes": 1024}


def device_changes(descriptor: Descriptor, networks: dict[str, str], *, thin: bool) -> list[Any]:
    """Additions for controllers, adapters, drives and disks; keys are negative. `networks` maps the
    descriptor's names to the target's.
    """
    keys: dict[str, int] = {}
    found = []
    order = {SCSI: 0, SATA: 0, IDE: 0, NIC: 1, CD: 1, DVD: 1, DISK: 2}
    for item in sorted(descriptor.items, key=lambda each: order.get(each.kind, 3)):
        device = device_of(item, descriptor, networks, keys, thin=thin)
        if device is None:
            continue
        if device.key >= 0:
            keys[item.instance] = device.key
            continue
        keys[item.instance] = device.key = -100 - len(keys)
        operation = "create" if isinstance(device, DEVICE.VirtualDisk) else None
        found.append(DEVICE.VirtualDeviceSpec(operation="add", fileOperation=operation, device=device))
    return found


def device_of(
    item: Item, descriptor: Descriptor, networks: dict[str, str], keys: dict[str, int], *, thin: bool
) -> Any:
    """The device of an item, its key negative where it is to be added; None for what makes no device."""
    subtype = (item.fields.get("ResourceSubType") or "").lower()
    if item.kind == SCSI:
        return SCSI_TYPES.get(subtype, DEVICE.VirtualLsiLogicController)(
            key=-1, busNumber=int(item.fields.get("Address") or 0), sharedBus="noSharing"
        )
    if item.kind == SATA:
        kind = DEVICE.VirtualNVMEController if "nvme" in subtype else DEVICE.VirtualAHCIController
        return kind(key=-1, busNumber=int(item.fields.get("Address") or 0))
    if item.kind == IDE:
        return DEVICE.VirtualIDEController(key=200 + int(item.fields.get("Address") or 0))
    if item.kind == NIC:
        backing = DEVICE.VirtualEthernetCard.NetworkBackingInfo(
            deviceName=networks.get(item.fields.get("Connection", ""), item.fields.get("Connection", ""))
        )
        connect = DEVICE.VirtualDevice.ConnectInfo(
            startConnected=item.fields.get("AutomaticAllocation") != "false",
            connected=False,
            allowGuestControl=True,
        )
        return NIC_TYPES.get(subtype, DEVICE.VirtualVmxnet3)(
            key=-1, backing=backing, connectable=connect, addressType="assigned"
        )
    if item.kind in (CD, DVD):
        backing = DEVICE.VirtualCdrom.RemotePassthroughBackingInfo(
            deviceName="", useAutoDetect=False, exclusive=False
        )
        return DEVICE.VirtualCdrom(
            key=-1, backing=backing, controllerKey=keys.get(item.fields.get("Parent", ""), 200)
        )
    return disk(item, descriptor, keys, thin=thin) if item.kind == DISK else None


def disk(item: Item, descriptor: Descriptor, keys: dict[str, int], *, thin: bool) -> Any:
    """A disk. OvfInvalidValue where it names none of the descriptor's or no controller."""
    known = descriptor.disks.get(disk_id(item))
    parent = keys.get(item.fields.get("Parent", ""))
    if known is None or parent is None:
        wrong = "HostResource" if known is None else "Parent"
        raise vim.fault.OvfInvalidValue(
            lineNumber=1,
            elementName=wrong,
            attributeName="",
            value=item.fields.get(wrong, ""),
            msg=f"The OVF disk item {item.instance} has no valid {wrong}.",
        )
    return DEVICE.VirtualDisk(
        key=-1,
        controllerKey=parent,
        unitNumber=int(item.fields.get("AddressOnParent") or 0),
        capacityInKB=known.capacity // 1024,
        capacityInBytes=known.capacity,
        backing=DEVICE.VirtualDisk.FlatVer2BackingInfo(
            fileName="", diskMode="persistent", thinProvisioned=thin
        ),
    )


def disk_id(item: Item) -> str:
    """The id in "ovf:/disk/vmdisk1"."""
    return item.fields.get("HostResource", "").rpartition("/")[2]


def quantity(descriptor: Descriptor, kind: int, default: int) -> int:
    """Return the number of CPUs, or the MiB of memory."""
    for item in descriptor.items:
        if item.kind == kind:
            unit = UNITS.get((item.fields.get("AllocationUnits") or "").lower(), 1) if kind == MEMORY else 1
            return int(item.fields.get("VirtualQuantity") or default) * unit
    return default


def import_keys(name: str, changes: list[Any]) -> dict[int, str]:
    """Return the name of a disk during its upload, by device key: "/bf-01/VirtualLsiLogicController0:0"."""
    controllers = {
        each.device.key: each.device for each in changes if isinstance(each.device, DEVICE.VirtualController)
    }
    found = {}
    for each in changes:
        if isinstance(each.device, DEVICE.VirtualDisk):
            found[each.device.key] = (
                f"/{name}/{disk_address(each.device, controllers.get(each.device.controllerKey))}"
            )
    return found


def disk_address(device: Any, controller: Any) -> str:
    """Return the place where a disk is attached: "VirtualLsiLogicController0:0"."""
    kind = type(controller).__name__.rpartition(".")[2] if controller is not None else "VirtualIDEController"
    bus = controller.busNumber if controller is not None else device.controllerKey - 200
    return f"{kind}{bus}:{device.unitNumber}"
