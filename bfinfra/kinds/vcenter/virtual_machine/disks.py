"""The further disks of a VM: which to add, grow or delete. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from bfinfra.backends.vcenter.places import Inventory
from bfinfra.backends.vcenter.vm import Disk, Hardware, NewDisk, Vm
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine.hardware import grows
from bfinfra.kinds.vcenter.virtual_machine.home import datacenter_of
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import State
from bfinfra.model.compare import Change
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.units import bytes_text

FIRST = "scsi0:0"


@dataclass(frozen=True)
class Further:
    """`grow`: disk key → capacity in bytes."""

    changes: tuple[Change, ...] = ()
    add: tuple[NewDisk, ...] = ()
    grow: Mapping[int, int] = field(default_factory=dict)


def wanted(spec: Spec, inventory: Inventory) -> tuple[NewDisk, ...]:
    """All further disks, as new ones. Raises Refusal for a datastore that doesn't exist."""
    found, here = [], datacenter_of(spec, inventory)
    for address, disk in sorted(spec.disks.items()):
        at, moid = f"disks.{address}.datastore", ""
        if disk.datastore:
            moid = the(inventory.datastore(disk.datastore, here), "datastore", disk.datastore, at).moid
        found.append(NewDisk(address, disk.size, moid, disk.thin))
    return tuple(found)


def between(spec: Spec, machine: Vm, inventory: Inventory) -> Further:
    """The disks to add or grow. Raises Refusal if a disk would have to shrink, or has two sizes."""
    there = {disk.address: disk for disk in machine.disks if disk.address}
    changes, add, grow = [], [], dict[int, int]()
    for new in wanted(spec, inventory):
        at, now = f"disks.{new.address}", there.get(new.address)
        if now is None:
            add.append(new)
            changes.append(Change(f"{at}.size", None, bytes_text(new.capacity)))
            continue
        if spec.disk not in (None, new.capacity) and now == machine.disks[0]:
            raise Refusal(
                f"{new.address} is the first disk of {machine.name}",
                field=at,
                why="`disk` gives another size",
                next="leave one of them out",
            )
        if more := grows(now, new.capacity, machine.name, f"{at}.size"):
            grow |= more
            changes.append(Change(f"{at}.size", bytes_text(now.capacity), bytes_text(new.capacity)))
    return Further(tuple(changes), tuple(add), grow)


def gone(spec: Spec, state: State) -> Sequence[Disk]:
    """The disks that this site added or grew and that left the file. Raises Refusal for one whose `thin`
    changed, and for the first disk.
    """
    before, machine = state.applied.get("disks") or {}, state.machine
    for address, disk in spec.disks.items():
        if (old := before.get(address)) and old.get("thin", True) != disk.thin:
            raise Refusal(
                f"the disk {address} of {machine.name} exists already",
                field=f"disks.{address}.thin",
                why="how a disk takes space is decided when it is created",
                next="write it as it was, or convert the disk in vCenter first",
            )
    found = [disk for disk in machine.disks if disk.address in before and disk.address not in spec.disks]
    if any(disk.address == FIRST for disk in found):
        raise Refusal(
            f"{FIRST} of {machine.name} is deleted only with its VM",
            field="disks",
            why="the VM starts from it",
            next=f"write {FIRST} again",
        )
    return found


def fitted(hardware: Hardware, machine: Vm) -> Hardware:
    """The hardware with the disks that the VM turned out to have: they grow instead of being added."""
    there = {disk.address: disk for disk in machine.disks}
    grow = {
        there[new.address].key: new.capacity
        for new in hardware.add_disks
        if new.address in there and there[new.address].capacity < new.capacity
    }
    return replace(
        hardware,
        grow={**hardware.grow, **grow},
        add_disks=tuple(new for new in hardware.add_disks if new.address not in there),
    )
