"""What a watch prints, and its page: a file that is written anew with each report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.app.listener import Listener
from bfinfra.cli.screen import Screen, drawn
from bfinfra.model.errors import BfinfraError
from bfinfra.model.files import write_named
from bfinfra.model.redact import redact
from bfinfra.render import drift as render
from bfinfra.render.page import Followed, page

if TYPE_CHECKING:
    from bfinfra.app.sight import Sight
    from bfinfra.model.drift import Report
    from bfinfra.model.site import Site


class Printed(Listener):
    """Prints the first report whole, and then what starts and ends."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._first = screen, True
        self._unread: object = None

    def report(self, sight: Sight) -> None:
        """Print the report. Another value of a field that has drifted already is only a line of `jsonl`."""
        unread = sight.report.problems, sight.report.unreadable
        known = not (self._first or sight.why or sight.report.new or sight.report.ended)
        known, self._unread = known and unread == self._unread, unread
        if known and self._screen.output == "text":
            return
        if sight.why:
            self._screen.say(f"changes were not followed for up to {sight.blind:.0f} s: {sight.why}")
        found, whole = sight.report, self._first or sight.report.blind
        gap = {"not_followed": {"seconds": round(sight.blind, 3), "why": sight.why}} if sight.why else {}
        self._screen.show(
            lambda style: render.text(found, style) if whole else render.changes(found, style),
            lambda: {**render.data(found), **gap},
        )
        sys.stdout.flush()
        self._first = False

    def interrupted(self, why: str, blind: float) -> None:
        """Print that a server is not followed any more, and why."""
        self._screen.say(f"changes are not followed until a new survey succeeds: {why}")

    def polled(self, why: str, interval: float) -> None:
        """Print which right to grant."""
        self._screen.say(f"read each {interval:g} s, and not followed: {why}")


class WatchedPage(Listener):
    """`failed` gets why the file can't be written; the next report tries again."""

    def __init__(self, name: str, site: Site, failed: Callable[[str], None]) -> None:
        self._name, self._site, self._failed = name, site, failed
        self._followed = Followed(time.time())
        self._last: Report | None = None

    def report(self, sight: Sight) -> None:
        """Write the page anew."""
        self._last = sight.report
        self._write(self._followed if sight.lost else replace(self._followed, lost=0.0, why=""))

    def interrupted(self, why: str, blind: float) -> None:
        """Write since when the last report may be out of date."""
        self._write(replace(self._followed, lost=time.time() - blind, why=why))

    def close(self) -> None:
        """Write that the page is not renewed any more."""
        self._write(replace(self._followed, ended=time.time()))

    def _write(self, followed: Followed) -> None:
        self._followed, last, site = followed, self._last, self._site
        if last is None:
            return
        text = drawn(site, lambda before, style: page(last, site.resources, before, style, followed))
        try:
            write_named(self._name, redact(text))
        except BfinfraError as error:
            self._failed(str(error))
