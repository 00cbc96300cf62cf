"""Reads the fixed part of the inventory: clusters, hosts, datastores, networks, folders, pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyVmomi import vim

from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.places import (
    ROOT,
    Cluster,
    Datastore,
    Folder,
    Found,
    Host,
    Inventory,
    Network,
    Pool,
    Several,
    Thing,
    called,
    lookup,
)
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import Rejected

GROUP = vim.dvs.DistributedVirtualPortgroup
PATHS: Mapping[type[Any], Sequence[str]] = {
    vim.Datacenter: ["name", "parent", "vmFolder"],
    vim.ComputeResource: ["name", "parent", "resourcePool", "environmentBrowser", "datastore", "network"],
    vim.HostSystem: ["name", "parent", "runtime.connectionState", "runtime.inMaintenanceMode"],
    vim.Datastore: ["name", "parent", "summary.freeSpace", "summary.capacity", "summary.accessible", "host"],
    vim.Network: ["name", "parent", "host"],
    GROUP: ["config.distributedVirtualSwitch"],
    vim.DistributedVirtualSwitch: ["name"],
    vim.Folder: ["name", "parent"],
    vim.ResourcePool: ["name", "parent", "owner"],
}
ABOVE_POOLS = (vim.Datacenter, vim.Folder, vim.ComputeResource, vim.ResourcePool)


DEEPEST = 100  # levels of folders and pools; ends a circle


class NoDatacenter(Rejected):
    """The site names a datacenter that doesn't exist, or a name that several have."""


class Inventories:
    """Reads inventories. Use one inventory for one decision."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def read(self) -> Inventory:
        """The whole inventory, in one bulk read. Raises NoDatacenter if the site's doesn't exist."""
        rows = self._session.read(
            lambda content: properties.below(content, content.rootFolder, PATHS, properties.whole)
        )
        return _assemble(rows, self._session)

    def pools(self) -> Inventory:
        """Only the clusters and their pools. Raises NoDatacenter if the site's datacenter doesn't exist."""
        asked = {sort: PATHS[sort] for sort in ABOVE_POOLS}
        rows = self._session.read(
            lambda content: properties.below(content, content.rootFolder, asked, properties.whole)
        )
        return _assemble(rows, self._session)

    def clusters(self, names: Mapping[str, str], texts: Iterable[str]) -> Sequence[Thing]:
        """The clusters among which a site's `texts` are looked up. `names`: theirs, by id. Paths are read
        where a name is not enough; then only those in the site's datacenter are left.
        """
        if len({*names.values()}) == len(names) and not any("/" in each for each in texts):
            return [Thing(moid=moid, name=name) for moid, name in names.items()]
        return [each for each in self.pools().clusters if each.moid in names]


def datacenters(rows: Sequence[Row], paths: Paths, session: SoapSession) -> tuple[Thing, ...]:
    """The datacenters of a read: the one that the site names, or all. Raises NoDatacenter."""
    centers = tuple(
        Thing(moid=r.moid, name=r.name, datacenter=paths.of(r), ref=r.ref, where=paths.of(r))
        for r in rows
        if isinstance(r.ref, vim.Datacenter)
    )
    text = session.settings.datacenter
    if not text:
        return centers
    found = lookup(centers, text)
    if isinstance(found, Found):
        return (found.thing,)
    if isinstance(found, Several):
        raise NoDatacenter(
            f"{len(found.paths)} datacenters are called {text}",
            server=session.server,
            why=", ".join(found.paths),
            next="write the path of the one that is meant as vcenter.datacenter",
        )
    raise NoDatacenter(
        f"there is no datacenter {text}",
        server=session.server,
        why=f"there are: {', '.join(sorted(called(centers).values())) or 'none'}",
        next="correct vcenter.datacenter",
    )


def _assemble(rows: Sequence[Row], session: SoapSession) -> Inventory:
    paths = Paths(rows)
    homes = {row.moid: paths.datacenter(row) for row in rows}
    centers = datacenters(rows, paths, session)
    only = centers[0].where if session.settings.datacenter else ""
    here = [r for r in rows if not only or homes[r.moid] == only]

    switches = {row.moid: _name(row) for row in rows if isinstance(row.ref, vim.DistributedVirtualSwitch)}

    def base(row: Row) -> dict[str, Any]:
        return {
            "moid": row.moid,
            "name": _name(row),
            "datacenter": homes[row.moid],
            "where": paths.of(row),
            "ref": row.ref,
        }

    def all_of(kind: type[Any]) -> list[Row]:
        return [row for row in here if isinstance(row.ref, kind)]

    return Inventory(
        tuple(
            Cluster(**base(r), pool=refs.moid(r["resourcePool"]), browser=r["environmentBrowser"])
            for r in all_of(vim.ComputeResource)
        ),
        tuple(_host(r, base(r)) for r in all_of(vim.HostSystem)),
        tuple(_datastore(r, base(r)) for r in all_of(vim.Datastore)),
        tuple(
            Network(
                **base(r),
                distributed=isinstance(r.ref, GROUP),
                hosts=_ids(r["host"]),
                switch=switches.get(refs.moid(r["config.distributedVirtualSwitch"]), ""),
            )
            for r in all_of(vim.Network)
        ),
        tuple(Folder(**base(r), path=paths.below(r)) for r in all_of(vim.Folder)),
        tuple(
            Pool(**base(r), owner=refs.moid(r["owner"]), root=isinstance(r["parent"], vim.ComputeResource))
            for r in all_of(vim.ResourcePool)
        ),
        centers,
    )


def _host(row: Row, base: dict[str, Any]) -> Host:
    return Host(
        **base,
        cluster=refs.moid(row["parent"]),
        connected=row["runtime.connectionState"] == "connected",
        maintenance=bool(row["runtime.inMaintenanceMode"]),
    )


def _datastore(row: Row, base: dict[str, Any]) -> Datastore:
    return Datastore(
        **base,
        free=row["summary.freeSpace"] or 0,
        capacity=row["summary.capacity"] or 0,
        accessible=bool(row["summary.accessible"]),
        hosts=_ids(m.key for m in row["host"] or ()),
    )


def _name(row: Row) -> str:
    return row.name


def _ids(things: Any) -> frozenset[str]:
    return frozenset(refs.moid(thing) for thing in things or ())


class Paths:
    """The paths of objects that one read has brought, with their folders and datacenters."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._by_id = {row.moid: row for row in rows}
        self._known: dict[str, str] = {}

    def of(self, row: Row) -> str:
        """The path of an object, such as `/DC0/vm/gpu`; the root folder for VMs is `vm` whatever its name."""
        parent = self._parent(row)
        if parent is None:
            return f"/{_name(row)}"
        if parent.moid not in self._known:
            self._known[parent.moid] = ""  # ends a circle
            self._known[parent.moid] = self.of(parent)
        root = isinstance(parent.ref, vim.Datacenter) and refs.moid(parent["vmFolder"]) == row.moid
        return f"{self._known[parent.moid]}/{ROOT if root else _name(row)}"

    def datacenter(self, row: Row) -> str:
        """The path of the datacenter that has an object, or is it."""
        center = self._center(row)
        return self.of(center) if center else ""

    def below(self, row: Row) -> str:
        """The path of an object within its datacenter."""
        center = self._center(row)
        return self.of(row).removeprefix(self.of(center) if center else "").strip("/")

    def _parent(self, row: Row) -> Row | None:
        return self._by_id.get(refs.moid(row["parent"]))

    def _center(self, row: Row) -> Row | None:
        at: Row | None = row
        for _ in range(DEEPEST):
            if at is None or isinstance(at.ref, vim.Datacenter):
                return at
            at = self._parent(at)
        return None
