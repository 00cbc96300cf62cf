"""The work of a Job: check one site, apply what may be applied, report the result. It runs once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from threading import Event as Flag

from bfinfra.app.apply import apply
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.drift import drift, notify, remember
from bfinfra.app.tokens import tokens
from bfinfra.app.trust import certificates
from bfinfra.engine import checks, journal
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.model.drift import Cause, Report
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.events import Ending
from bfinfra.model.outcome import Outcome as Applied
from bfinfra.model.plan import Plan
from bfinfra.model.records import dataclass
from bfinfra.model.site import Site
from bfinfra.operator.approval import Approval, allowed, digest
from bfinfra.operator.result import Moved, Outcome, Planned, Result


@dataclass(frozen=True)
class Order:
    """The order to a Job. `approved`: a plan's digest; `known`: identities of the drift that the last check
    found; `existed`: everything existed, for this spec; `watched`: a watcher notifies the webhook.
    """

    approval: Approval = Approval.DISRUPTIVE
    approved: str = ""
    destroy: bool = False
    known: tuple[str, ...] = ()
    existed: bool = False
    watched: bool = False
    stop: Flag = field(default_factory=Flag)


def work(load: Callable[[], Site], order: Order, context: RunContext = LIVE) -> Result:
    """The result. Every BfinfraError becomes a result, too. `load`: reads the site."""
    began = time.monotonic()
    try:
        site = load()
    except BfinfraError as error:
        return Result(Outcome.INVALID, _summary(error.problems))
    try:
        found = _destroyed(site, order, context) if order.destroy else _kept(site, order, context)
    except BfinfraError as error:
        found = Result(Outcome.FAILED, _summary(error.problems))
    whole = time.monotonic() - began
    return replace(
        found,
        resources=len(site.resources),
        seconds=(round(whole - found.seconds[1], 3), found.seconds[1]),
        certificates=_certificates(site, context),
        tokens={
            name: int(each.not_after.timestamp())
            for name, each in tokens(site).items()
            if not isinstance(each, Problem)
        },
    )


def _kept(site: Site, order: Order, context: RunContext) -> Result:
    """Check the site; then apply what may be applied, or wait for approval."""
    report = _looked(site, order, context)
    _tell(site, order, report, context)
    drifted, moved = (
        len(report.alarming),
        tuple(Moved(str(each.key), each.field, str(each.cause), each.by) for each in report.alarming),
    )
    if report.blind:
        why = _summary(
            [
                *report.problems,
                *(Problem(f"{where} can't be read", why=why) for where, why in report.unreadable.items()),
            ]
        )
        return Result(
            Outcome.UNREADABLE if report.unreadable else Outcome.FAILED, why, drifted=drifted, moved=moved
        )
    if all(each.ignored for each in report.found):
        return Result(Outcome.AGREED)
    done = _applied(site, order, context, expected=any(each.ignored for each in report.found))
    if done.outcome is not Outcome.APPLIED:
        return replace(done, drifted=drifted, moved=moved)
    if drifted:
        over = tuple(sorted(each.identity for each in report.alarming))
        _tell(site, order, replace(report, found=(), new=frozenset(), ended=over), context)
    return replace(done, corrected=drifted)


def _looked(site: Site, order: Order, context: RunContext) -> Report:
    """The drift of the site. A resource that was never made is no drift; one that existed and is gone is."""
    recall(site, order.known, existed=order.existed)
    return with_unapplied(drift(site, context=context))


def recall(site: Site, known: Iterable[str], *, existed: bool) -> None:
    """Start from what the Site's status tells of the last check, if this machine knows of none. `known`:
    identities of drift; `existed`: everything existed.
    """
    known = tuple(known)
    scope = journal.scope(site)
    if (known or existed) and checks.recall(scope) == checks.Memory():
        checks.known(scope, known, map(str, site.resources) if existed else ())


def with_unapplied(report: Report) -> Report:
    """The report, in which a resource that was never made is no drift."""
    found = tuple(
        replace(each, cause=Cause.UNAPPLIED) if each.cause is Cause.MISSING else each for each in report.found
    )
    return replace(report, found=found, new=report.new & {each.identity for each in found})


def _tell(site: Site, order: Order, report: Report, context: RunContext) -> None:
    """Notify the webhook, once, if no watcher does. The next check sends again what failed."""
    if order.watched:
        remember(report)
        return
    try:
        notify(site, report, context=context)
    except BfinfraError:
        remember(report, reported=False)
    else:
        remember(report)


def _destroyed(site: Site, order: Order, context: RunContext) -> Result:
    done = _applied(site, order, context, destroy=True)
    return (
        replace(done, outcome=Outcome.AGREED) if done.outcome is Outcome.APPLIED and not done.writes else done
    )


def _applied(
    site: Site, order: Order, context: RunContext, *, destroy: bool = False, expected: bool = False
) -> Result:
    plans: list[Plan] = []

    def approve(plan: Plan) -> Allow | None:
        plans.append(plan)
        return allowed(plan, order.approval, order.approved, expected=expected)

    began = time.monotonic()
    outcome = apply(
        site,
        approve=approve,
        destroy=destroy,
        options=Options(stop=order.stop, retry=context.retry),
        context=context,
    )
    seconds = (0.0, round(time.monotonic() - began, 3))
    if outcome.declined:
        changes = tuple(
            Planned(str(item.key), str(item.action), str(item.disruption)) for item in plans[0].pending
        )
        return Result(
            Outcome.APPROVAL, digest=digest(plans[0]), planned=len(changes), changes=changes, seconds=seconds
        )
    used = (
        order.approved if order.approved and plans[0].pending and order.approved == digest(plans[0]) else ""
    )
    return Result(*_ended(outcome), approved=used, writes=outcome.writes, seconds=seconds)


def _ended(found: Applied) -> tuple[Outcome, str]:
    endings, ending = found.endings, found.ending
    if ending is Ending.DONE:
        return Outcome.APPLIED, ""
    bad = [
        each
        for each in endings.values()
        if each.ending not in (Ending.DONE, Ending.UNCHANGED, Ending.BLOCKED)
    ]
    why = (
        _summary([each.problem for each in bad if each.problem])
        or f"{', '.join(str(each.key) for each in bad)}: {ending}"
    )
    why = "; ".join((why, *(f"now {each}" for each in found.out_of_service)))
    return (Outcome.WAITING if ending in (Ending.WAITING, Ending.STOPPED) else Outcome.FAILED), why


def _certificates(site: Site, context: RunContext) -> dict[str, int]:
    """Return when each server's certificate expires; {} if a server can't be asked: the check has reported
    that.
    """
    try:
        return {
            found.server: int(found.not_after.timestamp()) for found in certificates(site, context=context)
        }
    except BfinfraError:
        return {}


def _summary(problems: tuple[Problem, ...] | list[Problem]) -> str:
    """The first few in one line."""
    return "; ".join(" ".join(str(each).split()) for each in problems[:3])
