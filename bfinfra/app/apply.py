"""The use cases that write: apply, destroy, and rotate of a token."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.plan import compared, narrowed
from bfinfra.app.rotation import Rotation, bind_rotation
from bfinfra.model.outcome import Outcome
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.app.saved import SavedPlan
    from bfinfra.engine.apply import Options
    from bfinfra.engine.guard import Allow
    from bfinfra.model.events import Sink


def apply(  # noqa: PLR0913 - each is a switch of the command line
    site: Site,
    *,
    approve: Callable[[Plan], Allow | None] | None = None,
    saved: SavedPlan | None = None,
    destroy: bool = False,
    adopt: frozenset[Key] = frozenset(),
    targets: Collection[Key] = (),
    adopt_all: bool = False,
    rotation: Rotation | None = None,
    options: Options | None = None,
    on_event: Sink = lambda _: None,
    context: RunContext = LIVE,
) -> Outcome:
    """Plan, call `approve`, guard, run. `approve` None: allow only what needs no allowance; its answer None:
    decline the plan. `adopt_all`: adopt all unmarked objects of the site, and do nothing else.

    Raises BfinfraError before the first write. The Outcome says how each resource ended.
    """
    from bfinfra.engine import guard, journal
    from bfinfra.engine.apply import Apply, Options
    from bfinfra.engine.plan import DesiredState, make

    wiring.known_kinds(targets)
    if saved:
        saved.check_site(site)
    adopt = frozenset(site.resources) if adopt_all else adopt
    desired = DesiredState.of(site, destroy=destroy, adopt=adopt, marking=bool(adopt))
    scope, began = journal.scope(site), time.monotonic()
    with (
        journal.lock(scope),
        wiring.bound_kinds(site, context, desired.wanted, read_only=False, targets=targets) as bound,
    ):
        only = bind_rotation(site, rotation, bound) if rotation else adopt
        observed = wiring.observe(bound, desired.wanted, context)
        found = make(site, desired, observed, bound.kinds, targets)
        found = compared(found, site, desired, observed, bound)
        found = narrowed(found, only, adopt, site, observed, bound.kinds, adopt_all=adopt_all)
        if saved:
            saved.check(site, found)
        allow = approve(found) if approve else guard.Allow()
        if allow is None:
            return Outcome(found, {}, time.monotonic() - began, declined=True)
        guard.check(found, allow)
        log = journal.Journal(scope)
        try:
            how = replace(options or Options(retry=context.retry), journal=log, settle=not adopt)
            run = Apply(found, desired, observed, bound.kinds, how, on_event)
            endings = run.run()
        finally:
            log.close()
        tally = bound.backends.transport.tally
        return Outcome(
            found,
            endings,
            time.monotonic() - began,
            tally.requests,
            tally.writes,
            out_of_service=run.out_of_service,
        )


def destroy(site: Site, *, approve: Callable[[Plan], Allow | None] | None = None, **how: Any) -> Outcome:
    """Delete everything that this site made. Arguments as for `apply`; without `approve` every deletion is
    allowed.
    """
    from bfinfra.engine.guard import Allow

    return apply(site, approve=approve or (lambda _: Allow(every_delete=True)), destroy=True, **how)


def rotate(site: Site, token: str = "", *, restart: bool = False, **how: Any) -> Outcome:
    """Apply the site's Secrets of a token only, and replace the copies that others made. Arguments as for
    `apply`.

    `token`: its name, if the site has several; `restart`: also restart workloads that hold the old token.
    Raises SiteError if the site has none.
    """
    return apply(site, rotation=Rotation(token, restart), **how)
