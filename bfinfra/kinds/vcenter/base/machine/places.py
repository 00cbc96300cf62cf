"""The places of a VM, in the names that a site uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bfinfra.backends.vcenter.places import Found, Inventory, Lookup, Thing, lookup
from bfinfra.backends.vcenter.vm import Brief, Disk, Vm, own_name
from bfinfra.kinds.vcenter.base.machine.notes import MARK
from bfinfra.model.records import dataclass


@dataclass(frozen=True)
class MachinePlaces:
    """`folder`: its path, "" for the datacenter's root; `pool`: the resource pool, "" for the cluster's root
    pool; `networks`: those of its adapters, in their order.
    """

    host: str
    cluster: str
    datastore: str
    folder: str
    pool: str
    networks: tuple[str, ...]


def places_of(machine: Vm, inventory: Inventory) -> MachinePlaces:
    """What a site calls a VM's places: their names, or their paths where others have the name; "" if vCenter
    doesn't have that id.
    """
    host = next((each for each in inventory.hosts if each.moid == machine.host), None)
    names = inventory.called
    folder = next((each.path for each in inventory.folders if each.moid == machine.folder), "")
    pool = next((each for each in inventory.pools if each.moid == machine.pool), None)
    stores = sorted(
        (each.name, names[each.moid]) for each in inventory.datastores if each.moid in machine.datastores
    )
    first = datastore_of(machine.disks[0]) if machine.disks else ""
    return MachinePlaces(
        host=names[host.moid] if host else "",
        cluster=names.get(host.cluster, "") if host else "",
        datastore=dict(stores).get(first) or next((text for _, text in stores), ""),
        folder=folder.removeprefix("vm").strip("/"),
        pool="" if pool is None or pool.root else names.get(pool.moid, ""),
        networks=tuple(names.get(nic.network, "") for nic in machine.nics),
    )


def here(machines: Iterable[Vm], inventory: Inventory) -> list[Vm]:
    """Without those of other datacenters: neither their host nor their folder is in the inventory."""
    hosts, folders = ({each.moid for each in things} for things in (inventory.hosts, inventory.folders))
    return [each for each in machines if each.host in hosts or each.folder in folders]


def datastore_of(disk: Disk) -> str:
    """The datastore in the file of a disk: `[local] bf-01/bf-01.vmdk` → local."""
    match = re.match(r"\[([^]]+)\]", disk.file)
    return match[1] if match else ""


def unplaced(places: MachinePlaces) -> str:
    """Return why a site can't name a VM's places; "" if it can."""
    if not places.cluster or not places.datastore:
        return "its cluster or its datastore is not known"
    return "" if all(places.networks) else "one of its networks is not known, or several have its name"


def named(texts: Iterable[str], briefs: Iterable[Brief], inventory: Inventory) -> Mapping[str, Lookup[Thing]]:
    """The VMs that names or paths mean, in the datacenters of the inventory."""
    homes, wanted = {f.moid: f for f in inventory.folders}, {*texts}
    ends = {text.rpartition("/")[2] for text in wanted} | wanted
    here = [
        as_thing(brief, inventory)
        for brief in briefs
        if any(brief.name == end or brief.name.endswith(f"/{end}") for end in ends)
        and (brief.folder in homes or not inventory.folders)
    ]
    return {text: lookup(here, text) for text in wanted}


def detailed(meant: Mapping[str, Lookup[Thing]], machines: Iterable[Vm]) -> Mapping[str, Lookup[Vm]]:
    """The same, with the VMs in detail. One that was deleted meanwhile is left out."""
    read = {machine.moid: machine for machine in machines}
    found: dict[str, Lookup[Vm]] = {}
    for text, each in meant.items():
        if not isinstance(each, Found):
            found[text] = each
        elif each.thing.moid in read:
            found[text] = Found(read[each.thing.moid])
    return found


def by_path(machine: Vm) -> bool:
    """Whether somebody called a VM, which can be read, by the path of a file: it isn't the lost one there."""
    return own_name(machine.name) != machine.name and MARK not in machine.extra


def unread_of(machines: Iterable[Vm]) -> Mapping[str, str]:
    """Name → why the VM that is called so can't be read, for those that can't."""
    return {own_name(each.name): each.unread for each in machines if each.unread}


def as_thing(brief: Brief, inventory: Inventory) -> Thing:
    """A VM with its path, if its folder is in the inventory."""
    home = inventory.home(brief.folder)
    return Thing(moid=brief.moid, name=brief.name, where=f"{home}/{brief.name}" if home else brief.name)
