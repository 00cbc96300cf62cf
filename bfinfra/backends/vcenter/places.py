"""The places of VMs, as plain values: clusters, hosts, datastores, networks, folders, pools; and the one
lookup of an object by what a site calls it. Light, as reading a site imports it.

A name is unique in its folder, switch or parent only (vSphere API, Folder: DuplicateName).
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Generic, TypeVar

from bfinfra.model.records import dataclass

ROOT = "vm"
"""The datacenter's root folder for VMs in `Folder.path`, whatever it is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """An object of the inventory. `ref`: the server's object, for this package only; `where`: its path, such
    as `/DC0/host/gpu/farm`; `datacenter`: the path of its datacenter.
    """

    moid: str
    name: str
    datacenter: str = ""
    ref: Any = field(repr=False, compare=False, default=None)
    where: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that lead to it. The first one is its own alone."""
        return (self.where or self.name,)

    def is_called(self, text: str) -> bool:
        """Whether a site means it: by its name, its path, or the end of its path. A name may hold slashes: a
        part of it means nothing.
        """
        end = f"/{text.lstrip('/')}"
        return self.name == text or (
            end.endswith(f"/{self.name}") and any(f"/{each}".endswith(end) for each in self.paths)
        )


@dataclass(frozen=True, kw_only=True)
class Cluster(Thing):
    """A cluster, or a standalone host. `pool`: its root resource pool's id."""

    pool: str
    browser: Any = field(repr=False, compare=False, default=None)


@dataclass(frozen=True, kw_only=True)
class Host(Thing):
    """`cluster`: id of its cluster."""

    cluster: str
    connected: bool
    maintenance: bool


@dataclass(frozen=True, kw_only=True)
class Datastore(Thing):
    """Sizes in bytes; `hosts`: ids of the hosts with access."""

    free: int
    capacity: int
    accessible: bool
    hosts: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Network(Thing):
    """`distributed`: a port group of a distributed switch; `switch`: that switch's name."""

    distributed: bool
    hosts: frozenset[str]
    switch: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The path with its switch first: two switches of a folder may have port groups of one name."""
        home, _, name = self.where.rpartition("/")
        return (f"{home}/{self.switch}/{name}", self.where) if self.switch else (self.where or self.name,)


@dataclass(frozen=True, kw_only=True)
class Folder(Thing):
    """`path` within its datacenter, such as `vm/gpu`."""

    path: str


@dataclass(frozen=True, kw_only=True)
class Pool(Thing):
    """`owner`: id of its cluster; `root` for the cluster's own."""

    owner: str
    root: bool


@dataclass(frozen=True, slots=True)
class Allocation:
    """A resource pool's share of CPU (MHz) or memory (MiB).

    `limit`: None for none; `shares`: low, normal, high, or a number; `expandable`: whether the reservation
    may grow into the parent's.
    """

    reservation: int = 0
    limit: int | None = None
    shares: str | int = "normal"
    expandable: bool = True


@dataclass(frozen=True, kw_only=True)
class ResourcePool(Thing):
    """A pool below another one. `owner`: id of its cluster; `parent`: id of its parent; `vms`: ids; `note`:
    bfinfra's note on it.
    """

    owner: str
    parent: str
    cpu: Allocation
    memory: Allocation
    vms: tuple[str, ...] = ()
    note: str = ""
    version: str = field(repr=False, compare=False, default="")
    """Of its configuration."""


E = TypeVar("E", bound=Thing)
F_co = TypeVar("F_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Found(Generic[F_co]):
    """The one object that is meant."""

    thing: F_co


@dataclass(frozen=True, slots=True)
class Nowhere:
    """No object of that name or path. `known`: the names, or paths, that there are."""

    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Several:
    """More than one; `paths`: where they are."""

    paths: tuple[str, ...]


Lookup = Found[F_co] | Nowhere | Several
"""What a name or a path leads to."""


def lookup(things: Iterable[E], text: str) -> Lookup[E]:
    """The object among `things` that a name or a path means."""
    every = list(things)
    exact = [each for each in every if text == each.paths[0]]
    found = exact or [each for each in every if each.is_called(text)]
    if len(found) == 1:
        return Found(found[0])
    if found:
        return Several(tuple(sorted(each.paths[0] for each in found)))
    return Nowhere(tuple(each.paths[0] if text.startswith("/") else each.name for each in every))


def called(things: Iterable[Thing]) -> dict[str, str]:
    """What a site calls each of these, by id: its name, or its path where others have the name; "" where
    nothing means it alone.
    """
    every = list(things)
    named = Counter(each.name for each in every)
    return {
        each.moid: each.name if named[each.name] == 1 and "/" not in each.name else _own(each, every)
        for each in every
    }


def meant(things: Iterable[E], texts: Iterable[str]) -> dict[str, E]:
    """The things by what a site calls them: each of its `texts` that leads to one, and see `called`."""
    every = list(things)
    names = called(every)
    found = {names[each.moid]: each for each in every if names[each.moid]}
    return found | {text: each for text in dict.fromkeys(texts) if (each := only(lookup(every, text)))}


def _own(thing: Thing, every: Iterable[Thing]) -> str:
    texts = (thing.name, *thing.paths)
    return next((text for text in texts if only(lookup(every, text)) is thing), "")


def only(found: Lookup[F_co]) -> F_co | None:
    """The object, if there is exactly one."""
    return found.thing if isinstance(found, Found) else None


@dataclass(frozen=True)
class Inventory:
    """The result of one read: the objects of the site's datacenter, or of all where it names none."""

    clusters: tuple[Cluster, ...] = ()
    hosts: tuple[Host, ...] = ()
    datastores: tuple[Datastore, ...] = ()
    networks: tuple[Network, ...] = ()
    folders: tuple[Folder, ...] = ()
    pools: tuple[Pool, ...] = ()
    datacenters: tuple[Thing, ...] = ()

    @cached_property
    def called(self) -> Mapping[str, str]:
        """What a site calls the places of VMs, by id; pools among those of their cluster."""
        every: tuple[tuple[Thing, ...], ...] = (self.clusters, self.hosts, self.datastores, self.networks)
        pools = (
            called(p for p in self.pools if p.owner == cluster.moid and not p.root)
            for cluster in self.clusters
        )
        return ChainMap(*map(called, every), *pools)

    @cached_property
    def by_moid(self) -> Mapping[str, Thing]:
        """All objects by their ids."""
        everything: tuple[tuple[Thing, ...], ...] = (
            self.clusters,
            self.hosts,
            self.datastores,
            self.networks,
            self.folders,
            self.pools,
            self.datacenters,
        )
        return {thing.moid: thing for things in everything for thing in things}

    def cluster(self, text: str) -> Lookup[Cluster]:
        """A cluster by its name or path. `datacenter` below: the path of the one to look in, "" for all."""
        return lookup(self.clusters, text)

    def host(self, text: str, datacenter: str = "") -> Lookup[Host]:
        """A host."""
        return lookup(_within(self.hosts, datacenter), text)

    def datastore(self, text: str, datacenter: str = "") -> Lookup[Datastore]:
        """A datastore."""
        return lookup(_within(self.datastores, datacenter), text)

    def network(self, text: str, datacenter: str = "") -> Lookup[Network]:
        """A network or distributed port group; `switch/port group`, too."""
        return lookup(_within(self.networks, datacenter), text)

    def pool(self, text: str, cluster: str) -> Lookup[Pool]:
        """A resource pool below the cluster with that id; `parent/pool`, too."""
        return lookup((p for p in self.pools if p.owner == cluster and not p.root), text)

    def folder(self, text: str, datacenter: str = "") -> Lookup[Folder]:
        """The VM folder at a path below the datacenter's root for VMs (`gpu/bitfusion`; "": the root)."""
        below = [f for f in _within(self.folders, datacenter) if f"{f.path}/".startswith(f"{ROOT}/")]
        full = f"{ROOT}/{text.strip('/')}".rstrip("/")
        found = [f for f in below if f.path == full or (text and f.where == text)]
        if len(found) == 1:
            return Found(found[0])
        known = tuple(f.path.removeprefix(f"{ROOT}/") for f in below if f.path != ROOT)
        return Several(tuple(sorted(f.where for f in found))) if found else Nowhere(known)

    def home(self, folder: str) -> str:
        """The path of the VM folder with that id; "" if it is not in this inventory."""
        return next((f.where for f in self.folders if f.moid == folder), "")


def _within(things: Iterable[E], datacenter: str) -> list[E]:
    return [thing for thing in things if not datacenter or thing.datacenter == datacenter]
