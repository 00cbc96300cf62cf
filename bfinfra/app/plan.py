"""What an apply would do."""

from __future__ import annotations

from collections.abc import Collection

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.rotation import Rotation, bind_rotation
from bfinfra.engine.plan import DesiredState, make
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.model.site import Site


def plan(  # noqa: PLR0913 - each is a switch of the command line
    site: Site,
    *,
    destroy: bool = False,
    adopt: frozenset[Key] = frozenset(),
    targets: Collection[Key] = (),
    rotation: Rotation | None = None,
    context: RunContext = LIVE,
) -> Plan:
    """What an apply would do. Only reads: the transport refuses every write. With `targets`: these resources
    and what must be done before them; with `rotation`: what it would do.
    """
    from bfinfra.engine import target
    from bfinfra.kinds.cluster_locator import CLUSTERS

    wiring.known_kinds(targets)
    desired = DesiredState.of(site, destroy=destroy, adopt=adopt)
    with wiring.bound_kinds(site, context, desired.wanted, read_only=True) as bound:
        only = bind_rotation(site, rotation, bound) if rotation else frozenset()
        observed = wiring.observe(bound, desired.wanted, context)
        bound.leave()
        found = make(site, desired, observed, bound.kinds, targets)
        return target.only(found, only, CLUSTERS) if only else found
