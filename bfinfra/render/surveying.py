"""A line while the live state is read; it is removed before anything else is printed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Event, Thread
from types import TracebackType
from typing import Self

from bfinfra.model.surveying import SurveyProgress
from bfinfra.render.values import count, duration

AFTER = 0.7  # seconds; a shorter survey shows no line, and imports nothing for it
MOST = 3  # kinds that are named in the line
Shows = Callable[[Callable[[], str]], AbstractContextManager[object]]
"""Keeps a line on a terminal whose words it asks for again and again."""


class SurveyLine:
    """A context that keeps the line up to date, in its own thread."""

    def __init__(self, progress: SurveyProgress, shows: Shows, *, after: float = AFTER) -> None:
        self._progress, self._shows, self._after = progress, shows, after
        self._began = time.monotonic()
        self._ended = Event()
        self._thread = Thread(target=self._run, name="survey line", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        if not self._ended.wait(self._after):
            with self._shows(lambda: self.words(time.monotonic() - self._began)):
                self._ended.wait()

    def words(self, seconds: float) -> str:
        """`Reading the live state: 3 of 12 kinds, 4.0s; now gpu_host, vm_class and 2 more`."""
        reading = self._progress.reading()
        more = f" and {len(reading) - MOST} more" if len(reading) > MOST else ""
        now = f"; now {', '.join(reading[:MOST])}{more}" if reading else ""
        of = f"{self._progress.read} of {count(self._progress.total, 'kind')}"
        return f"Reading the live state: {of}, {duration(seconds)}{now}"
