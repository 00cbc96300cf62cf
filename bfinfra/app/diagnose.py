"""Finds what would stop an apply."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.privileges import privileges
from bfinfra.app.wiring import Backends
from bfinfra.model.errors import Problem
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext
    from bfinfra.model.finding import Finding

HASTE = 10.0  # seconds that a check waits for an answer


def diagnose(site: Site, *, context: RunContext = LIVE) -> tuple[Finding, ...]:
    """The findings of all checks: names, connections, certificates, accounts, rights, versions, clocks,
    space, files. Only reads, in parallel.
    """
    from bfinfra.doctor import examine

    with check_context(site, context) as found:
        return examine(found)


def lost_of(site: Site, context: RunContext) -> Mapping[Key, Problem]:
    """What existed at the last look from this machine and isn't found. Surveys the servers, unless nothing is
    known of an earlier look.
    """
    from bfinfra.engine import checks, journal
    from bfinfra.engine.lost import lost, problem

    scope = journal.scope(site)
    if not (existed := checks.existed(scope, checks.recall(scope))):
        return {}
    with wiring.bound_kinds(site, context, site.resources, read_only=True) as bound:
        observed = wiring.observe(bound, site.resources, context)
    return {key: problem(key) for key in lost(existed, observed)}


@contextlib.contextmanager
def check_context(site: Site, context: RunContext) -> Iterator[CheckContext]:
    """Open the sessions that checks need; they end with the context."""
    from bfinfra.engine import journal
    from bfinfra.kinds.checks import CheckContext

    backends = Backends(site, context.transport(timeout=HASTE))
    try:
        yield CheckContext(
            site,
            privileges(site),
            backends.transport,
            backends.clusters,
            backends.images,
            backends.vcenter,
            journal.folder(journal.scope(site)),
            linux=lambda: backends.hosts,
            lost=lambda: lost_of(site, context),
        )
    finally:
        backends.close()
        backends.transport.close()
