"""A watch in a thread of its own, and whether its last report is what a check finds."""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from kinds.lifecycle import QUICK, drift

import bfinfra
from bfinfra.app.listener import Listener
from bfinfra.app.sight import Sight
from bfinfra.app.watch import WatchOptions, watch
from bfinfra.model.drift import Report
from bfinfra.model.stop import Stop
from bfinfra.sandbox import Running

SOON = 30  # seconds within which a watch must have seen everything
PAGE = re.compile(rb"(<maxObjectUpdates>)\d+")


@dataclass
class Heard(Listener):
    """What a watch says. `reports`: how many; `blind`: seconds not followed; `refused`: what the
    account may not watch.
    """

    last: Report | None = None
    lost: tuple[str, ...] = ()
    reports: int = 0
    blind: float = 0.0
    changes: int = 0
    interruptions: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def report(self, sight: Sight) -> None:
        self.last, self.lost = sight.report, sight.lost
        self.reports += 1
        self.blind += sight.blind
        self.alarms += sorted(sight.report.new)

    def interrupted(self, why: str, blind: float) -> None:
        self.interruptions.append(why)

    def polled(self, why: str, interval: float) -> None:
        self.refused.append(why)

    def turned(self, changes: int) -> None:
        self.changes += changes


class SmallPages:
    """Middleware that asks for so few objects in an answer of WaitForUpdatesEx."""

    def __init__(self, inner: httpx2.BaseTransport, objects: int) -> None:
        self._inner, self._objects = inner, objects

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        if b"WaitForUpdatesEx" in body:
            headers = {name: each for name, each in request.headers.items() if name != "content-length"}
            request = httpx2.Request(
                request.method,
                request.url,
                headers=headers,
                content=PAGE.sub(rb"\g<1>%d" % self._objects, body),
                extensions=request.extensions,
            )
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


@contextlib.contextmanager
def watching(path: Path, sandbox: Running, interval: float, page: int = 0) -> Iterator[Heard]:
    """A watch of the site, after its first report. `page`: objects in an answer, 0 for the usual number."""
    heard, stop = Heard(), Stop()
    stop.begin_writing()
    small = (lambda inner: SmallPages(inner, page),) if page else ()
    context = bfinfra.RunContext(sandbox=sandbox, retry=QUICK, stop=stop, middleware=small)
    site = bfinfra.load(path, sandbox=sandbox)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(watch, site, heard, options=WatchOptions(interval), context=context)
        try:
            until(lambda: heard.last or running.done(), "no first report")
            if running.done():
                running.result()
            yield heard
        finally:
            stop.ask(15)
        running.result(SOON)


def until(holds: Callable[[], object], why: str) -> None:
    """Wait for it."""
    limit = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < limit, why
        time.sleep(0.02)


def words(report: Report) -> Counter[str]:
    """Everything that a report says of the servers now. Only the machine that saw a resource knows that it has
    vanished.
    """
    return Counter(
        (
            *(
                f"{each.key} {each.field} is {each.now!r}: {each.cause}".replace("vanished", "missing")
                for each in report.found
            ),
            *(f"{each}" for each in report.problems),
            *(f"{where} can't be read" for where in report.unreadable),
            f"{report.agreed} agree",
        )
    )


def checked(path: Path, sandbox: Running, folder: Path) -> Report:
    """What `drift` finds, on a machine of its own."""
    before = os.environ["BFINFRA_STATE_HOME"]
    os.environ["BFINFRA_STATE_HOME"] = str(folder / "check")
    try:
        return drift(path, sandbox)
    finally:
        os.environ["BFINFRA_STATE_HOME"] = before


def agree(heard: Heard, found: Report) -> float:
    """Wait until the watch says the same. Returns after how many seconds it did."""
    began, wanted = time.monotonic(), words(found)
    while heard.last is None or heard.lost or words(heard.last) != wanted:
        if time.monotonic() - began > SOON:
            said = words(heard.last) if heard.last else Counter[str]()
            raise AssertionError(f"the watch alone: {[*(said - wanted)]}; drift alone: {[*(wanted - said)]}")
        time.sleep(0.02)
    return time.monotonic() - began


def interruption(sandbox: Running, si: Any, chance: random.Random) -> str:
    """Something that ends what a watch relies on, on all servers. Returns its name."""
    name, api, method, what, do = chance.choice(INTERRUPTIONS)
    match name:
        case "sessions ended":
            manager = si.content.sessionManager
            own = manager.currentSession.key
            manager.TerminateSession([each.key for each in manager.sessionList if each.key != own])
        case _:
            times = chance.choice((1, 1, 3))
            sandbox.faults({"api": api, "method": method, "object": what, "nth": 1, "times": times, "do": do})
    return name


WAIT = "WaitForUpdatesEx"
INTERRUPTIONS = (
    ("sessions ended", "", "", "", {}),
    ("waits reset", "vcenter", WAIT, "*", "reset_before"),
    ("answers reset", "vcenter", WAIT, "*", "reset_after"),
    ("answers cut", "vcenter", WAIT, "*", {"half": True}),
    ("503", "vcenter", WAIT, "*", {"status": 503}),
    ("collectors gone", "vcenter", WAIT, "*", {"soap": "ManagedObjectNotFound"}),
    ("reads reset", "vcenter", "RetrievePropertiesEx", "*", "reset_before"),
    ("watches reset", "kubernetes", "*", "watch", "reset_before"),
    ("watches cut", "kubernetes", "*", "watch", {"half": True}),
    ("410", "kubernetes", "*", "watch", {"status": 410}),
    ("lists 503", "kubernetes", "GET", "*", {"status": 503}),
)
