"""What VMs to make or to change ask of their hosts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfinfra.backends.vcenter.places import Inventory, only
from bfinfra.kinds.vcenter.base.machine.checks import Asked
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import State
from bfinfra.model import compare
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key


def asked(wanted: Specs, states: Mapping[Key, object], inventory: Inventory) -> Iterator[Asked]:
    """One for each VM whose cluster is known. What doesn't exist is refused elsewhere; what this site sets
    first, of hosts or port groups, isn't known yet.
    """
    made = {other.name for other in wanted if other.kind == "port_group"}
    graphics = any(other.kind in ("host_graphics", "host_image") for other in wanted)
    for key, spec in wanted.items():
        if not isinstance(spec, Spec) or not _due(spec, states.get(key)):
            continue
        if (cluster := only(inventory.cluster(spec.cluster))) is None:
            continue
        here = cluster.datacenter
        stores = {"datastore": spec.datastore} | {
            f"disks.{at}.datastore": disk.datastore for at, disk in spec.disks.items() if disk.datastore
        }
        networks = {f"adapters.{i}.network": each.network for i, each in enumerate(spec.adapters)}
        yield Asked(
            key=key,
            cluster=cluster,
            host=only(inventory.host(spec.host, here)) if spec.host else None,
            cpus=spec.cpus,
            memory=spec.memory,
            reserved=spec.reserved,
            profiles=() if graphics else spec.vgpus,
            datastores={at: s for at, text in stores.items() if (s := only(inventory.datastore(text, here)))},
            networks={
                at: n
                for at, text in networks.items()
                if text not in made and (n := only(inventory.network(text, here)))
            },
        )


def _due(spec: Spec, state: object) -> bool:
    """Whether a VM is made or may be changed: the file says something else, or it has other sizes."""
    if not isinstance(state, State) or state.importing:
        return True
    if state.mark is None or compare.adopting(state.mark):
        return False  # it runs where it is, and only its mark is written
    machine = state.machine
    now = (machine.cpus, machine.memory, machine.reserved)
    return state.applied != spec.applied() or now != (spec.cpus, spec.memory, spec.reserved)
