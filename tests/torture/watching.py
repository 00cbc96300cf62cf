"""A watch in a thread of its own, and whether its last report is what a check finds."""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
from heard import SOON, Heard, following
from kinds.lifecycle import QUICK, drift
from torture.watcher import words

import bfinfra
from bfinfra.model.drift import Report
from bfinfra.sandbox import Running

PAGE = re.compile(rb"(<maxObjectUpdates>)\d+")


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
    small = (lambda inner: SmallPages(inner, page),) if page else ()
    context = bfinfra.RunContext(sandbox=sandbox, retry=QUICK, middleware=small)
    with following(bfinfra.load(path, sandbox=sandbox), context, interval) as heard:
        heard.next()
        yield heard


def checked(path: Path, sandbox: Running, folder: Path) -> Report:
    """What `drift` finds, on a machine of its own."""
    return elsewhere(folder, lambda: drift(path, sandbox))


def elsewhere(folder: Path, check: Callable[[], Report]) -> Report:
    """What it finds on a machine of its own."""
    before = os.environ["BFINFRA_STATE_HOME"]
    os.environ["BFINFRA_STATE_HOME"] = str(folder / "check")
    try:
        return check()
    finally:
        os.environ["BFINFRA_STATE_HOME"] = before


def agree(heard: Heard, found: Report, within: float = SOON) -> float:
    """Wait until the watch says the same. Returns after how many seconds it did."""
    began, wanted = time.monotonic(), words(found)
    while heard.last is None or heard.lost or words(heard.last) != wanted:
        if time.monotonic() - began > within:
            said = words(heard.last) if heard.last else Counter[str]()
            why = [str(each) for each in heard.last.unreadable.values()] if heard.last else []
            raise AssertionError(
                f"the watch alone: {[*(said - wanted)]}; drift alone: {[*(wanted - said)]}; unread: {why}; "
                f"not followed: {heard.lost}, {heard.interruptions[-3:]}, only read: {heard.refused}"
            )
        time.sleep(0.02)
    return time.monotonic() - began


def interruption(sandbox: Running, si: Any, chance: random.Random) -> str:
    """Something that ends what a watch relies on, on all servers. Returns its name."""
    name, api, method, what, do = chance.choice(INTERRUPTIONS)
    match name:
        case "sessions ended":
            sessions_ended(si)
        case _:
            times = chance.choice((1, 1, 3))
            sandbox.faults({"api": api, "method": method, "object": what, "nth": 1, "times": times, "do": do})
    return name


def sessions_ended(si: Any) -> None:
    """Every session of vCenter but this one."""
    manager = si.content.sessionManager
    own = manager.currentSession.key
    if others := [each.key for each in manager.sessionList if each.key != own]:
        manager.TerminateSession(others)


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
    ("lists 503", "kubernetes", "GET *", "*", {"status": 503}),
)
