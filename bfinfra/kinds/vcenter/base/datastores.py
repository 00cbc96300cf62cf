"""Whether disks fit on their datastores. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bfinfra.backends.vcenter.places import Datastore, Inventory
from bfinfra.backends.vcenter.vm import Disk
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.units import bytes_text


class Claim(NamedTuple):
    """A disk that shall be: its `capacity`, of which `more` is not taken yet, in bytes. `at`: where the site
    says so.
    """

    at: Spot
    store: Datastore
    capacity: int
    more: int
    thin: bool


def store_of(disk: Disk, inventory: Inventory) -> Datastore | None:
    """Where a disk lies, by its file: `[datastore] folder/name.vmdk`."""
    return inventory.datastore(disk.file[1:].partition("]")[0]) if disk.file.startswith("[") else None


def conflicts(claims: Iterable[Claim], *, freed: bool) -> Iterator[Conflict]:
    """A disk that is larger than its datastore, and disks that together want more than is free there.

    `freed`: something is to be deleted that may lie there; then too little room is only told.
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
        f"disks want {bytes_text(asked)} of {store.name}, where {bytes_text(store.free)} are free",
        tuple(each.at for each in rest),
        why=""
        if stops
        else "what is deleted first may make room"
        if freed
        else "thin disks take room as they fill, and all that lies there stops once it is full",
        next="free some, make the disks smaller, or use another datastore",
        stops=stops,
    )
