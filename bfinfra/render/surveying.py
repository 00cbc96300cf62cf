"""What is shown while the live state is read: on a terminal a line, which is removed before anything else is
printed; elsewhere a line for each server that is waited for.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Event, Thread
from types import TracebackType
from typing import Self

from bfinfra.model.surveying import SurveyProgress
from bfinfra.render.values import count, duration

AFTER = 0.7  # seconds; a shorter survey shows no line, and imports nothing for it
OFTEN = 1.0  # seconds between two looks at what is waited for
MOST = 3  # kinds that are named in the line
Shows = Callable[[Callable[[], str]], AbstractContextManager[object]]
"""Keeps a line on a terminal whose words it asks for again and again."""


class _Shown(ABC):
    """A context that shows the progress in its own thread."""

    def __init__(self, progress: SurveyProgress) -> None:
        self._progress = progress
        self._ended = Event()
        self._thread = Thread(target=self._run, name="survey progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Show it until `_ended` is set."""


class SurveyLine(_Shown):
    """A context that keeps the line up to date."""

    def __init__(self, progress: SurveyProgress, shows: Shows, *, after: float = AFTER) -> None:
        super().__init__(progress)
        self._shows, self._after = shows, after
        self._began = time.monotonic()

    def _run(self) -> None:
        if not self._ended.wait(self._after):
            with self._shows(lambda: self.words(time.monotonic() - self._began)):
                self._ended.wait()

    def words(self, seconds: float) -> str:
        """`Reading the live state: 3 of 12 kinds, 4.0s; now gpu_host, vm_class and 2 more`, or what is waited
        for.
        """
        if waits := self._progress.waiting():
            return "; ".join(waited(server, why) for server, why in waits.items())
        reading = self._progress.reading()
        more = f" and {len(reading) - MOST} more" if len(reading) > MOST else ""
        now = f"; now {', '.join(reading[:MOST])}{more}" if reading else ""
        of = f"{self._progress.read} of {count(self._progress.total, 'kind')}"
        return f"Reading the live state: {of}, {duration(seconds)}{now}"


class SurveyNotes(_Shown):
    """A context that says once of each server that it is waited for."""

    def __init__(self, progress: SurveyProgress, say: Callable[[str], None], *, often: float = OFTEN) -> None:
        super().__init__(progress)
        self._say, self._often = say, often

    def _run(self) -> None:
        said: set[str] = set()
        while not self._ended.wait(self._often):
            waits = self._progress.waiting()
            for server in waits.keys() - said:
                self._say(waited(server, waits[server]))
            said = {*waits}


def waited(server: str, why: str) -> str:
    """`waiting for vc.test:443: it answers 503 Service Unavailable; asked again for 86 s at most`."""
    return f"waiting for {server}: {why}"
