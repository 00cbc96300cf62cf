"""Asks vCenter which privileges the logged-in account lacks."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.inventory import Inventories
from bfinfra.backends.vcenter.places import Inventory, Thing
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.rights import ROOT, Entity

Needed = Mapping[Entity, Sequence[str]]


class Grants:
    """Reads privileges. Raises RemoteError."""

    def __init__(self, session: SoapSession, inventory: Inventories) -> None:
        self._session = session
        self._inventory = inventory

    def lacking(self, wanted: Needed) -> dict[str, tuple[str, ...]]:
        """Inventory path → missing privileges; () for a path without an object."""
        inventory, text = self._inventory.read(), self._session.settings.datacenter
        there = list(_paths(inventory))
        found: dict[str, tuple[str, ...]] = {}
        for entity, privileges in wanted.items():
            whole = _whole(entity.path, f"/{text.strip('/')}", inventory) if text else entity.path
            fitting = {
                refs.moid(ref): (path, ref)
                for kind, path, ref in reversed(there)
                if kind == entity.type and fnmatch.fnmatchcase(path, whole)
            }
            if entity.path != ROOT.path and not fitting:
                found[entity.path] = ()
            elif missing := self._missing(dict(fitting.values()), entity, privileges):
                found |= missing
        return found

    def _missing(
        self, there: Mapping[str, Any], entity: Entity, privileges: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        def ask(content: Any) -> list[Any]:
            user = properties.one(content, content.sessionManager, ["currentSession"])[
                "currentSession"
            ].userName
            refs = list(there.values()) or [content.rootFolder]
            return list(content.authorizationManager.HasUserPrivilegeOnEntities(refs, user, list(privileges)))

        answers = self._session.read(ask)
        return {
            path: lacks
            for path, answer in zip(there or [entity.path], answers, strict=True)
            if (lacks := tuple(each.privId for each in answer.privAvailability if not each.isGranted))
        }


def _whole(path: str, text: str, inventory: Inventory) -> str:
    """The path from the root folder on, of one that begins with what the site calls its datacenter."""
    below = f"{path}/".startswith(f"{text}/")
    return inventory.datacenters[0].where + path.removeprefix(text) if below else path


def _paths(inventory: Inventory) -> Iterator[tuple[str, str, Any]]:
    """Type, inventory path and reference, as rights name places: without folders made by users, and then with
    them.
    """
    for center in inventory.datacenters:
        yield "Datacenter", center.where, center.ref
    clusters = {each.moid: each for each in inventory.clusters}
    for cluster in inventory.clusters:
        yield "ClusterComputeResource", f"{cluster.datacenter}/host/{cluster.name}", cluster.ref
    for host in inventory.hosts:
        home = clusters[host.cluster].name if host.cluster in clusters else host.name
        yield "HostSystem", f"{host.datacenter}/host/{home}/{host.name}", host.ref
    for pool in inventory.pools:
        if pool.owner in clusters:
            yield (
                "ResourcePool",
                f"{pool.datacenter}/host/{clusters[pool.owner].name}/Resources"
                + ("" if pool.root else f"/{pool.name}"),
                pool.ref,
            )
    for store in inventory.datastores:
        yield "Datastore", f"{store.datacenter}/datastore/{store.name}", store.ref
    for network in inventory.networks:
        yield "Network", f"{network.datacenter}/network/{network.name}", network.ref
    for folder in inventory.folders:
        yield "Folder", f"{folder.datacenter}/{folder.path}", folder.ref
    every: Mapping[str, Iterable[Thing]] = {
        "ClusterComputeResource": inventory.clusters,
        "HostSystem": inventory.hosts,
        "ResourcePool": inventory.pools,
        "Datastore": inventory.datastores,
        "Network": inventory.networks,
    }
    for kind, things in every.items():
        yield from ((kind, path, each.ref) for each in things for path in each.paths)
