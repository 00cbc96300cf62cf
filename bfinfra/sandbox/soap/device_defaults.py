"""Default settings of a virtual device: shares, slots, limits. Source: machines of vCenter 8.0.1."""

from __future__ import annotations

import hashlib
from typing import Any

from bfinfra.sandbox.inventory.vmtypes import vim

DEVICE = vim.vm.device
FLAT = DEVICE.VirtualDisk.FlatVer2BackingInfo
SLOTS = (  # type, number of its first slot, step
    (DEVICE.VirtualSCSIController, 16, 1),
    (DEVICE.VirtualPCIPassthrough, 64, 32),
    (DEVICE.VirtualEthernetCard, 160, 32),
)


def fill(device: object) -> None:
    """Give the device what ESXi gives it where the request left it unset."""
    if isinstance(device, DEVICE.VirtualDisk):
        _disk(device)
    elif isinstance(device, DEVICE.VirtualEthernetCard):
        _nic(device)
    elif isinstance(device, DEVICE.VirtualSCSIController):
        unset(device, hotAddRemove=True)


def _disk(disk: Any) -> None:
    if disk.shares is None:
        disk.shares = vim.SharesInfo(shares=1000, level="normal")
    if disk.storageIOAllocation is None:
        limits = vim.StorageResourceManager.IOAllocationInfo(limit=-1, shares=disk.shares, reservation=0)
        disk.storageIOAllocation = limits
    unset(disk, nativeUnmanagedLinkedClone=False)
    if isinstance(disk.backing, FLAT):
        content = hashlib.blake2b(
            (disk.backing.uuid or disk.backing.fileName).encode(), digest_size=16
        ).hexdigest()
        unset(disk.backing, split=False, writeThrough=False, digestEnabled=False, sharing="sharingNone")
        unset(disk.backing, contentId=content, eagerlyScrub=False)


def _nic(nic: Any) -> None:
    if nic.resourceAllocation is None:
        share = vim.SharesInfo(shares=50, level="normal")
        nic.resourceAllocation = DEVICE.VirtualEthernetCard.ResourceAllocation(
            reservation=0, share=share, limit=-1
        )
    unset(nic, uptCompatibilityEnabled=True)
    if isinstance(nic.backing, DEVICE.VirtualEthernetCard.NetworkBackingInfo):
        unset(nic.backing, useAutoDetect=False)


def unset(thing: object, **values: object) -> None:
    """Set those of the fields that are unset."""
    for name, value in values.items():
        if getattr(thing, name) is None:
            setattr(thing, name, value)


def give_slots(devices: list[Any]) -> None:
    """Each PCI device's slot, as a machine's first start gives it; one that has a slot keeps it."""
    for kind, first, step in SLOTS:
        members = [each for each in devices if isinstance(each, kind)]
        taken = {each.slotInfo.pciSlotNumber for each in members if each.slotInfo}
        for each in members:
            if each.slotInfo is None:
                number = next(n for n in range(first, first + 1000 * step, step) if n not in taken)
                each.slotInfo = DEVICE.VirtualDevice.PciBusSlotInfo(pciSlotNumber=number)
                taken.add(number)
