"""Tells a site's webhook what a watch reports, in a thread of its own: a webhook that doesn't answer delays
no report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event as Flag
from threading import Lock, Thread
from typing import TYPE_CHECKING

from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.drift import notify, remember
from bfinfra.app.listener import Listener
from bfinfra.model.drift import Report
from bfinfra.model.errors import BfinfraError
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.app.sight import Sight

PAUSE = 30.0  # seconds until a message that was not accepted is sent again


class Notifier(Listener):
    """Sends each start and each end of drift once. What started and ended while the webhook accepted nothing
    is not sent. `failed` gets the first of several errors in a row; what is not sent when the watch ends is
    kept for the next one.
    """

    def __init__(
        self,
        site: Site,
        *,
        context: RunContext = LIVE,
        failed: Callable[[str], None] = lambda _: None,
        pause: float = PAUSE,
    ) -> None:
        self._site, self._context, self._failed, self._pause = site, context, failed, pause
        self._last: Report | None = None
        self._sent: frozenset[str] = frozenset()
        self._lock, self._wake, self._over = Lock(), Flag(), Flag()
        self._thread = Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def report(self, sight: Sight) -> None:
        """Send what is new in it."""
        found = sight.report
        with self._lock:
            if self._last is None:
                self._sent = (_alarms(found) - found.new) | frozenset(found.ended)
            self._last = found
        self._wake.set()

    def close(self) -> None:
        """Try a last time, and keep what is not sent for the next watch."""
        self._over.set()
        self._wake.set()
        self._thread.join()
        left = self._unsent()
        if left is not None and not self._send(left):
            try:
                remember(left, reported=False)
            except (BfinfraError, OSError) as error:
                self._failed(f"what the webhook did not accept can't be kept: {error}")

    def _run(self) -> None:
        failed = False
        while not self._over.is_set():
            self._wake.wait()
            self._wake.clear()
            while not self._over.is_set() and (left := self._unsent()) is not None:
                if failed := not self._send(left, quietly=failed):
                    self._over.wait(self._pause)

    def _unsent(self) -> Report | None:
        """The last report with what the webhook does not know yet as new and as ended; None if it knows all.
        A report that could not read everything ends nothing.
        """
        with self._lock:
            found, sent = self._last, self._sent
        if found is None:
            return None
        alarms = _alarms(found)
        ended = () if found.blind else tuple(sorted(sent - alarms))
        new = alarms - sent
        return replace(found, new=new, ended=ended) if new or ended else None

    def _send(self, found: Report, *, quietly: bool = False) -> bool:
        try:
            notify(self._site, found, context=self._context)
        except BfinfraError as error:
            if not quietly:
                self._failed(f"the webhook did not accept the message; it is sent again: {error}")
            return False
        with self._lock:
            self._sent = (self._sent | found.new) - frozenset(found.ended)
        return True


def _alarms(found: Report) -> frozenset[str]:
    return frozenset(each.identity for each in found.alarming)
