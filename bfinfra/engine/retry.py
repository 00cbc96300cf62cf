"""The only place that tries again. The class of an error decides; jitter and Retry-After decide when."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from threading import Event as Flag
from typing import TYPE_CHECKING, TypeVar

from bfinfra.model.errors import Busy, Conflict, Exists, Expired, RemoteError, Unanswered, Unreachable
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

READ = (Unreachable, Busy, Unanswered, Expired)
"""A read may be repeated as it is."""
LOOK = (*READ, Exists, Conflict)
"""A write is never repeated: the world is looked at again, and decided anew."""
LONGEST_PAUSE = 60.0  # seconds; a server that asks for more is not waited for

A = TypeVar("A")


@dataclass(frozen=True)
class Patience:
    """How often, and how long between. `sleep` takes seconds; once `halt` is set nothing is waited for or tried again."""

    attempts: int = 6
    pause: float = 0.5
    longest: float = 15.0
    sleep: Callable[[float], None] = time.sleep
    halt: Flag = field(default_factory=Flag)

    def read(self, what: Callable[[], A]) -> A:
        """The answer of `what`, asked again after what passes; the last error where it doesn't."""
        return self._tried(what, READ)

    def look(self, what: Callable[[], A], again: Callable[[RemoteError], None]) -> A:
        """One turn of look-decide-act, turned again after what passes; `again` is told why."""

        def tell(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            if isinstance(error, RemoteError):
                again(error)

        return self._tried(what, LOOK, tell)

    def _tried(self, what: Callable[[], A], classes: tuple[type[RemoteError], ...], before_sleep: Callable[[RetryCallState], None] | None = None) -> A:
        """What answers at once needs no tenacity; what fails is its first attempt."""
        try:
            return what()
        except classes as error:
            failed = [error]

        def again() -> A:
            if failed:
                raise failed.pop()
            return what()

        return self._retrying(classes, before_sleep)(again)

    def _retrying(self, classes: tuple[type[RemoteError], ...], before_sleep: Callable[[RetryCallState], None] | None) -> Retrying:
        import tenacity  # noqa: PLC0415 - start-up is a feature

        jitter = tenacity.wait_random_exponential(multiplier=self.pause, max=self.longest)

        def pause(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = error.retry_after if isinstance(error, Busy) else None
            return jitter(state) if asked is None else min(asked, LONGEST_PAUSE)

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(classes), wait=pause, before_sleep=before_sleep, reraise=True,
            stop=tenacity.stop_any(tenacity.stop_after_attempt(self.attempts), tenacity.stop_when_event_set(self.halt)),
            sleep=tenacity.sleep_using_event(self.halt) if self.sleep is time.sleep else self.sleep,
        )
