"""Makes the plan of an apply."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.rotation import Rotation, bind_rotation
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.app.wiring import BoundKinds
    from bfinfra.engine.observe import Kinds, ObservedState
    from bfinfra.engine.plan import DesiredState


def plan(  # noqa: PLR0913 - each is a switch of the command line
    site: Site,
    *,
    destroy: bool = False,
    adopt: frozenset[Key] = frozenset(),
    targets: Collection[Key] = (),
    adopt_only: bool = False,
    adopt_all: bool = False,
    rotation: Rotation | None = None,
    context: RunContext = LIVE,
) -> Plan:
    """Return the plan of an apply. Only reads: the transport refuses every write. With `targets`: these
    resources and what must be done before them; with `rotation`: the plan of the rotation; with `adopt_only`:
    the plan of adopting `adopt`; with `adopt_all`: of adopting every resource that already exists.
    """
    from bfinfra.engine.plan import DesiredState, make

    wiring.known_kinds(targets)
    adopt = frozenset(site.resources) if adopt_all else adopt
    desired = DesiredState.of(site, destroy=destroy, adopt=adopt, marking=adopt_only or adopt_all)
    with wiring.bound_kinds(site, context, desired.wanted, read_only=True, targets=targets) as bound:
        rotated = bind_rotation(site, rotation, bound) if rotation else frozenset()
        observed = wiring.observe(bound, desired.wanted, context)
        bound.leave()
        found = make(site, desired, observed, bound.kinds, targets)
        found = compared(found, site, desired, observed, bound)
        adopted = adopt if adopt_only or adopt_all else frozenset()
        return narrowed(found, rotated or adopted, adopt, site, observed, bound.kinds, adopt_all=adopt_all)


def compared(
    found: Plan, site: Site, desired: DesiredState, observed: ObservedState, bound: BoundKinds
) -> Plan:
    """The plan that also names what existed at the last look from this machine and isn't found."""
    from bfinfra.engine import checks, journal
    from bfinfra.engine.lost import absent, lost, with_lost

    scope = journal.scope(site)
    memory = checks.recall(scope)
    if desired.wanted and not absent(desired, observed) and memory.existing <= {*map(str, observed.states)}:
        return found  # nothing can be missed, so that the journal need not be read
    existed = checks.existed(scope, memory)
    return with_lost(found, lost(existed, observed, bound.kinds if bound.partly else None), desired)


def narrowed(  # noqa: PLR0913 - what a rotation or an adoption goes by
    found: Plan,
    only: frozenset[Key],
    adopt: frozenset[Key],
    site: Site,
    observed: ObservedState,
    kinds: Kinds,
    *,
    adopt_all: bool,
) -> Plan:
    """The plan of a rotation or an adoption: these alone; all of it where `only` names none."""
    from bfinfra.engine import target
    from bfinfra.kinds.cluster_locator import CLUSTERS

    if not only:
        return found
    if adopt_all:
        return target.adopting_all(found, site, observed, kinds, CLUSTERS)
    if adopt:
        return target.adopting(found, only, site, observed, kinds)
    return target.only(found, only, CLUSTERS)
