"""The resources of a site as they are on the servers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.plan import Action, Plan
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.model.observed import Observed

STATUS: Mapping[Action, str] = {
    Action.CREATE: "missing",
    Action.KEEP: "up to date",
    Action.UPDATE: "differs",
    Action.REPLACE: "differs",
    Action.DELETE: "not in the file",
    Action.READ: "read only",
}
UNREADABLE = "can't be read"


def get(site: Site, only: Collection[str] = (), *, context: RunContext = LIVE) -> tuple[Observed, ...]:
    """Every resource of the site, and every other object with its mark. Only reads. `only`: kinds, or
    addresses. Raises BfinfraError for an address that neither the site nor a server has.
    """
    from bfinfra.engine.plan import DesiredState, make

    desired = DesiredState.of(site)
    with wiring.bound_kinds(site, context, desired.wanted, read_only=True) as bound:
        observed = wiring.observe(bound, desired.wanted, context)
        bound.leave()
        planned = make(site, desired, observed, bound.kinds)
    everything = {each.key: each for each in _all(site, planned, observed.states)}
    missing = [each for each in only if "/" in each and Key.parse(each) not in everything]
    if missing:
        raise BfinfraError(
            *(
                Problem(
                    f"there is no {each}",
                    why="the site does not have it, and no object has its mark",
                    next=nearest(each, map(str, everything)),
                )
                for each in missing
            )
        )
    return tuple(each for key, each in everything.items() if not only or key.kind in only or str(key) in only)


def _all(site: Site, planned: Plan, states: Mapping[Key, object]) -> Iterator[Observed]:
    from bfinfra.model.observed import Observed

    items = {item.key: item for item in planned.items}
    for key in dict.fromkeys((*site.resources, *items)):
        state = states.get(key)
        if item := items.get(key):
            why = str(item.held) if item.held else None
            yield Observed(key, "waits" if item.held else STATUS[item.action], why, state)
            continue
        why = planned.unreadable.get(str(key)) or planned.unreadable.get(key.kind)
        refused = next((str(each) for each in planned.problems if each.what.startswith(f"{key}:")), None)
        yield Observed(key, UNREADABLE if why else "refused", why or refused, state)
