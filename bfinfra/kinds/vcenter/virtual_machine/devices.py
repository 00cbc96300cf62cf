"""Compares the adapters, vGPUs and disks of an existing VM with the spec: the differences, and the one
reconfiguration that removes them. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from bfinfra.backends.vcenter.places import Inventory
from bfinfra.backends.vcenter.vm import Attach, Attached, Disk, Hardware, NewDisk, Vm
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine.devices import Adapter, Difference, adapters, attached
from bfinfra.kinds.vcenter.base.machine.hardware import grows
from bfinfra.kinds.vcenter.virtual_machine.home import datacenter_of
from bfinfra.kinds.vcenter.virtual_machine.spec import Adapter as AdapterSpec
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import State
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.units import bytes_text

FIRST = "scsi0:0"


def resolved(spec: Spec, context: PlanContext) -> tuple[Adapter, ...]:
    """The adapters. Raises Refusal for a network that doesn't exist, or that PVRDMA can't use."""
    inventory: Inventory = context.facts.inventory
    here = datacenter_of(spec, inventory)
    return tuple(
        Adapter(
            at=f"adapters.{index}",
            network=_place(index, each, here, inventory, context),
            name=each.network,
            mac=each.mac or "",
            rdma=each.rdma,
        )
        for index, each in enumerate(spec.adapters)
    )


def _place(
    index: int, adapter: AdapterSpec, datacenter: str, inventory: Inventory, context: PlanContext
) -> str | Unknown:
    at = f"adapters.{index}.network"
    need = context.needs.get(at)
    if need is not None and need.state is not None:
        return str(need.state.group.moid)
    if need is not None and need.spec is not None:
        return Unknown(need.key, "group")
    found = the(inventory.network(adapter.network, datacenter), "network", adapter.network, at)
    if adapter.type == "pvrdma" and not found.distributed:
        raise Refusal(
            f"{adapter.network} is no distributed port group",
            field=at,
            why="PVRDMA needs a distributed switch",
        )
    return found.moid


def between(spec: Spec, machine: Vm, context: PlanContext) -> Difference:
    """The differences in devices."""
    inventory: Inventory = context.facts.inventory
    nics = adapters(machine.nics, resolved(spec, context), inventory)
    wanted = [Attach(profile=profile) for profile in spec.vgpus]
    gpus, grow = attached("vgpus", vgpus_alone(machine), wanted), grown(spec, machine)
    first = (
        [Change("disk", bytes_text(machine.disks[0].capacity), bytes_text(spec.disk or 0))] if grow else []
    )
    more = disks_between(spec, machine, inventory)
    return Difference(
        changes=(*nics.changes, *gpus.changes, *first, *more.changes),
        hardware={
            **nics.hardware,
            **gpus.hardware,
            "grow": {**grow, **more.grow},
            "add_disks": more.add,
            "drop": (*gpus.hardware.get("drop", ()), *nics.hardware["drop"]),
        },
        off=nics.off or gpus.off,
        later=nics.later,
    )


def vgpus_alone(machine: Vm) -> list[Attached]:
    """The vGPUs that are in no device group."""
    return [each for each in machine.pci if each.way == "vgpu" and not each.grouped]


def grown(spec: Spec, machine: Vm) -> dict[int, int]:
    """Disk key → capacity in bytes, if the first disk of a VM or template has to grow, which may happen while
    the VM runs.
    """
    first = next(iter(machine.disks), None)
    if spec.disk is None:
        return {}
    if first is None:
        raise Refusal(
            f"{machine.name} has no disk", field="disk", why="so none can grow", next="leave it out"
        )
    return grows(first, spec.disk, machine.name, "disk")


@dataclass(frozen=True)
class Further:
    """`grow`: disk key → capacity in bytes."""

    changes: tuple[Change, ...] = ()
    add: tuple[NewDisk, ...] = ()
    grow: Mapping[int, int] = field(default_factory=dict)


def new_disks(spec: Spec, inventory: Inventory) -> tuple[NewDisk, ...]:
    """All further disks, as new ones. Raises Refusal for a datastore that doesn't exist."""
    found, here = [], datacenter_of(spec, inventory)
    for address, disk in sorted(spec.disks.items()):
        at, moid = f"disks.{address}.datastore", ""
        if disk.datastore:
            moid = the(inventory.datastore(disk.datastore, here), "datastore", disk.datastore, at).moid
        found.append(NewDisk(address, disk.size, moid, disk.thin))
    return tuple(found)


def disks_between(spec: Spec, machine: Vm, inventory: Inventory) -> Further:
    """The disks to add or grow. Raises Refusal if a disk would have to shrink, or has two sizes."""
    there = {disk.address: disk for disk in machine.disks if disk.address}
    changes, add, grow = [], [], dict[int, int]()
    for new in new_disks(spec, inventory):
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
