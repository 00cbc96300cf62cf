"""Converts virtual devices between vSphere's types and plain values: PCI passthrough, network adapters,
disks.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyVmomi import vim

from bfinfra.backends.vcenter import refs
from bfinfra.backends.vcenter.tree import is_a, kind_of
from bfinfra.backends.vcenter.vm import Attach, Attached, Disk, NewDisk, Nic

Passthrough = vim.vm.device.VirtualPCIPassthrough
Card = vim.vm.device.VirtualEthernetCard
Hard = vim.vm.device.VirtualDisk
Scsi = vim.vm.device.VirtualSCSIController
Rdma = vim.vm.device.VirtualVmxnet3Vrdma
Grouped = vim.vm.device.VirtualEthernetCard.DistributedVirtualPortBackingInfo
Spec = vim.vm.device.VirtualDeviceSpec
MANUAL = "manual"


class Devices(NamedTuple):
    """A VM's relevant devices, each sort by key."""

    pci: tuple[Attached, ...]
    nics: tuple[Nic, ...]
    disks: tuple[Disk, ...]


def found(hardware: Iterable[object] | None) -> Devices:
    """The PCI devices, network adapters and disks among a VM's devices."""
    sorts: dict[type[Any] | None, list[Any]] = {Passthrough: [], Card: [], Hard: [], Scsi: [], None: []}
    for device in hardware or ():
        sorts[_sort(kind_of(device))].append(device)
    pci, nics, disks = (sorted(sorts[sort], key=lambda d: int(d.key)) for sort in (Passthrough, Card, Hard))
    buses = {d.key: d.busNumber for d in sorts[Scsi]} if disks else {}
    return Devices(
        tuple(_attached(d.key, d.backing, grouped=d.deviceGroupInfo is not None) for d in pci),
        tuple(map(_nic, nics)),
        tuple(_disk(d, buses) for d in disks),
    )


@functools.cache
def _sort(kind: Any) -> type[Any] | None:
    return next((each for each in (Passthrough, Card, Hard, Scsi) if issubclass(kind, each)), None)


def _attached(key: int, backing: Any, *, grouped: bool) -> Attached:
    if is_a(backing, Passthrough.VmiopBackingInfo):
        return Attached(key, "vgpu", profile=backing.vgpu or "", grouped=grouped)
    if is_a(backing, Passthrough.DynamicBackingInfo):
        allowed = tuple((a.vendorId & 0xFFFF, a.deviceId & 0xFFFF) for a in backing.allowedDevice or ())
        return Attached(key, "dynamic", backing.assignedId or "", allowed, grouped=grouped)
    return Attached(key, "static", getattr(backing, "id", "") or "", grouped=grouped)


def _nic(card: Any) -> Nic:
    """The adapter. On a distributed port group, `network` is the group's key."""
    rdma = (card.deviceProtocol or "rocev1") if is_a(card, Rdma) else ""
    return Nic(
        card.key,
        _label(card),
        _network(card.backing),
        card.macAddress or "",
        is_a(card.backing, Grouped),
        rdma,
        (card.addressType or "").lower() == MANUAL,
    )


def _network(backing: Any) -> str:
    if is_a(backing, Grouped):
        return str(backing.port.portgroupKey or "")
    return refs.moid(getattr(backing, "network", None))


def _disk(disk: Any, buses: Mapping[int, int]) -> Disk:
    """The disk. `buses`: SCSI controllers by key."""
    address = f"scsi{buses[disk.controllerKey]}:{disk.unitNumber}" if disk.controllerKey in buses else ""
    backing = disk.backing
    capacity = disk.capacityInBytes or (disk.capacityInKB or 0) * 1024
    return Disk(
        disk.key,
        _label(disk),
        capacity,
        address,
        getattr(backing, "fileName", None) or "",
        getattr(backing, "thinProvisioned", None),
        getattr(backing, "parent", None) is not None,
    )


def _label(device: Any) -> str:
    return str(device.deviceInfo.label) if device.deviceInfo else ""


def add_pci(wanted: Attach, key: int, system: str) -> Any:
    """The change that adds a PCI device. `key`: a negative number of the caller's choice; `system`: vCenter's
    id of the host, for a fixed card.
    """
    if wanted.profile:
        backing: Any = Passthrough.VmiopBackingInfo(vgpu=wanted.profile)
    elif wanted.address:
        backing = Passthrough.DeviceBackingInfo(
            id=wanted.address,
            deviceId=f"{wanted.device:04x}",
            systemId=system,
            vendorId=_short(wanted.vendor),
            deviceName=wanted.name,
        )
    else:
        allowed = Passthrough.AllowedDevice(vendorId=wanted.vendor, deviceId=wanted.device)
        backing = Passthrough.DynamicBackingInfo(allowedDevice=[allowed], deviceName=wanted.name)
    return Spec(operation="add", device=Passthrough(key=key, backing=backing))


def _short(number: int) -> int:
    return number - 0x10000 if number > 0x7FFF else number


def remove(device: object) -> Any:
    """The change that removes a device."""
    return Spec(operation="remove", device=device)


def add_nic(backing: object, key: int, rdma: str = "", mac: str = "") -> Any:
    """The change that adds a vmxnet3 adapter, or one for paravirtual RDMA with this protocol."""
    start = vim.vm.device.VirtualDevice.ConnectInfo(
        startConnected=True, connected=True, allowGuestControl=True
    )
    plain: dict[str, Any] = {"key": key, "backing": backing, "connectable": start, "addressType": "generated"}
    card = Rdma(deviceProtocol=rdma, **plain) if rdma else vim.vm.device.VirtualVmxnet3(**plain)
    give_mac(card, mac)
    return Spec(operation="add", device=card)


def edit_nic(device: Any, backing: Any, mac: str) -> Any:
    """The change that moves an adapter to another network (None: it stays), with another MAC address ("": it
    keeps its own).
    """
    device.backing = backing or device.backing
    give_mac(device, mac)
    return Spec(operation="edit", device=device)


def give_mac(card: vim.vm.device.VirtualEthernetCard, mac: str) -> None:
    """Give an adapter this MAC address; nothing for ""."""
    if mac:
        card.addressType, card.macAddress = MANUAL, mac


def grow_disk(device: Any, capacity: int) -> Any:
    """The change that grows a disk to `capacity` bytes."""
    device.capacityInBytes = capacity
    device.capacityInKB = capacity // 1024
    return Spec(operation="edit", device=device)


def destroy_disk(device: object) -> Any:
    """The change that removes a disk and deletes its file."""
    return Spec(operation="remove", fileOperation="destroy", device=device)


def add_scsi(bus: int, key: int) -> Any:
    """The change that adds a paravirtual SCSI controller. `key`: a negative number of the caller's choice."""
    return Spec(
        operation="add",
        device=vim.vm.device.ParaVirtualSCSIController(key=key, busNumber=bus, sharedBus="noSharing"),
    )


def add_disk(wanted: NewDisk, key: int, controller: int, store: object, name: str) -> Any:
    """The change that adds an empty disk. `store`, `name`: its datastore, None and "" for the machine's
    own.
    """
    backing = Hard.FlatVer2BackingInfo(
        fileName=f"[{name}]" if name else "",
        datastore=store,
        diskMode="persistent",
        thinProvisioned=wanted.thin,
    )
    unit = int(wanted.address.partition(":")[2])
    disk = Hard(
        key=key,
        controllerKey=controller,
        unitNumber=unit,
        capacityInBytes=wanted.capacity,
        capacityInKB=wanted.capacity // 1024,
        backing=backing,
    )
    return Spec(operation="add", fileOperation="create", device=disk)
