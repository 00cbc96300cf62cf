"""Compares the adapters, vGPUs and first disk of an existing VM with the spec: the differences, and the one
reconfiguration that removes them. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from bfinfra.backends.vcenter.places import Inventory
from bfinfra.backends.vcenter.vm import Attach, Attached, Nic, Vm
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine.hardware import grows
from bfinfra.kinds.vcenter.virtual_machine import disks
from bfinfra.kinds.vcenter.virtual_machine.home import datacenter_of
from bfinfra.kinds.vcenter.virtual_machine.spec import Adapter, Spec
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.units import bytes_text

Place = str | Unknown
"""The id of a network; Unknown if this site has still to make the port group."""


@dataclass(frozen=True)
class Difference:
    """`changes` for people, `hardware` the fields of the reconfiguration; `off`: the VM must be off for it;
    `later`: the object that this site has still to make first.
    """

    changes: tuple[Change, ...] = ()
    hardware: Mapping[str, Any] = field(default_factory=dict)
    off: bool = False
    later: Unknown | None = None


def places(spec: Spec, context: PlanContext) -> tuple[Place, ...]:
    """The network of each adapter. Raises Refusal if it doesn't exist, or if PVRDMA can't use it."""
    inventory: Inventory = context.facts.inventory
    here = datacenter_of(spec, inventory)
    return tuple(
        _place(index, adapter, here, inventory, context) for index, adapter in enumerate(spec.adapters)
    )


def _place(
    index: int, adapter: Adapter, datacenter: str, inventory: Inventory, context: PlanContext
) -> Place:
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


def adapters(spec: Spec, where: Sequence[Place]) -> dict[str, Any]:
    """The fields of the adapters for a VM that has none yet."""
    return _added([(adapter, place) for adapter, place in zip(spec.adapters, where, strict=True)])


def _added(pairs: Sequence[tuple[Adapter, Place]]) -> dict[str, Any]:
    plain, rdma = ([pair for pair in pairs if bool(pair[0].rdma) is which] for which in (False, True))
    return {
        "add_nics": tuple(place for _, place in plain),
        "add_rdma": {place: adapter.rdma for adapter, place in rdma},
        "add_macs": tuple(adapter.mac or "" for adapter, _ in (*plain, *rdma)),
    }


def between(spec: Spec, machine: Vm, context: PlanContext) -> Difference:
    """The differences in devices. An adapter with the wanted MAC address is taken first, then one on the
    right network. Of the others, one of the same type is moved before one is added.
    """
    nics, gpus, disk = (
        _compared(spec, machine, places(spec, context), context.facts.inventory),
        _vgpus(spec, machine),
        _disk(spec, machine),
    )
    more = disks.between(spec, machine, context.facts.inventory)
    parts = (nics, gpus, disk)
    return Difference(
        (*(change for part in parts for change in part.changes), *more.changes),
        {
            "grow": {**disk.hardware.get("grow", {}), **more.grow},
            "add_disks": more.add,
            **gpus.hardware,
            **nics.hardware,
            "drop": (*gpus.hardware.get("drop", ()), *nics.hardware.get("drop", ())),
        },
        any(part.off for part in parts),
        nics.later,
    )


def _compared(spec: Spec, machine: Vm, where: Sequence[Place], inventory: Inventory) -> Difference:
    kept = _kept(spec.adapters, where, machine.nics)
    left = [nic for nic in machine.nics if nic not in kept.values()]
    new = [index for index in range(len(spec.adapters)) if index not in kept]
    moved = [(index, nic) for index, nic in kept.items() if nic.network != where[index]]
    macs = [
        (nic, index, mac)
        for index, nic in kept.items()
        if (mac := spec.adapters[index].mac) and mac != nic.mac.lower()
    ]
    names = {network.moid: network.name for network in inventory.networks}
    changes = [
        Change(f"adapters.{index}.network", names.get(nic.network, nic.network), spec.adapters[index].network)
        for index, nic in moved
    ]
    changes += [Change(f"adapters.{index}.mac", nic.mac, mac) for nic, index, mac in macs]
    changes += [
        Change(f"adapters.{index}", None, _text(spec.adapters[index].network, spec.adapters[index].rdma))
        for index in new
    ]
    changes += [
        Change(f"adapters.{nic.label or nic.key}", _text(names.get(nic.network, nic.network), nic.rdma), None)
        for nic in left
    ]
    given = {
        "nics": {nic.key: where[index] for index, nic in moved},
        "macs": {nic.key: mac for nic, _, mac in macs},
        "drop": tuple(nic.key for nic in left),
        **_added([(spec.adapters[index], where[index]) for index in new]),
    }
    later = next(
        (
            place
            for index in (*new, *(index for index, _ in moved))
            if isinstance(place := where[index], Unknown)
        ),
        None,
    )
    off = bool(new or left or macs) or any(nic.rdma for _, nic in moved)
    return Difference(tuple(changes), given, off, later)


def _kept(adapters: Sequence[Adapter], where: Sequence[Place], nics: Sequence[Nic]) -> dict[int, Nic]:
    """The adapter of the VM for each of the site's that has one."""
    found, left = dict[int, Nic](), list(nics)
    fits: tuple[Callable[[Nic, int], bool], ...] = (
        lambda nic, index: nic.mac.lower() == adapters[index].mac,
        lambda nic, index: nic.network == where[index],
        lambda *_: True,
    )
    for fit in fits:
        for index, adapter in enumerate(adapters):
            fitting = (nic for nic in left if nic.rdma == adapter.rdma and fit(nic, index))
            if index not in found and (nic := next(fitting, None)) is not None:
                found[index] = nic
                left.remove(nic)
    return dict(sorted(found.items()))


def _text(network: str, rdma: str) -> str:
    return f"{network} ({rdma})" if rdma else network


def vgpus_alone(machine: Vm) -> list[Attached]:
    """The vGPUs that are in no device group."""
    return [each for each in machine.pci if each.way == "vgpu" and not each.grouped]


def _vgpus(spec: Spec, machine: Vm) -> Difference:
    now = vgpus_alone(machine)
    missing, drop = Counter(spec.vgpus), []
    for each in now:
        if missing[each.profile] > 0:
            missing[each.profile] -= 1
        else:
            drop.append(each.key)
    attach = tuple(Attach(profile=profile) for profile in missing.elements())
    changes = (
        (Change("vgpus", sorted(each.profile for each in now), sorted(spec.vgpus)),) if attach or drop else ()
    )
    return Difference(changes, {"attach": attach, "drop": tuple(drop)}, bool(changes))


def _disk(spec: Spec, machine: Vm) -> Difference:
    grow = grown(spec, machine)
    now = machine.disks[0].capacity if grow else 0
    return (
        Difference((Change("disk", bytes_text(now), bytes_text(spec.disk or 0)),), {"grow": grow})
        if grow
        else Difference()
    )


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
