"""A thread that keeps a lease alive, so that a slow or stalled upload doesn't lose it."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

from bfinfra.model.errors import RemoteError

SHORTEST, LONGEST = 1.0, 60.0  # seconds between two signs of life


class KeepAlive:
    """`with KeepAlive(lease, timeout)`: reports `percent` three times within the lease's time-out (seconds)."""

    def __init__(self, lease: Any, timeout: int) -> None:
        self.percent = 0
        self._lease = lease
        self._every = min(max(timeout / 3, SHORTEST), LONGEST)
        self._end = threading.Event()
        self._error: RemoteError | None = None
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def check(self) -> None:
        """Raise what ended the lease, if anything did."""
        if self._error is not None:
            raise self._error

    def _beat(self) -> None:
        while not self._end.wait(self._every):
            try:
                self._lease.HttpNfcLeaseProgress(min(self.percent, 99))
            except RemoteError as error:
                self._error = error
                return
