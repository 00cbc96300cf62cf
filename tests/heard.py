"""A watch in a thread of its own, and everything that it reports."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from bfinfra.app.context import RunContext
from bfinfra.app.listener import Listener
from bfinfra.app.sight import Sight
from bfinfra.app.watch import WatchOptions, watch
from bfinfra.model.drift import Report
from bfinfra.model.site import Site
from bfinfra.model.stop import Stop

NEVER = 3600.0  # an interval at which a test's watch reads nothing
SOON = 30  # seconds within which a report must come, and within which a watch must end


class Heard(Listener):
    """`sights`: every report; `alarms`: what was new in them; `refused`: what the account may not watch;
    `changes`: how many the servers reported; `ended`: the report that the watch returned.
    """

    def __init__(self) -> None:
        self._coming: queue.SimpleQueue[Sight | None] = queue.SimpleQueue()
        self.sights: list[Sight] = []
        self.alarms: list[str] = []
        self.interruptions: list[str] = []
        self.refused: list[str] = []
        self.changes = 0
        self.ended: Report | None = None

    def next(self, seconds: float = SOON) -> Sight:
        """The next report. Raises queue.Empty if none comes so soon."""
        found = self._coming.get(timeout=seconds)
        assert found is not None, "the watch has ended"
        return found

    @property
    def last(self) -> Report | None:
        """The last report; None before the first."""
        return self.sights[-1].report if self.sights else None

    @property
    def lost(self) -> tuple[str, ...]:
        """The servers that the last report could not follow."""
        return self.sights[-1].lost if self.sights else ()

    @property
    def blind(self) -> float:
        """Seconds in which a server was not followed."""
        return sum(each.blind for each in self.sights)

    def report(self, sight: Sight) -> None:
        self.sights.append(sight)
        self.alarms += sorted(sight.report.new)
        self._coming.put(sight)

    def interrupted(self, why: str, blind: float) -> None:
        self.interruptions.append(why)

    def polled(self, why: str, interval: float) -> None:
        self.refused.append(why)

    def turned(self, changes: int) -> None:
        self.changes += changes

    def stopped(self) -> None:
        """Let whoever waits for a report know that none comes any more."""
        self._coming.put(None)


@contextmanager
def following(site: Site, context: RunContext, interval: float = NEVER) -> Iterator[Heard]:
    """A watch of the site, which ends afterwards. Raises what it raised."""
    heard, stop = Heard(), Stop()
    stop.begin_writing()
    context = replace(context, stop=stop)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(watch, site, heard, options=WatchOptions(interval), context=context)
        running.add_done_callback(lambda _: heard.stopped())
        try:
            yield heard
        finally:
            stop.ask(15)
        heard.ended = running.result(SOON)
