"""Things take time: one thread runs what is due. `pace` stretches or, at 0, removes every wait."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import traceback
from collections.abc import Callable


class Clock:
    """`after(seconds, what)` runs `what` in the clock's thread once `seconds × pace` have gone by, in order
    of time.
    """

    def __init__(self, pace: float = 1.0) -> None:
        self.pace = pace
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._wake = threading.Condition()
        self._running = False
        threading.Thread(target=self._loop, name="clock", daemon=True).start()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        """Run `what` later; never in the caller's thread."""
        with self._wake:
            heapq.heappush(self._due, (time.monotonic() + seconds * self.pace, next(self._count), what))
            self._wake.notify_all()

    def rest(self, longest: float = 5.0) -> None:
        """Wait until what is due is done, at most `longest` seconds; what lies ahead stays there."""
        with self._wake:
            self._wake.wait_for(lambda: not self._running and not self._overdue(), longest)

    def forget(self) -> None:
        """Drop everything that is due."""
        with self._wake:
            self._due.clear()

    def _loop(self) -> None:
        while True:
            with self._wake:
                self._running = False
                self._wake.notify_all()
                while not self._overdue():
                    self._wake.wait(self._due[0][0] - time.monotonic() if self._due else None)
                _, _, what = heapq.heappop(self._due)
                self._running = True
            try:
                what()
            except Exception:  # noqa: BLE001 - one broken timer must not stop the world; the log shows it
                traceback.print_exc()

    def _overdue(self) -> bool:
        return bool(self._due) and self._due[0][0] <= time.monotonic()
