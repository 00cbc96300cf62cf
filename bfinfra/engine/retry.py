"""The only place that retries. The class of an error decides whether and how long; jitter and Retry-After
decide when.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from threading import Event as Flag
from typing import TYPE_CHECKING, TypeVar

from bfinfra.model import waits
from bfinfra.model.errors import Busy, Conflict, Exists, Expired, RemoteError, Unanswered, Unreachable
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

READ = (Unreachable, Busy, Unanswered, Expired)
"""A read may be repeated as it is."""
LOOK = (*READ, Exists, Conflict)
"""A write is never repeated: the state is read and decided again."""
OUTAGE = (Unreachable, Busy, Unanswered)
"""Errors that pass with time. Other errors are retried a few times only."""
SHORT_PAUSE = 0.5  # seconds between attempts at a server that has not answered in this run
LONGEST_PAUSE = 60.0  # seconds; a longer Retry-After is cut to this

A = TypeVar("A")


@dataclass(frozen=True)
class RetryPolicy:
    """The limits of retries: how long, how often, and the pauses between them.

    An outage is retried for at least `lasts` seconds and `attempts` times; a server that has not answered in
    this run for `first` seconds, if set; any other error `attempts` times. `sleep` takes seconds. Once `halt`
    is set or the time of the step is over, nothing is retried. `deadline`: seconds for one `look` with all
    that it waits for; None for what each wait has.
    """

    attempts: int = 6
    pause: float = 0.5
    longest: float = 5.0
    lasts: float = 90.0
    first: float | None = None
    sleep: Callable[[float], None] = time.sleep
    halt: Flag = field(default_factory=Flag)
    deadline: float | None = None

    def read(self, what: Callable[[], A]) -> A:
        """The result of `what`, retried; raises the last error."""
        return self._tried(what, READ)

    def look(self, what: Callable[[], A], again: Callable[[RemoteError], None]) -> A:
        """The result of `what`, which reads, decides and acts, retried; `again` gets each error."""

        def tell(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            if isinstance(error, RemoteError):
                again(error)

        with waits.within(self.deadline):
            return self._tried(what, LOOK, tell)

    def rest(self, seconds: float) -> None:
        """Pause, until `halt` is set or the time of the step is over at the latest."""
        seconds = min(seconds, waits.left())
        if self.sleep is time.sleep:
            self.halt.wait(seconds)
        else:
            self.sleep(seconds)

    def _tried(
        self,
        what: Callable[[], A],
        classes: tuple[type[RemoteError], ...],
        before_sleep: Callable[[RetryCallState], None] | None = None,
    ) -> A:
        """The first attempt runs without tenacity, which takes long to import."""
        began = time.monotonic()
        try:
            return what()
        except classes as error:
            failed, own = [error], error

        def again() -> A:
            nonlocal own
            if failed:
                raise failed.pop()
            try:
                return what()
            except classes as error:
                own = error if error.away is None else own
                raise

        try:
            return self._retrying(classes, before_sleep, began)(again)
        except classes as error:
            if error.away is None:
                raise
            raise own from None  # the answer to this reader's own request says more

    def _retrying(
        self,
        classes: tuple[type[RemoteError], ...],
        before_sleep: Callable[[RetryCallState], None] | None,
        began: float,
    ) -> Retrying:
        import tenacity  # noqa: PLC0415 - start-up is a feature

        jitter = tenacity.wait_random_exponential(multiplier=self.pause, max=self.longest)

        def pause(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = error.retry_after if isinstance(error, Busy) else None
            if self._unmet(error):
                return min(jitter(state), SHORT_PAUSE)
            return jitter(state) if asked is None else min(asked, LONGEST_PAUSE)

        def enough(state: RetryCallState) -> bool:
            return (
                self.halt.is_set()
                or not waits.left()
                or self._enough(
                    state.outcome.exception() if state.outcome else None,
                    state.attempt_number,
                    time.monotonic() - began,
                )
            )

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(classes),
            wait=pause,
            before_sleep=before_sleep,
            reraise=True,
            stop=enough,
            sleep=self.rest,
        )

    def _enough(self, error: BaseException | None, attempts: int, seconds: float) -> bool:
        """Return whether to give up after so many attempts and seconds; `error`: what the last attempt
        raised.
        """
        away = error.away if isinstance(error, RemoteError) else None
        if self.first is not None and self._unmet(error):
            return max(seconds, away or 0.0) >= self.first
        if away is not None and away >= self.lasts:
            return True  # all that ask this server have waited together
        return attempts >= self.attempts and (seconds >= self.lasts or not isinstance(error, OUTAGE))

    def _unmet(self, error: BaseException | None) -> bool:
        return self.first is not None and isinstance(error, Unreachable) and not error.met
