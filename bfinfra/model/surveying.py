"""The progress of a survey, for display while it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from threading import Lock


class SurveyProgress:
    """Counted by the survey, from several threads."""

    def __init__(self, waiting: Callable[[], Mapping[str, str]] = dict) -> None:
        self.waiting = waiting
        """Returns the servers that are waited for now, and why."""
        self.total = 0
        """Kinds to read, as far as is known yet."""
        self.read = 0
        """Kinds that were read."""
        self._reading: list[str] = []
        self._lock = Lock()

    def asks(self, kinds: int) -> None:
        """Add this number of kinds to the total."""
        with self._lock:
            self.total += kinds

    @contextlib.contextmanager
    def asking(self, kind: str) -> Iterator[None]:
        """Marks a kind as being read while the block runs."""
        with self._lock:
            self._reading.append(kind)
        try:
            yield
        finally:
            with self._lock:
                self._reading.remove(kind)
                self.read += 1

    def reading(self) -> tuple[str, ...]:
        """The kinds that are being read now, the one that takes longest first."""
        with self._lock:
            return tuple(self._reading)
