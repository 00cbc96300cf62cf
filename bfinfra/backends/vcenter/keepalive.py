"""A thread that keeps a lease alive and reports progress to vCenter's task, so that a slow upload doesn't
lose the lease.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from bfinfra.model.errors import Busy, RemoteError, Unanswered, Unreachable

SHORTEST, LONGEST = 1.0, 60.0  # seconds between two reports
SOONEST = 5.0  # seconds between two reports, if there is progress
PASSING = (Unreachable, Busy, Unanswered)


class KeepAlive:
    """`with KeepAlive(tell, timeout)`: reports `percent` three times within the lease's time-out (seconds),
    and soon after it grew.

    A report without an answer is repeated, as long as the lease can't have expired.
    """

    def __init__(self, tell: Callable[[int], object], timeout: int) -> None:
        self.percent = 0
        self._tell, self._timeout = tell, timeout
        self._every = min(max(timeout / 3, SHORTEST), LONGEST)
        self._report_every = min(SOONEST, self._every)
        self._end = threading.Event()
        self._over = threading.Event()
        self._error: RemoteError | None = None
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def check(self) -> None:
        """Raise what ended the lease, if anything did."""
        if self._error is not None:
            raise self._error

    def wait(self, seconds: float) -> None:
        """Wait some seconds; raise what ends the lease meanwhile."""
        self._over.wait(seconds)
        self.check()

    def _beat(self) -> None:
        reported, answered = 0, time.monotonic()
        while not self._end.wait(self._report_every):
            percent, now = min(self.percent, 99), time.monotonic()
            if percent == reported and now - answered < self._every:
                continue
            try:
                self._tell(percent)
                reported, answered = percent, now
            except RemoteError as error:
                if isinstance(error, PASSING) and now - answered < self._timeout:
                    continue
                self._error = error
                self._over.set()
                return
