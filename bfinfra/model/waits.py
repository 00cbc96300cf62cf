"""How long a step waits, for whatever it waits for: the only clock and the only pause of the kinds and the
backends.

A wait ends at its own limit, or with the time of its step (`--deadline`), whichever comes first. Its end is
StillRunning: nothing broke, and the run ends as still waiting.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from threading import Lock
from typing import TypeVar

from bfinfra.model.errors import StillRunning
from bfinfra.model.records import dataclass

T = TypeVar("T")
FIRST, LONGEST = 0.05, 10.0  # seconds between two looks; each pause is twice the last one
CLEARING = 10.0  # seconds that a request has beyond the end: what was begun has to be ended or undone


@dataclass(frozen=True)
class _Given:
    """The time of a step: `seconds` in all, which are over at `end` of the monotonic clock."""

    seconds: float = math.inf
    end: float = math.inf


_ENDLESS = _Given()
_given: ContextVar[_Given] = ContextVar("given", default=_ENDLESS)


@contextlib.contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """What is waited for in the block ends after so many seconds; with None, at its own limits only."""
    token = _given.set(_ENDLESS if seconds is None else _Given(seconds, now() + seconds))
    try:
        yield
    finally:
        _given.reset(token)


def now() -> float:
    """The monotonic clock: no change of the machine's time makes a wait longer or shorter."""
    return time.monotonic()


def left() -> float:
    """Seconds that the step has left; infinite without a deadline, never negative."""
    return max(0.0, _given.get().end - now())


def capped(seconds: float) -> float:
    """The time-out of one request: not much longer than the step has."""
    return min(seconds, left() + CLEARING)


def carried(do: Callable[..., T]) -> Callable[..., T]:
    """`do` for other threads, with this step's time."""
    here = copy_context()
    return lambda *args: here.copy().run(do, *args)


@contextlib.contextmanager
def held(lock: Lock, what: str, limit: float) -> Iterator[None]:
    """Hold a lock that another thread may keep for long. Raises StillRunning."""
    wait = Wait(what, limit)
    if not lock.acquire(timeout=wait.left()):
        raise wait.over()
    try:
        yield
    finally:
        lock.release()


class Wait:
    """A wait that began now. `what` it is for: "the reboot"; `limit`: seconds; `server`: host:port."""

    def __init__(self, what: str, limit: float, *, server: str = "", longest: float = LONGEST) -> None:
        given = _given.get()
        self.what, self.server = what, server
        self._end = min(now() + limit, given.end)
        self.cut = self._end == given.end
        """Whether it ends with its step, before its own limit."""
        self.limit = given.seconds if self.cut else limit
        """Seconds: its own, or those of the step."""
        self._pause, self._longest = FIRST, longest

    def left(self) -> float:
        """Seconds until it ends, never negative."""
        return max(0.0, self._end - now())

    def check(self, why: str = "") -> None:
        """Raise StillRunning once its time is over. `why`: what it shows of itself."""
        if not self.left():
            raise self.over(why)

    def rest(self, seconds: float | None = None, why: str = "") -> None:
        """Pause before the next look, by default longer each time. Raises StillRunning, as `check`."""
        self.check(why)
        pause = self._pause if seconds is None else seconds
        self._pause = min(2 * self._pause, self._longest)
        time.sleep(min(pause, self.left()))

    def over(self, why: str = "") -> StillRunning:
        """Its end, for who learns that elsewhere."""
        ran = f"it did not end within {self.limit:g} s"
        return StillRunning(
            f"{self.what} is not over",
            server=self.server,
            why="; ".join(filter(None, (f"{ran}, the --deadline" if self.cut else ran, why))),
            next="look at what holds it up, then run this again: it goes on from there"
            + (", and --deadline TIME waits longer" if self.cut else ""),
        )
