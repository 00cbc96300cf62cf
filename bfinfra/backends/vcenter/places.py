"""The places of VMs, as plain values: clusters, hosts, datastores, networks, folders, pools. Light, as
reading a site imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, TypeVar

from bfinfra.model.errors import Rejected
from bfinfra.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """An object of the inventory. `ref`: the server's object, for this package only."""

    moid: str
    name: str
    datacenter: str = ""
    ref: Any = field(repr=False, compare=False, default=None)


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
    """`distributed`: a port group of a distributed switch."""

    distributed: bool
    hosts: frozenset[str]


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


E = TypeVar("E", bound=Thing)


@dataclass(frozen=True)
class Inventory:
    """The result of one read. Each mapping has all objects of a name in the site's datacenter."""

    clusters: tuple[Cluster, ...] = ()
    hosts: tuple[Host, ...] = ()
    datastores: tuple[Datastore, ...] = ()
    networks: tuple[Network, ...] = ()
    folders: tuple[Folder, ...] = ()
    pools: tuple[Pool, ...] = ()
    datacenters: tuple[Thing, ...] = ()

    @property
    def moids(self) -> frozenset[str]:
        """The ids of all objects."""
        everything: tuple[tuple[Thing, ...], ...] = (
            self.clusters,
            self.hosts,
            self.datastores,
            self.networks,
            self.folders,
            self.pools,
            self.datacenters,
        )
        return frozenset(thing.moid for things in everything for thing in things)

    def cluster(self, name: str) -> Cluster | None:
        """The cluster with that name. Raises Rejected if there are several, as all methods below do."""
        return _only(self.clusters, name, "clusters")

    def host(self, name: str) -> Host | None:
        """The host of that name."""
        return _only(self.hosts, name, "hosts")

    def datastore(self, name: str) -> Datastore | None:
        """The datastore of that name."""
        return _only(self.datastores, name, "datastores")

    def network(self, name: str) -> Network | None:
        """The network or distributed port group of that name."""
        return _only(self.networks, name, "networks")

    def pool(self, name: str, cluster: str) -> Pool | None:
        """The resource pool with that name in the cluster with that id; for "" the cluster's own."""
        here = [p for p in self.pools if p.owner == cluster and (p.root if not name else p.name == name)]
        return _only(here, name or "Resources", "resource pools") if name else next(iter(here), None)

    def folder(self, path: str, datacenter: str) -> Folder | None:
        """The VM folder at that path (`gpu/bitfusion`; "": the datacenter's root for VMs)."""
        full = f"vm/{path.strip('/')}".rstrip("/")
        return next((f for f in self.folders if f.datacenter == datacenter and f.path == full), None)


def _only(things: Sequence[E], name: str, what: str) -> E | None:
    found = [t for t in things if t.name == name]
    if len(found) > 1:
        homes = ", ".join(sorted({t.datacenter for t in found}))
        raise Rejected(
            f"{len(found)} {what} have the name {name}",
            why=f"in {homes}",
            next="write vcenter.datacenter to say which is meant",
        )
    return found[0] if found else None
