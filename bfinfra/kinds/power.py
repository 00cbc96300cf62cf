"""Where no VM can be powered on: on a host in maintenance mode, or one that vCenter has lost. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bfinfra.backends.vcenter.places import Host, Inventory
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

IN_MAINTENANCE = "is in maintenance mode"


def takes_none(host: Host) -> str:
    """Why no VM starts on a host now; "" if one does."""
    if not host.connected:
        return f"{host.name} is not connected"
    return f"{host.name} {IN_MAINTENANCE}" if host.maintenance else ""


def conflicts(off: Iterable[tuple[Key, Vm]], inventory: Inventory, states: Specs) -> Iterator[Conflict]:
    """One for each VM to power on whose host takes none. A host that this site has in maintenance mode leaves
    it before.
    """
    hosts, ours = {each.moid: each for each in inventory.hosts}, begun(states)
    for key, machine in off:
        host = hosts.get(machine.host)
        if host and machine.connected and host.name not in ours and (why := takes_none(host)):
            yield nowhere(key, why)


def nowhere(key: Key, why: str) -> Conflict:
    """What is said of a VM that can't be powered on."""
    return Conflict(
        Spot(key),
        "it can't be powered on",
        why=why,
        next="bring the host back, or move the VM to another one, then run this again",
    )


def begun(states: Specs) -> frozenset[str]:
    """The hosts that resources of this site put into maintenance mode, and take out of it."""
    found = (
        (key.name, state) if key.kind == "gpu_host" else (each.name, each)
        for key, state in states.items()
        if key.kind in ("gpu_host", "host_image")
        for each in (state.hosts if key.kind == "host_image" else (state,))
    )
    return frozenset(name for name, state in found if state.begun is not None)
