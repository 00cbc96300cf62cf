"""A clock that tests turn: nobody waits, however many threads sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

STEP = 1.0  # seconds at most between two turns
REST = 0.002  # seconds of real time for other threads to begin their own pauses


class SharedClock:
    """Time goes on to the earliest end of a pause once all threads have begun theirs. `turns` is called then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.turns: Callable[[], None] = lambda: None
        self._ends: list[float] = []
        self._changed = threading.Condition()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def sleep(self, seconds: float) -> None:
        """A pause of this thread, or a request that takes so long."""
        with self._changed:
            end = self.now + seconds
            self._ends.append(end)
        while self.now < end:
            with self._changed:
                if self._rested() and end == min(self._ends) and self.now < end:
                    self.now = min(end, self.now + STEP)
                    self.turns()  # before another thread turns it on
                    self._changed.notify_all()
        with self._changed:
            self._ends.remove(end)

    def _rested(self) -> bool:
        """Whether a rest passed without a turn, and ended in time: where it doesn't, other threads are late, too."""
        began = time.perf_counter()
        return not self._changed.wait(REST) and time.perf_counter() - began < 2 * REST
