"""Surveys a site once, and then follows its servers: drift is reported when it happens."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.app import heap, wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.following import Gap, Stream, following
from bfinfra.app.listener import Listener
from bfinfra.app.login import Login
from bfinfra.app.looking import Looking
from bfinfra.app.sight import Sight
from bfinfra.model import secret
from bfinfra.model.drift import Drifted, Report, judged
from bfinfra.model.errors import BfinfraError
from bfinfra.model.pauses import pause
from bfinfra.model.records import dataclass
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.engine.watch import Watched

INTERVAL = 60.0  # seconds between two reads of what no server reports


@dataclass(frozen=True)
class WatchOptions:
    """`interval`: seconds between two reads of what no server reports; `once_settled`: end after the first
    report; `own_process`: nothing else runs in this process.
    """

    interval: float = INTERVAL
    once_settled: bool = False
    own_process: bool = False


def watch(
    site: Site, listener: Listener, *, options: WatchOptions | None = None, context: RunContext = LIVE
) -> Report | None:
    """Follow the site until the context's stop is set, and return the last report; None if there was none.
    Only reads. Call `Stop.begin_writing` before, so that sessions end in order.

    The listener gets the first report, and another each time that it says something else. If the servers
    can't be followed any more, a full survey is tried until it succeeds. Raises RemoteError if the first one
    fails.
    """
    options, ended = options or WatchOptions(), context.stop.flag
    last: Report | None = None
    lost, why, failures = 0.0, "", 0
    login = Login(site)
    while not ended.is_set():
        stream = Stream(site.name)
        try:
            login.read()
            for current in _followed(site, options, context, listener, stream):
                found = current.report
                sight = replace(current, blind=time.monotonic() - lost, why=why) if lost else current
                fresh = last is None or sight.why or found.new or found.ended
                if fresh or _content(found) != _content(last):
                    listener.report(sight)
                last, lost, why, failures = found, 0.0, "", 0
                if options.once_settled:
                    return last
        except BfinfraError as error:
            if last is None:
                raise
            if ended.is_set():
                break
            why = str(error.problems[0])
            if not lost:
                lost = stream.heard or time.monotonic()
                listener.interrupted(why, time.monotonic() - lost)
            failures += 1
            login.wait(error, pause(failures), ended, lambda: listener.turned(0))
    return last


def _content(found: Report | None) -> object:
    """Return what the report says of the servers, whoever made it so."""
    if found is None:
        return None
    differences = [(each.identity, each.cause, repr(each.now), each.ignored) for each in found.found]
    return differences, found.problems, found.unreadable


def _followed(
    site: Site, options: WatchOptions, context: RunContext, listener: Listener, stream: Stream
) -> Iterator[Sight]:
    """The report after each look. Raises RemoteError once changes can't be followed any more."""
    from bfinfra.engine.plan import DesiredState
    from bfinfra.engine.watch import Watched

    desired = DesiredState.of(site)
    with wiring.bound_kinds(site, context, desired.wanted, read_only=True) as bound:
        observed = wiring.observe(bound, desired.wanted, context, lasting=True)
        with following(stream, bound.backends) as follows:
            watched = Watched.of(site, desired, observed, bound.kinds, context.retry)
            looking = Looking(watched, bound.backends.clusters, follows, options.interval)
            looking.start()
            heap.settle(own_process=options.own_process)
            writers: dict[tuple[str, str], Drifted] = {}
            away: dict[tuple[str, str], Gap] = {}
            reported = time.monotonic()
            yield Sight(_reported(site, watched, writers))
            context.stop.wake = stream.wake
            while not context.stop.flag.is_set():
                arrivals = stream.gathered()
                listener.turned(arrivals.count)
                for refused in arrivals.refused:
                    listener.polled(refused, options.interval)
                gaps = _over(arrivals.gaps, away, listener)
                looked = looking.at(arrivals)
                if looked or arrivals.gaps or time.monotonic() - reported >= options.interval:
                    reported = time.monotonic()
                    secret.read_again()
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


def _reported(site: Site, watched: Watched, writers: dict[tuple[str, str], Drifted]) -> Report:
    """Return the differences now, and which of them are new since the last report. Keeps the report for the
    next one. `writers`: who made each difference, of those that were reported before.
    """
    from bfinfra.engine import checks, journal
    from bfinfra.engine.lost import absent

    scope = journal.scope(site)
    memory = checks.recall(scope)
    missed = absent(watched.desired, watched.observed)
    made = watched.report(checks.existed(scope, memory) if missed else ())
    settled, expired = judged(made.found, site.drift, dt.datetime.now(dt.UTC).date())
    made = checks.since(
        replace(made, scope=scope, found=settled, warnings=(*made.warnings, *expired)), memory
    )
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
