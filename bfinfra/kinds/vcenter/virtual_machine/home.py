"""Where a machine belongs: its datacenter and its folder. There, and nowhere else, an unmarked VM of its name
is the one that the site means. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bfinfra.backends.vcenter.places import Inventory, Thing, lookup, only
from bfinfra.backends.vcenter.places import Lookup as Looked
from bfinfra.backends.vcenter.vm import Brief
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec


def datacenter_of(spec: Spec, inventory: Inventory) -> str:
    """The datacenter of its cluster; "" while the cluster is not known."""
    cluster = only(inventory.cluster(spec.cluster))
    return cluster.datacenter if cluster else ""


def folder_of(spec: Spec, inventory: Inventory) -> str:
    """The id of its folder; "" while it is not known."""
    folder = only(inventory.folder(spec.folder, datacenter_of(spec, inventory)))
    return folder.moid if folder else ""


def namesakes(name: str, spec: Spec, briefs: Iterable[Brief], inventory: Inventory) -> list[str]:
    """The paths of VMs of its name in other folders."""
    home = folder_of(spec, inventory)
    return sorted(_thing(b, inventory).where for b in briefs if b.name == name and b.folder != home)


def named(texts: Iterable[str], briefs: Iterable[Brief], inventory: Inventory) -> Mapping[str, Looked[Thing]]:
    """The VMs that names or paths mean, in the datacenters of the inventory."""
    homes, wanted = {f.moid: f for f in inventory.folders}, {*texts}
    ends = {text.rpartition("/")[2] for text in wanted} | wanted
    here = [
        _thing(brief, inventory)
        for brief in briefs
        if any(brief.name == end or brief.name.endswith(f"/{end}") for end in ends)
        and (brief.folder in homes or not inventory.folders)
    ]
    return {text: lookup(here, text) for text in wanted}


def _thing(brief: Brief, inventory: Inventory) -> Thing:
    home = inventory.home(brief.folder)
    return Thing(moid=brief.moid, name=brief.name, where=f"{home}/{brief.name}" if home else brief.name)
