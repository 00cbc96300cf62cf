"""Surveys a site once, and then follows its servers: drift is reported when it happens."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.following import Gap, Stream, following
from bfinfra.app.listener import Listener
from bfinfra.app.sight import Sight
from bfinfra.model.drift import Drifted, Report, judged
from bfinfra.model.errors import RemoteError
from bfinfra.model.plan import Action
from bfinfra.model.records import dataclass
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.changes import Change
    from bfinfra.engine.watch import Watched

FIRST, LONGEST = 1.0, 60.0  # seconds until a survey that failed is tried again, doubled each time
INTERVAL = 60.0  # seconds between two reads of what no server reports
VM, MARK = "VirtualMachine", "bfinfra:"


@dataclass(frozen=True)
class WatchOptions:
    """`interval`: seconds between two reads of what no server reports; `once_settled`: end after the first
    report.
    """

    interval: float = INTERVAL
    once_settled: bool = False


def watch(
    site: Site, listener: Listener, *, options: WatchOptions | None = None, context: RunContext = LIVE
) -> Report | None:
    """Follow the site until the context's stop is set, and return the last report; None if there was none.
    Only reads. Call `Stop.begin_writing` before, so that sessions end in order.

    The listener gets the first report, and another each time that drift starts or ends. If the servers can't
    be followed any more, a full survey is tried until it succeeds. Raises RemoteError if the first one fails.
    """
    options, ended = options or WatchOptions(), context.stop.flag
    last: Report | None = None
    lost, why, pause = 0.0, "", FIRST
    while not ended.is_set():
        stream = Stream(site.name)
        try:
            for current in _followed(site, options, context, listener, stream):
                found = current.report
                sight = replace(current, blind=time.monotonic() - lost, why=why) if lost else current
                repeated = last is not None and not sight.why and _unseen(found) == _unseen(last)
                if not repeated or found.new or found.ended:
                    listener.report(sight)
                last, lost, why, pause = found, 0.0, "", FIRST
                if options.once_settled:
                    return last
        except RemoteError as error:
            if last is None:
                raise
            if ended.is_set():
                break
            why = str(error.problems[0])
            if not lost:
                lost = stream.heard or time.monotonic()
                listener.interrupted(why, time.monotonic() - lost)
            listener.turned(0)
            ended.wait(pause)
            pause = min(LONGEST, 2 * pause)
    return last


def _unseen(found: Report) -> object:
    """Return the resources that the report could not read or decide."""
    return found.problems, found.unreadable


def _followed(
    site: Site, options: WatchOptions, context: RunContext, listener: Listener, stream: Stream
) -> Iterator[Sight]:
    """The report after each look. Raises RemoteError once changes can't be followed any more."""
    from bfinfra.engine.plan import DesiredState
    from bfinfra.engine.watch import Watched

    desired = DesiredState.of(site)
    with wiring.bound_kinds(site, context, desired.wanted, read_only=True) as bound:
        observed = wiring.observe(bound, desired.wanted, context)
        with following(stream, bound.backends):
            followed = {name for name, kind in bound.kinds.items() if kind.followed}
            in_clusters = wiring.IN_CLUSTERS & bound.kinds.keys()
            watched = Watched.of(site, desired, observed, bound.kinds, context.retry)
            # what changed between the survey and the first answer of the stream
            watched.decide(watched.survey(bound.kinds.keys()))
            polled = time.monotonic()
            writers: dict[tuple[str, str], Drifted] = {}
            away: dict[tuple[str, str], Gap] = {}
            yield Sight(_reported(site, watched, writers))
            words = watched.words()
            while not context.stop.flag.is_set():
                arrivals = stream.gathered()
                listener.turned(arrivals.count)
                gaps = _over(arrivals.gaps, away, listener)
                due = time.monotonic() - polled >= options.interval
                if not arrivals and not due:
                    continue
                kinds = bound.kinds.keys() - followed if due else set[str]()
                if any(_may_be_ours(each, words) for each in arrivals.changes):
                    kinds = kinds | followed
                if arrivals.clusters:
                    kinds = kinds | in_clusters
                touched = watched.naming(each.moid for each in arrivals.changes)
                touched |= {key for key in arrivals.keys if key.kind in bound.kinds}
                watched.look([key for key in touched if key.kind not in kinds])
                watched.decide(touched | watched.survey(kinds))
                polled = time.monotonic() if due else polled
                yield Sight(_reported(site, watched, writers), *gaps)


def _over(
    gaps: tuple[Gap, ...], away: dict[tuple[str, str], Gap], listener: Listener
) -> tuple[float, str, tuple[str, ...]]:
    """Note in `away` which gaps began and ended. Returns what a report says of them: the seconds, the reason,
    the clusters that are away.
    """
    for gap in gaps:
        if gap.over:
            away.pop((gap.cluster, gap.kind), None)
            continue
        if all(cluster != gap.cluster for cluster, _ in away):
            listener.interrupted(gap.why, gap.seconds)
        away[gap.cluster, gap.kind] = gap
    lost = tuple(sorted({cluster for cluster, _ in away}))
    seconds, why = max(((gap.seconds, gap.why) for gap in gaps if gap.over), default=(0.0, ""))
    return seconds, why, lost


def _may_be_ours(change: Change, words: frozenset[str]) -> bool:
    """Return whether the change may concern more than the resources that have the object: an object that gets
    a name or a mark of the site, or whatever is not a machine and comes, goes, or is renamed.
    """
    if change.type == VM:
        return not words.isdisjoint(change.words) or any(mark.startswith(MARK) for mark in change.words)
    return change.how != "modify" or "name" in change.paths


def _reported(site: Site, watched: Watched, writers: dict[tuple[str, str], Drifted]) -> Report:
    """Return the differences now, and which of them are new since the last report. Keeps the report for the
    next one. `writers`: who made each difference, of those that were reported before.
    """
    from bfinfra.engine import checks

    memory = checks.recall(site.name)
    absent = any(item.action is Action.CREATE for item in watched.plan.items)
    made = watched.report(checks.existed(site.name, memory) if absent else ())
    settled, expired = judged(made.found, site.drift, dt.datetime.now(dt.UTC).date())
    made = checks.since(replace(made, found=settled, warnings=(*made.warnings, *expired)), memory)
    made = _traced(made, watched, writers)
    checks.remember(made, memory)
    return made


def _traced(made: Report, watched: Watched, writers: dict[tuple[str, str], Drifted]) -> Report:
    """The report with who made each difference. The servers are asked about what is not in `writers`."""
    from bfinfra.engine.drift import traced

    if any(_value(each) not in writers for each in made.alarming):
        made = traced(made, watched.observed, watched.kinds, watched.retry)
        writers.clear()
        writers.update((_value(each), each) for each in made.found)
        return made
    known = ((each, writers.get(_value(each), each)) for each in made.found)
    return replace(made, found=tuple(replace(each, by=who.by, at=who.at) for each, who in known))


def _value(found: Drifted) -> tuple[str, str]:
    return found.identity, repr(found.now)
