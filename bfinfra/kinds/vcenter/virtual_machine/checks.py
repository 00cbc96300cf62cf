"""Checks for what would stop an apply of virtual machines. The doctor reports how their hosts share graphics
cards and synchronise their time; the plan what machines can't have together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.places import Datastore, Inventory, only
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds import power
from bfinfra.kinds.vcenter.base import datastores
from bfinfra.kinds.vcenter.base.datastores import Claim, store_of
from bfinfra.kinds.vcenter.base.host_checks import setups, time_kept
from bfinfra.kinds.vcenter.base.machine import checks
from bfinfra.kinds.vcenter.base.machine.checks import Asked, due, to_start
from bfinfra.kinds.vcenter.virtual_machine import reported
from bfinfra.kinds.vcenter.virtual_machine.home import datacenter_of, elsewhere
from bfinfra.kinds.vcenter.virtual_machine.make import pair
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import State, VirtualMachineFacts
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.finding import Finding, bad, good
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext

DIRECT = "sharedDirect"
AROUND = frozenset({"port_group", "host_graphics", "host_image"})
"""Kinds that give hosts what VMs ask for."""


def conflicts(wanted: Specs, states: Specs, facts: VirtualMachineFacts) -> Iterator[Conflict]:
    """Disks that don't fit on their datastores; hosts that can't take a VM; VMs of the same name elsewhere;
    guests that don't have the address of the Linux machine that they are.
    """
    yield from power.conflicts(to_start(wanted, states, Spec), facts.inventory, states)
    yield from datastores.conflicts(_claims(wanted, states, facts), freed=not states.keys() <= wanted.keys())
    yield from checks.conflicts(facts.seen, facts.inventory, wanted, states)
    yield from elsewhere(facts.namesakes)
    yield from reported.conflicts(wanted, facts.reported)


def asked(wanted: Specs, states: Specs, inventory: Inventory) -> Iterator[Asked]:
    """One for each VM whose cluster is known. What doesn't exist is refused elsewhere; what this site sets
    first, of hosts or port groups, isn't known yet.
    """
    made = {other.name for other in wanted if other.kind == "port_group"}
    graphics = any(other.kind in AROUND - {"port_group"} for other in wanted)
    for key, spec in wanted.items():
        state = states.get(key)
        if not isinstance(spec, Spec) or not due(
            spec, state, cpus=spec.cpus, memory=spec.memory, reserved=spec.reserved
        ):
            continue
        if (cluster := only(inventory.cluster(spec.cluster))) is None:
            continue
        machine = state.whole if isinstance(state, State) else None
        here = cluster.datacenter
        stores = {"datastore": spec.datastore} | {
            f"disks.{at}.datastore": disk.datastore for at, disk in spec.disks.items() if disk.datastore
        }
        networks = {f"adapters.{i}.network": each.network for i, each in enumerate(spec.adapters)}
        yield Asked(
            key=key,
            cluster=cluster,
            host=only(inventory.host(spec.host, here)) if spec.host else None,
            machine=machine,
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


def _claims(wanted: Specs, states: Specs, facts: VirtualMachineFacts) -> Iterator[Claim]:
    """The disks of VMs to create, as far as their template is known, and disks to add or to grow."""
    for key, spec in wanted.items():
        if not isinstance(spec, Spec):
            continue
        state = states.get(key)
        if isinstance(state, State) and not state.importing:
            yield from _disks(key, spec, state.machine, facts.inventory, existing=True)
        elif state is None:
            cloned = facts.templates.get(spec.template or "")
            source = (only(cloned) if cloned else None) or facts.items.get(pair(spec), (None, None))[1]
            yield from _disks(key, spec, source, facts.inventory, existing=False)


def _disks(
    key: Key, spec: Spec, machine: Vm | None, inventory: Inventory, *, existing: bool
) -> Iterator[Claim]:
    """`machine`: the existing VM, or its template, whose disks are all created anew."""
    there, own = machine.disks if machine else (), _store(spec.datastore, spec, inventory)
    for index, disk in enumerate(there):
        further = spec.disks.get(disk.address)
        size = max(disk.capacity, further.size if further else 0, spec.disk or 0 if not index else 0)
        store = store_of(disk, machine, inventory) if existing and machine else own
        more = size - disk.capacity if existing else size
        if store and more:
            at = (
                f"disks.{disk.address}.size"
                if further
                else "disk"
                if spec.disk and not index
                else "datastore"
            )
            yield Claim(Spot(key, at), store, size, more, disk.thin is not False)
    for address, new in spec.disks.items():
        if address not in {each.address for each in there} and (
            store := _store(new.datastore or spec.datastore, spec, inventory)
        ):
            yield Claim(Spot(key, f"disks.{address}.size"), store, new.size, new.size, new.thin)


def _store(text: str, spec: Spec, inventory: Inventory) -> Datastore | None:
    return only(inventory.datastore(text, datacenter_of(spec, inventory)))


def graphics(context: CheckContext) -> Iterator[Finding]:
    """A finding per host of VMs with vGPUs: whether it shares its cards directly."""
    wanted = {spec.host for spec in context.of("virtual_machine").values() if spec.vgpus and spec.host}
    set_here = {
        host for spec in context.of("host_graphics").values() if spec.type == DIRECT for host in spec.hosts
    }
    for name, host in sorted(setups(context, wanted).items()):
        if host.graphics == DIRECT:
            yield good(f"host {name}", "its graphics type is Shared Direct")
        elif name in set_here:
            yield good(f"host {name}", "its graphics type becomes Shared Direct: the site sets it first")
        else:
            yield bad(
                f"host {name}",
                f"its graphics type is {host.graphics or 'unknown'}",
                "a VM with a vGPU does not start there",
                "set Shared Direct under Configure, Graphics, and restart the host or its X.Org service",
            )


CHECKS = {
    "hosts.clocks": time_kept(
        "virtual_machine", lambda specs: (spec.host for spec in specs.values() if spec.host)
    ),
    "hosts.graphics": graphics,
}
