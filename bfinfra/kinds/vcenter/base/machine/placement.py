"""Compares where a VM is with where its site wants it: what to move, what to relocate. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from bfinfra.backends.vcenter.places import Datastore, Host, Inventory
from bfinfra.backends.vcenter.vm import Relocation, Vm
from bfinfra.kinds.vcenter.base.datastores import store_of
from bfinfra.kinds.vcenter.base.machine.places import places_of
from bfinfra.kinds.vcenter.base.machine.steps import Move, Relocate
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.records import dataclass

UNSEEN = "out of sight"
"""Said of a place that is not in the inventory: another datacenter's, or hidden from the account."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """The ids of a VM's places. `cluster`, `host`, `datastore`: "" where they aren't compared; `disks`:
    address of each disk that the site lists → its datastore; `said`: field → what the site calls the place.
    """

    folder: str
    pool: str | Unknown
    cluster: str = ""
    host: str = ""
    datastore: str = ""
    disks: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True)
class Moves:
    """`changes` for people; `steps` in their order; `off`: the VM has to be off for them."""

    changes: tuple[Change, ...] = ()
    steps: tuple[Move | Relocate, ...] = ()
    off: bool = False


def moves(name: str, place: Place, machine: Vm, inventory: Inventory) -> Moves:
    """What to move. A VM in a vApp has neither a folder nor a pool of its own, and keeps them. A disk that
    the site doesn't list goes along if it lies beside the first one.
    """
    strays, fields = dict(_strays(place, machine, inventory)), [*_fields(place, machine, inventory)]
    if not (strays or fields):
        return Moves()
    changes = (*_changes(fields, place, machine, inventory), *_stored(place, machine, strays))
    found: list[Move | Relocate] = []
    if relocates := bool(strays or {"cluster", "host", "datastore"} & {*fields}):
        where, to = _relocation(place, machine, inventory, changes)
        found.append(Relocate(name=name, moid=machine.moid, where=where, to=to))
    if {"folder", "resource_pool"} & {*fields}:
        folder = place.folder if "folder" in fields else ""
        pool = place.pool if "resource_pool" in fields else ""
        found.append(Move(name=name, moid=machine.moid, folder=folder, pool=pool))
    off = relocates and (bool(machine.pci) or any(nic.rdma for nic in machine.nics))
    return Moves(changes=changes, steps=tuple(found), off=off)


def _fields(place: Place, machine: Vm, inventory: Inventory) -> Iterator[str]:
    host = inventory.by_moid.get(machine.host)
    leaves = bool(place.cluster) and isinstance(host, Host) and host.cluster != place.cluster
    if leaves:
        yield "cluster"
    if place.host and machine.host != place.host:
        yield "host"
    diskless = not machine.disks and bool(machine.datastores)
    if diskless and place.datastore and place.datastore not in machine.datastores:
        yield "datastore"
    if machine.folder and machine.folder != place.folder:
        yield "folder"
    if machine.pool and machine.pool != place.pool and not leaves:
        yield "resource_pool"


def _changes(fields: list[str], place: Place, machine: Vm, inventory: Inventory) -> Iterator[Change]:
    now, seen = places_of(machine, inventory), inventory.by_moid.keys()
    found = {
        "cluster": now.cluster,
        "host": now.host or UNSEEN,
        "datastore": now.datastore or UNSEEN,
        "folder": now.folder if machine.folder in seen else UNSEEN,
        "resource_pool": (now.pool or None) if machine.pool in seen else UNSEEN,
    }
    return (Change(each, found[each], place.said[each]) for each in fields)


def _stored(place: Place, machine: Vm, strays: Mapping[int, Datastore]) -> Iterator[Change]:
    found = {}
    for disk in machine.disks:
        if disk.key in strays:
            own = f"disks.{disk.address}.datastore"
            at = own if own in place.said else "datastore"
            found[at] = Change(at, strays[disk.key].name, place.said[at])
    yield from found.values()


def _strays(place: Place, machine: Vm, inventory: Inventory) -> Iterator[tuple[int, Datastore]]:
    """The keys of the site's disks that lie elsewhere, with the datastores where they lie."""
    for index, disk in enumerate(machine.disks):
        wanted = place.disks.get(disk.address, "" if index else place.datastore)
        store = store_of(disk, machine, inventory) if wanted and machine.datastores != {wanted} else None
        if store and store.moid != wanted:
            yield disk.key, store


def _relocation(
    place: Place, machine: Vm, inventory: Inventory, changes: tuple[Change, ...]
) -> tuple[str, Relocation | Unknown]:
    """Where it goes, in the site's words, and the relocation, whose disks are those that don't go along."""
    wanted = {
        each.field: str(each.wanted) for each in changes if each.field not in {"folder", "resource_pool"}
    }
    where = ", ".join(dict.fromkeys(wanted.values()))
    if isinstance(place.pool, Unknown) and "cluster" in wanted:
        return where, place.pool
    whole, first = (
        "datastore" in wanted,
        store_of(machine.disks[0], machine, inventory) if machine.disks else None,
    )
    disks = {}
    for disk in machine.disks:
        store = store_of(disk, machine, inventory)
        goes = place.disks.get(disk.address, store.moid if store and store != first else "")
        if goes and (goes != place.datastore if whole else store and store.moid != goes):
            disks[disk.key] = goes
    return where, Relocation(
        pool=str(place.pool) if "cluster" in wanted else "",
        host=place.host if "host" in wanted else "",
        datastore=place.datastore if whole else "",
        disks=disks,
    )
