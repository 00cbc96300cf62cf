"""The space that VMs' disks take on datastores. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.backends.vcenter.places import Datastore, Inventory, only
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds.vcenter.base.datastores import Claim, store_of
from bfinfra.kinds.vcenter.virtual_machine.home import datacenter_of
from bfinfra.kinds.vcenter.virtual_machine.make import pair
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import State, VirtualMachineFacts
from bfinfra.model.conflict import Spot
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key


def claims(wanted: Specs, states: Specs, facts: VirtualMachineFacts) -> Iterator[Claim]:
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
