"""OVF hardware items as device changes of a ConfigSpec."""

from __future__ import annotations

import re
from typing import Any

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.ovf_descriptor import Descriptor, Item, units

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
NIC_NAMES = {*NIC_TYPES, "vmxnet", "vmxnet2", "vlance", "flexible", "sriovethernetcard"}
TYPES = frozenset({1, CPU, MEMORY, IDE, SCSI, NIC, FLOPPY, CD, DVD, DISK, SATA, 21, 22, USB, 24})
FAMILY = re.compile(r"vmx-\d+")


def device_changes(descriptor: Descriptor, networks: dict[str, str], *, thin: bool) -> list[Any]:
    """Additions for controllers, adapters, drives and disks; keys are negative. `networks` maps the
    descriptor's names to the target's.
    """
    keys: dict[str, int] = {}
    found = []
    order = {SCSI: 0, SATA: 0, IDE: 0, NIC: 1, CD: 1, DVD: 1, DISK: 2}

    def place(item: Item) -> tuple[int, int]:
        return order.get(item.kind, 3), int(
            item.fields.get("AddressOnParent") or 0
        ) if item.kind == DISK else 0

    for item in sorted(filter(known, descriptor.items), key=place):
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


def known(item: Item) -> bool:
    """Whether vSphere has such a device. OvfUnsupportedType, OvfUnsupportedSubType where it hasn't and the
    machine requires it.
    """
    subtypes = set(re.split(r"[\s,]+", (item.fields.get("ResourceSubType") or "").lower())) - {""}
    there = {SCSI: set(SCSI_TYPES), NIC: NIC_NAMES}.get(item.kind, subtypes)
    if item.kind in TYPES and (not subtypes or subtypes & there):
        return True
    if not item.required:
        return False
    fields = {"instanceId": item.instance, "lineNumber": 1}
    if item.kind in TYPES:
        raise vim.fault.OvfUnsupportedSubType(
            **fields,
            elementName=item.fields.get("ElementName", ""),
            deviceType=item.kind,
            deviceSubType=" ".join(sorted(subtypes)),
            msg=f"No support for the virtual hardware device subtype '{' '.join(sorted(subtypes))}'.",
        )
    raise vim.fault.OvfUnsupportedType(
        **fields,
        name=item.fields.get("ElementName", ""),
        deviceType=item.kind,
        msg=f"No support for the virtual hardware device type '{item.kind}'.",
    )


def family(written: str) -> str | None:
    """The first hardware family that vSphere knows of a list; None for an empty one.
    OvfUnsupportedElementValue where it knows none.
    """
    names = [each for each in re.split(r"[\s,]+", written) if each]
    found = next(filter(FAMILY.fullmatch, names), None)
    if names and found is None:
        raise vim.fault.OvfUnsupportedElementValue(
            lineNumber=1,
            name="VirtualSystemType",
            value=written,
            msg=f"Unsupported hardware family '{written}'.",
        )
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
        if (connection := item.fields.get("Connection", "")) and connection not in networks:
            raise vim.fault.OvfInvalidValue(
                lineNumber=1,
                elementName="Connection",
                attributeName="",
                value=connection,
                msg=f"The OVF network section has no network '{connection}'.",
            )
        backing = DEVICE.VirtualEthernetCard.NetworkBackingInfo(deviceName=networks.get(connection, ""))
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
    named = item.fields.get("Parent", "")
    parent = keys.get(named) if named else next(iter(keys.values()), None)
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
            count = int(item.fields.get("VirtualQuantity") or default)
            unit = units(item.fields.get("AllocationUnits") or "MegaBytes") if kind == MEMORY else 1
            return count if kind != MEMORY else count * (unit or 1) >> 20
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
