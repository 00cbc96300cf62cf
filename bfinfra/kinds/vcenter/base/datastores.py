"""Checks whether disks fit on their datastores. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bfinfra.backends.vcenter.places import Datastore, Inventory
from bfinfra.backends.vcenter.vm import Disk, Vm
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.units import bytes_text


class Claim(NamedTuple):
    """A disk to create or grow: its `capacity`, and the `more` bytes of it that are not allocated yet, both
    in bytes. `at`: the field of the site that asks for it.
    """

    at: Spot
    store: Datastore
    capacity: int
    more: int
    thin: bool


def store_of(disk: Disk, machine: Vm, inventory: Inventory) -> Datastore | None:
    """The datastore that holds a disk of a VM, from its file `[datastore] folder/name.vmdk`; None if it is
    not known.
    """
    if not disk.file.startswith("["):
        return None
    name = disk.file[1:].partition("]")[0]
    named = [each for each in inventory.datastores if each.name == name]
    return next((each for each in named if each.moid in machine.datastores or len(named) == 1), None)


def conflicts(claims: Iterable[Claim], *, freed: bool) -> Iterator[Conflict]:
    """Disks that are larger than their datastore, and disks that together need more than it has free.
    `freed`: the plan deletes something that may be on the datastore; then too little space is only a warning.
    """
    on: dict[str, list[Claim]] = {}
    for claim in claims:
        if claim.store.accessible and claim.store.capacity:
            on.setdefault(claim.store.moid, []).append(claim)
    for found in on.values():
        store, large = found[0].store, [each for each in found if each.capacity > each.store.capacity]
        for each in large:
            yield Conflict(
                each.at,
                (
                    f"a disk of {bytes_text(each.capacity)} does not fit on {store.name}, which has "
                    f"{bytes_text(store.capacity)}"
                ),
                next="make it smaller, or use another datastore",
            )
        if not large and sum(each.more for each in found) > store.free:
            yield _full(store, found, freed=freed)


def _full(store: Datastore, found: list[Claim], *, freed: bool) -> Conflict:
    asked, thick = sum(each.more for each in found), sum(each.more for each in found if not each.thin)
    first, *rest = sorted((each for each in found if each.more), key=lambda each: (-each.more, each.at))
    stops = thick > store.free and not freed
    return Conflict(
        first.at,
        f"disks need {bytes_text(asked)} of {store.name}, where {bytes_text(store.free)} are free",
        tuple(each.at for each in rest),
        why=""
        if stops
        else "what this plan deletes first may free enough"
        if freed
        else "thin disks take space as they fill, and every VM on the datastore stops once it is full",
        next="free some space, make the disks smaller, or use another datastore",
        stops=stops,
    )
