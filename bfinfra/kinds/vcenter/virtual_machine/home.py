"""Where a machine belongs. In its folder, and nowhere else, an unmarked VM of its name is the one that the
site means. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bfinfra.backends.vcenter.places import Inventory, only
from bfinfra.backends.vcenter.vm import Brief
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine.placement import Place
from bfinfra.kinds.vcenter.base.machine.places import as_thing
from bfinfra.kinds.vcenter.base.pools import pool_named
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext
from bfinfra.model.refs import Key


def datacenter_of(spec: Spec, inventory: Inventory) -> str:
    """The datacenter of its cluster; "" while the cluster is not known."""
    cluster = only(inventory.cluster(spec.cluster))
    return cluster.datacenter if cluster else ""


def folder_of(spec: Spec, inventory: Inventory) -> str:
    """The id of its folder; "" while it is not known."""
    folder = only(inventory.folder(spec.folder, datacenter_of(spec, inventory)))
    return folder.moid if folder else ""


def place(spec: Spec, context: PlanContext) -> Place:
    """Its places. Raises Refusal if one doesn't exist."""
    inventory: Inventory = context.facts.inventory
    cluster = the(inventory.cluster(spec.cluster), "cluster", spec.cluster, "cluster")
    here = cluster.datacenter

    def store(text: str, at: str) -> str:
        return the(inventory.datastore(text, here), "datastore", text, at).moid

    own = {address: disk.datastore for address, disk in sorted(spec.disks.items()) if disk.datastore}
    return Place(
        cluster=cluster.moid,
        pool=pool_named(spec.resource_pool or "", "resource_pool", cluster, inventory, context),
        folder=the(inventory.folder(spec.folder, here), "VM folder", spec.folder, "folder").moid,
        host=the(inventory.host(spec.host, here), "host", spec.host, "host").moid if spec.host else "",
        datastore=store(spec.datastore, "datastore"),
        disks={
            address: store(own.get(address, spec.datastore), f"disks.{address}.datastore")
            for address in spec.disks
        },
        said={
            "cluster": spec.cluster,
            "host": spec.host,
            "folder": spec.folder,
            "resource_pool": spec.resource_pool,
            "datastore": spec.datastore,
            **{f"disks.{address}.datastore": text for address, text in own.items()},
        },
    )


def namesakes(
    specs: Mapping[str, Spec], briefs: Iterable[Brief], inventory: Inventory
) -> Mapping[str, Sequence[str]]:
    """Machine → the paths of VMs of its name in other folders of the site's datacenter, if there are any."""
    found: dict[str, list[str]] = {}
    for brief in briefs:
        if (spec := specs.get(brief.name)) is None or brief.folder == folder_of(spec, inventory):
            continue
        where = as_thing(brief, inventory).where
        if where != brief.name or not brief.folder:  # without a folder it is in a vApp
            found.setdefault(brief.name, []).append(where)
    return {name: sorted(paths) for name, paths in found.items()}


def elsewhere(found: Mapping[str, Sequence[str]]) -> Iterator[Conflict]:
    """Warns of VMs of the same name in other folders. `found`: their paths, by machine."""
    for name, paths in found.items():
        yield Conflict(
            Spot(Key("virtual_machine", name), "folder"),
            f"{name} is created although a VM has that name in another folder",
            why=", ".join(paths),
            next="if that one is meant, write its folder",
            stops=False,
        )
