"""The only place that tries again. The class of an error decides; jitter and Retry-After decide when."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_base, wait_random_exponential

from bfinfra.model.errors import Busy, Conflict, Exists, Expired, RemoteError, Unanswered, Unreachable

READ = (Unreachable, Busy, Unanswered, Expired)
"""A read may be repeated as it is."""
LOOK = (*READ, Exists, Conflict)
"""A write is never repeated: the world is looked at again, and decided anew."""
LONGEST_PAUSE = 60.0  # seconds; a server that asks for more is not waited for

A = TypeVar("A")


class _Pause(wait_base):
    def __init__(self, patience: Patience) -> None:
        self.jitter = wait_random_exponential(multiplier=patience.pause, max=patience.longest)

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after if isinstance(error, Busy) else None
        return self.jitter(retry_state) if asked is None else min(asked, LONGEST_PAUSE)


@dataclass(frozen=True)
class Patience:
    """How often, and how long between. `sleep` takes seconds."""

    attempts: int = 6
    pause: float = 0.5
    longest: float = 15.0
    sleep: Callable[[float], None] = time.sleep

    def read(self, what: Callable[[], A]) -> A:
        """The answer of `what`, asked again after what passes; the last error where it doesn't."""
        return self._retrying(READ)(what)

    def look(self, what: Callable[[], A], again: Callable[[RemoteError], None]) -> A:
        """One turn of look-decide-act, turned again after what passes; `again` is told why."""

        def tell(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            if isinstance(error, RemoteError):
                again(error)

        return self._retrying(LOOK, tell)(what)

    def _retrying(self, classes: tuple[type[RemoteError], ...], before_sleep: Callable[[RetryCallState], None] | None = None) -> Retrying:
        return Retrying(
            retry=retry_if_exception_type(classes), stop=stop_after_attempt(self.attempts), wait=_Pause(self),
            sleep=self.sleep, before_sleep=before_sleep, reraise=True,
        )
