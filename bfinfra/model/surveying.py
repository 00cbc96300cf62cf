"""How far a survey is, for whoever shows it while it goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from threading import Lock


class SurveyProgress:
    """Counted by the survey, from several threads."""

    def __init__(self) -> None:
        self.total = 0
        """Kinds that are asked, as far as is known yet."""
        self.read = 0
        """Kinds that have answered."""
        self._reading: list[str] = []
        self._lock = Lock()

    def asks(self, kinds: int) -> None:
        """So many more kinds will be asked."""
        with self._lock:
            self.total += kinds

    @contextlib.contextmanager
    def asking(self, kind: str) -> Iterator[None]:
        """While a kind is asked."""
        with self._lock:
            self._reading.append(kind)
        try:
            yield
        finally:
            with self._lock:
                self._reading.remove(kind)
                self.read += 1

    def reading(self) -> tuple[str, ...]:
        """The kinds that are asked now, the longest first."""
        with self._lock:
            return tuple(self._reading)
