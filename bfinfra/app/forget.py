"""Notes that what isn't found any more is gone."""

from __future__ import annotations

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.refs import Key
from bfinfra.model.site import Site


def forget(site: Site, only: Key | None = None, *, context: RunContext = LIVE) -> tuple[Key, ...]:
    """Note on this machine that a resource is gone, or all that existed and aren't found; return them. Reads
    the servers: what is found, or can't be read, is not forgotten. Raises BfinfraError.
    """
    from bfinfra.engine import checks, journal
    from bfinfra.engine.lost import lost

    scope = journal.scope(site)
    with journal.lock(scope):
        with wiring.bound_kinds(site, context, {}, read_only=True) as bound:
            observed = wiring.observe(bound, {}, context)
        missed = lost(checks.existed(scope, checks.recall(scope)), observed)
        if only is not None and only not in missed:
            why = observed.why_unreadable(only)
            found = "its servers still show it" if only in observed.states else "it was never seen from here"
            raise BfinfraError(Problem(f"{only} can't be forgotten", why=why or found))
        keys = missed if only is None else (only,)
        checks.forget(scope, keys)
    return keys
