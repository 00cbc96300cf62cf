"""Device changes: keys, controllers, labels, backings, and the rules that ESXi checks before it takes a
device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import free_space
from bfinfra.sandbox.inventory.vmtypes import fields, support, vim
from bfinfra.sandbox.soap.device_defaults import fill
from bfinfra.sandbox.soap.vm_pci import check_pci

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

DEVICE = vim.vm.device
KEYS = (  # type, first key, label, first number in the label
    (DEVICE.VirtualDisk, 2000, "Hard disk", 1),
    (DEVICE.VirtualEthernetCard, 4000, "Network adapter", 1),
    (DEVICE.VirtualPCIPassthrough, 13000, "PCI device", 0),
    (DEVICE.VirtualCdrom, 3000, "CD/DVD drive", 1),
    (DEVICE.VirtualSCSIController, 1000, "SCSI controller", 0),
    (DEVICE.VirtualAHCIController, 15000, "SATA controller", 0),
    (DEVICE.VirtualNVMEController, 31000, "NVME controller", 0),
    (DEVICE.VirtualUSBXHCIController, 14000, "USB xHCI controller", 0),
    (DEVICE.VirtualUSBController, 7000, "USB controller", 0),
    (DEVICE.VirtualIDEController, 200, "IDE", 0),
    (DEVICE.VirtualFloppy, 8000, "Floppy drive", 1),
    (DEVICE.VirtualSerialPort, 9000, "Serial port", 1),
    (DEVICE.VirtualTPM, 11000, "Virtual TPM", 1),
)
COLD = (
    DEVICE.VirtualPCIPassthrough,
    DEVICE.VirtualIDEController,
    DEVICE.VirtualTPM,
)  # these change in a machine that is off, only
UNICAST = re.compile(r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}", re.IGNORECASE)
SCSI_ITSELF = 7  # the unit number of the SCSI adapter on its own bus
SCSI_ADAPTERS = 3  # the first one's unit number on the PCI bus


@dataclass
class Bay:
    """A machine's devices while they are being changed."""

    inventory: Inventory
    vm: Managed
    devices: list[Any]
    running: bool
    new_keys: dict[int, int]  # from the keys of the request to the keys given


def change_devices(inventory: Inventory, vm: Managed, changes: Any) -> tuple[list[Any], dict[int, int]]:
    """The devices after all changes, and the keys given by the keys asked for. InvalidDeviceSpec,
    InvalidPowerState and kin.
    """
    bay = Bay(inventory, vm, list(vm["config"].hardware.device), vm["runtime"].powerState == "poweredOn", {})
    for index, change in enumerate(changes):
        if isinstance(change.device, COLD):
            need_off(bay)
        {"add": add, "edit": edit, "remove": remove}[change.operation or "edit"](bay, change, index)
    relink(bay.devices)
    return bay.devices, bay.new_keys


def need_off(bay: Bay) -> None:
    """InvalidPowerState for a machine that runs."""
    if bay.running:
        raise vim.fault.InvalidPowerState(
            requestedState="poweredOff",
            existingState="poweredOn",
            msg="The attempted operation cannot be performed in the current state (Powered on).",
        )


def add(bay: Bay, change: Any, index: int) -> None:
    """A new device: its key, place and backing."""
    device = change.device
    place(bay, device, index)
    asked = device.key
    first, label, number = numbering(device)
    same = [each for each in bay.devices if numbering(each)[:2] == (first, label)]
    device.key = free_key(bay, first, asked)
    bay.new_keys[asked] = device.key
    if device.deviceInfo is None or not isinstance(device.deviceInfo, vim.Description):
        device.deviceInfo = vim.Description(label=f"{label} {number + len(same)}", summary=label)
    back(bay, change, index)
    fill(device)
    bay.devices.append(device)


def numbering(device: object) -> tuple[int, str, int]:
    """First key, label and first number of the device's type."""
    for kind, first, label, number in KEYS:
        if isinstance(device, kind):
            return first, label, number
    return 10000, type(device).__name__.rpartition(".")[2].removeprefix("Virtual"), 1


def free_key(bay: Bay, first: int, asked: int) -> int:
    """The key asked for where it is positive and free, otherwise the next of the type."""
    taken = {each.key for each in bay.devices}
    if asked >= first and asked not in taken:
        return asked
    return next(key for key in range(first, first + 1000) if key not in taken)


def place(bay: Bay, device: Any, index: int) -> None:
    """Controller and unit. InvalidDeviceSpec where the controller isn't there or the unit is taken."""
    if isinstance(device, DEVICE.VirtualController):
        bus = [each.busNumber for each in bay.devices if isinstance(each, family_of(device))]
        device.busNumber = device.busNumber if device.busNumber not in bus else max(bus) + 1
        if isinstance(device, DEVICE.VirtualSCSIController):
            device.scsiCtlrUnitNumber, device.sharedBus = SCSI_ITSELF, device.sharedBus or "noSharing"
            device.unitNumber = SCSI_ADAPTERS + device.busNumber
        device.controllerKey = 100
        return
    wanted = device.controllerKey
    if wanted is None:
        device.controllerKey = default_controller(bay, device)
    else:
        device.controllerKey = bay.new_keys.get(wanted, wanted)
    if device.controllerKey is not None and all(each.key != device.controllerKey for each in bay.devices):
        raise invalid(index, "device.controllerKey", f"there is no controller with the key {wanted}")
    taken = {
        each.unitNumber
        for each in bay.devices
        if each.controllerKey == device.controllerKey and each.unitNumber is not None
    }
    if isinstance(device, DEVICE.VirtualDisk):
        taken.add(SCSI_ITSELF)
    if device.unitNumber is None or device.unitNumber < 0:
        device.unitNumber = next(
            unit
            for unit in range(7 if isinstance(device, DEVICE.VirtualEthernetCard) else 0, 4096)
            if unit not in taken
        )
    elif device.unitNumber in taken and isinstance(device, DEVICE.VirtualDisk):
        raise invalid(
            index,
            "device.unitNumber",
            f"the unit {device.unitNumber} of the controller {device.controllerKey} is taken",
        )


def family_of(controller: object) -> Any:
    """The type whose members count their buses together."""
    return next((kind for kind, *_ in KEYS if isinstance(controller, kind)), type(controller))


def default_controller(bay: Bay, device: object) -> int | None:
    """The controller that a device of this type gets when none is named."""
    if isinstance(device, DEVICE.VirtualDisk):
        kinds = (
            DEVICE.VirtualSCSIController,
            DEVICE.VirtualNVMEController,
            DEVICE.VirtualAHCIController,
            DEVICE.VirtualIDEController,
        )
        return next((each.key for kind in kinds for each in bay.devices if isinstance(each, kind)), None)
    if isinstance(device, DEVICE.VirtualCdrom):
        return 200
    return 100


def back(bay: Bay, change: Any, index: int) -> None:
    """The backing of the device."""
    device = change.device
    if isinstance(device, DEVICE.VirtualDisk):
        back_disk(bay, change, index)
    elif isinstance(device, DEVICE.VirtualEthernetCard):
        back_nic(bay, device, index)
    elif isinstance(device, DEVICE.VirtualPCIPassthrough):
        check_pci(bay.inventory, bay.vm, device, bay.devices, index)


def back_disk(bay: Bay, change: Any, index: int) -> None:
    """A disk's file: on the machine's datastore where none is named. NoDiskSpace where it is full."""
    disk, backing, home = change.device, change.device.backing, bay.inventory.get(bay.vm["datastore"][0])
    if change.fileOperation is None and not (backing and backing.fileName):
        raise invalid(
            index, "device.backing.fileName", "a disk needs a file to attach or fileOperation=create"
        )
    size = disk.capacityInBytes or disk.capacityInKB * 1024
    if size <= 0 and change.fileOperation == "create":
        raise invalid(index, "device.capacityInKB", "a new disk needs a size")
    disk.capacityInBytes, disk.capacityInKB = size, size // 1024
    if change.fileOperation == "create":
        name = backing.fileName or f"[{home.name}]"
        store = bay.inventory.datastore(name[1:].partition("]")[0], home)
        if store is None:
            raise vim.fault.InvalidDatastorePath(datastorePath=name, msg=f"Invalid datastore path '{name}'.")
        count = sum(isinstance(each, DEVICE.VirtualDisk) for each in bay.devices)
        if name.endswith("]"):
            backing.fileName = f"{name} {bay.vm.name}/{bay.vm.name}{f'_{count}' if count else ''}.vmdk"
        backing.datastore, backing.uuid = store.ref, bay.inventory.new_uuid(backing.fileName)
        check_room(bay.inventory, store, backing.fileName, size)
    disk.deviceInfo = vim.Description(label=disk.deviceInfo.label, summary=f"{disk.capacityInKB:,} KB")
    disk.diskObjectId = f"{bay.vm.moid.removeprefix('vm-')}-{disk.key}"


def check_room(inventory: Inventory, store: Managed | None, file: str, size: int) -> None:
    """NoDiskSpace, for thin disks too."""
    if store is not None and size > (free := free_space(inventory, store)):
        raise vim.fault.NoDiskSpace(
            file=file,
            datastore=store.name,
            msg=f"Insufficient disk space on datastore '{store.name}': {size} bytes wanted, {free} free.",
        )


def back_nic(bay: Bay, nic: Any, index: int) -> None:
    """An adapter's network, by name among those that the host has; MAC and connection."""
    backing = nic.backing
    if isinstance(backing, DEVICE.VirtualEthernetCard.NetworkBackingInfo):
        host = bay.inventory.get(bay.vm["runtime"].host)
        network = next(
            (
                each
                for each in bay.inventory.networks()
                if each.name == backing.deviceName and each.ref in host["network"]
            ),
            None,
        )
        if network is None:
            raise invalid(
                index,
                "device.backing.deviceName",
                f"the host {host.name} has no network {backing.deviceName!r}",
            )
        backing.network = network.ref
        nic.deviceInfo = vim.Description(label=nic.deviceInfo.label, summary=network.name)
    elif isinstance(backing, DEVICE.VirtualEthernetCard.DistributedVirtualPortBackingInfo):
        host, key = bay.inventory.get(bay.vm["runtime"].host), backing.port.portgroupKey or ""
        group = bay.inventory.objects.get(key)
        if group is None or group.ref not in host["network"]:
            raise invalid(
                index, "device.backing.port.portgroupKey", f"the host {host.name} has no port group {key!r}"
            )
        nic.deviceInfo = vim.Description(
            label=nic.deviceInfo.label, summary=f"DVSwitch: {backing.port.switchUuid}"
        )
    else:
        raise invalid(index, "device.backing", "an adapter needs a network")
    if (nic.addressType or "").lower() == "manual" and not UNICAST.fullmatch(nic.macAddress or ""):
        raise invalid(index, "device.macAddress", f"{nic.macAddress!r} is no MAC address of an adapter")
    if not nic.macAddress:
        digest = bay.inventory.new_uuid(f"mac {bay.vm.moid} {nic.key}").replace("-", "")
        nic.addressType, nic.macAddress = (
            "assigned",
            f"00:50:56:{int(digest[:2], 16) | 0x80:02x}:{digest[2:4]}:{digest[4:6]}",
        )
    nic.connectable = nic.connectable or DEVICE.VirtualDevice.ConnectInfo(
        startConnected=True, connected=False, allowGuestControl=True
    )
    nic.connectable.migrateConnect, nic.connectable.status = (
        nic.connectable.migrateConnect or "unset",
        nic.connectable.status or "untried",
    )
    nic.wakeOnLanEnabled = True if nic.wakeOnLanEnabled is None else nic.wakeOnLanEnabled


def edit(bay: Bay, change: Any, index: int) -> None:
    """Replace what the request sets; the rest stays."""
    at = position(bay, change.device.key, index)
    old, new = bay.devices[at], change.device
    if (
        isinstance(old, DEVICE.VirtualDisk)
        and (new.capacityInBytes or new.capacityInKB * 1024) < old.capacityInBytes
    ):
        raise invalid(index, "device.capacityInKB", "a disk can't shrink")
    if (
        isinstance(old, DEVICE.VirtualDisk)
        and new.backing
        and getattr(new.backing, "thinProvisioned", None) not in (None, old.backing.thinProvisioned)
    ):
        raise invalid(index, "device.backing.thinProvisioned", "a disk is thin or thick from when it is made")
    if isinstance(new, DEVICE.VirtualDisk):
        new.capacityInBytes = max(new.capacityInBytes or 0, new.capacityInKB * 1024)
        new.capacityInKB = new.capacityInBytes // 1024
        check_room(
            bay.inventory,
            old.backing.datastore and bay.inventory.get(old.backing.datastore),
            old.backing.fileName,
            new.capacityInBytes - old.capacityInBytes,
        )
    for info in fields(new):
        if getattr(new, info.name) in (None, []) and hasattr(old, info.name):
            object.__setattr__(new, info.name, getattr(old, info.name))
    others = [each for each in bay.devices if each is not old]
    if isinstance(new, DEVICE.VirtualEthernetCard):
        if new.macAddress != old.macAddress:
            need_off(bay)
        back_nic(bay, new, index)
    elif isinstance(new, DEVICE.VirtualPCIPassthrough):
        check_pci(bay.inventory, bay.vm, new, others, index)
    fill(new)
    bay.devices[at] = new


def remove(bay: Bay, change: Any, index: int) -> None:
    """Take the device out. InvalidDeviceSpec where a controller still has devices."""
    at = position(bay, change.device.key, index)
    key = bay.devices[at].key
    if any(each.controllerKey == key for each in bay.devices):
        raise invalid(index, "device", f"the controller {key} still has devices")
    del bay.devices[at]


def position(bay: Bay, key: int, index: int) -> int:
    """Return the index of the device with a key."""
    for at, each in enumerate(bay.devices):
        if each.key == key:
            return at
    raise invalid(index, "device.key", f"there is no device with the key {key}")


def invalid(index: int, name: str, why: str) -> Any:
    """InvalidDeviceSpec for the index-th change."""
    return vim.fault.InvalidDeviceSpec(
        deviceIndex=index,
        property=f"virtualDeviceSpec.{name}",
        msg=f"Invalid configuration for device '{index}': {why}.",
    )


def relink(devices: list[Any]) -> None:
    """Each controller names its devices."""
    for controller in devices:
        if isinstance(controller, DEVICE.VirtualController):
            keys = [
                each.key
                for each in devices
                if each.controllerKey == controller.key and not isinstance(each, DEVICE.VirtualController)
            ]
            controller.device = support.GetVmodlType("int[]")(keys)
