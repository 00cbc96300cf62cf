"""Finds drift, notifies the webhook, and keeps the result for the next check."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import replace

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.model.drift import Report, judged
from bfinfra.model.errors import BfinfraError, Problem, Warned
from bfinfra.model.redact import clean
from bfinfra.model.refs import Key
from bfinfra.model.site import Site


def drift(site: Site, *, targets: Collection[Key] = (), context: RunContext = LIVE) -> Report:
    """Return the differences and who made them, compared with the last check on this machine. Only reads.
    With `targets`: these resources and what must be done before them; such a report is neither sent nor kept.
    """
    from bfinfra.engine import checks, journal
    from bfinfra.engine.drift import report, traced
    from bfinfra.engine.lost import absent
    from bfinfra.engine.plan import DesiredState, make

    wiring.known_kinds(targets)
    scope = journal.scope(site)
    desired, memory = DesiredState.of(site), checks.recall(scope)
    with wiring.bound_kinds(site, context, desired.wanted, read_only=True, targets=targets) as bound:
        observed = wiring.observe(bound, desired.wanted, context)
        bound.leave()
        found = make(site, desired, observed, bound.kinds, targets)
        existed = checks.existed(scope, memory) if absent(desired, observed) else ()
        made = report(found, desired, observed, bound.kinds, existed)
    settled, expired = judged(made.found, site.drift, dt.datetime.now(dt.UTC).date())
    made = replace(made, scope=scope, found=settled, warnings=(*made.warnings, *expired))
    if made.alarming:  # rare: the sessions may have ended meanwhile
        try:
            with wiring.bound_kinds(site, context, read_only=True) as again:
                made = traced(made, observed, again.kinds, context.retry)
        except BfinfraError as error:
            unknown = Warned(Problem("who changed it is not known", why=str(error.problems[0])))
            made = replace(made, warnings=(*made.warnings, unknown))
    return checks.since(made, memory)


def notify(site: Site, found: Report, *, context: RunContext = LIVE) -> bool:
    """Send the site's webhook what started and what ended, with retries. Returns whether there was anything
    to send. Raises RemoteError.
    """
    hook = site.drift.notify
    if hook is None or found.partial or not (found.new or found.ended):
        return False
    from bfinfra.backends.outages import Outages
    from bfinfra.backends.transport import Transport
    from bfinfra.backends.webhook import post
    from bfinfra.render.drift import message

    # never redirected into the sandbox: the receiver is outside of it
    transport = Transport(middleware=context.middleware, outages=Outages(check=context.stop.check))
    try:
        context.retry.read(lambda: post(transport, hook, clean(message(found))))
    finally:
        transport.close()
    return True


def remember(found: Report, *, reported: bool = True) -> None:
    """Keep the result on this machine, so that the next check knows what is new and what has ended. With
    `reported` False it reports the same again.
    """
    from bfinfra.engine import checks

    if found.partial:
        return
    checks.remember(found, checks.recall(found.scope or found.site), reported=reported)
