"""The space that servers' disks take on datastores. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.backends.ova import Ova
from bfinfra.backends.vcenter.places import Datastore, Inventory, only
from bfinfra.kinds.vcenter.base.datastores import Claim, store_of
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import BitfusionServerFacts, State
from bfinfra.model.conflict import Spot
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key


def claims(wanted: Specs, states: Specs, facts: BitfusionServerFacts) -> Iterator[Claim]:
    """The disks of servers to create, as far as their OVA is readable, and disks to grow."""
    for key, spec in wanted.items():
        if not isinstance(spec, Spec):
            continue
        state = states.get(key)
        if isinstance(state, State) and not state.importing:
            yield from _grown(key, spec, state, facts.inventory)
        elif (store := _chosen(spec, states.get(Key("gpu_host", spec.host)), facts.inventory)) is not None:
            yield from _made(key, spec, facts.ovas.get(spec.ova.text), store, started=state is not None)


def _grown(key: Key, spec: Spec, state: State, inventory: Inventory) -> Iterator[Claim]:
    first = next(iter(state.machine.disks), None)
    if (
        first
        and spec.disk
        and spec.disk > first.capacity
        and (store := store_of(first, state.machine, inventory))
    ):
        yield Claim(Spot(key, "disk"), store, spec.disk, spec.disk - first.capacity, first.thin is not False)


def _made(key: Key, spec: Spec, ova: object, store: Datastore, *, started: bool) -> Iterator[Claim]:
    """A half-imported server counts in full: it is deleted and imported anew."""
    own = [disk.capacity for disk in ova.disks] if isinstance(ova, Ova) else []
    for index, size in enumerate([spec.disk or 0, *own[1:]] if spec.disk else own):
        at = Spot(key, "disk" if spec.disk and not index else "datastore" if spec.datastore else "ova")
        yield Claim(at, store, size, 0 if started else size, spec.disk_provisioning == "thin")


def _chosen(spec: Spec, host: object, inventory: Inventory) -> Datastore | None:
    """The datastore that the site names, or the only one of the host; None if neither is known."""
    if spec.datastore:
        return only(inventory.datastore(spec.datastore))
    detail = getattr(host, "detail", None)
    reached = (
        [each for each in inventory.datastores if each.moid in detail.datastores and each.accessible]
        if detail
        else []
    )
    return reached[0] if len(reached) == 1 else None
