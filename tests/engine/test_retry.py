"""What passes is waited for by the clock: an outage outlives any number of quick tries."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.errors import Conflict, RemoteError, Unanswered, Unreachable


class Clock:
    """Time goes on while somebody sleeps, and a second for each try."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.tries = 0.0, 0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def until(self, end: float, error: RemoteError) -> Callable[[], float]:
        """Fails until `end`; answers the time."""

        def what() -> float:
            self.tries, self.now = self.tries + 1, self.now + 0.01
            if self.now < end:
                raise error
            return self.now

        return what


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize("error", [Unreachable("no connection"), Unanswered("no whole answer")])
@pytest.mark.parametrize("seconds", [5, 20, 30, 80])
def test_an_outage_is_outlived_whatever_the_pauses_are(
    clock: Clock, error: RemoteError, seconds: float
) -> None:
    for _ in range(50):
        clock.now = 0.0
        assert RetryPolicy(sleep=clock.sleep).read(clock.until(seconds, error)) >= seconds


def test_patience_ends(clock: Clock) -> None:
    with pytest.raises(Unreachable):
        RetryPolicy(sleep=clock.sleep).read(clock.until(10_000, Unreachable("no connection")))
    assert 90 <= clock.now < 100


def test_what_time_does_not_mend_is_tried_a_few_times(clock: Clock) -> None:
    with pytest.raises(Conflict):
        RetryPolicy(sleep=clock.sleep).look(clock.until(10_000, Conflict("another writer")), lambda _: None)
    assert clock.tries == 6


def test_a_survey_waits_only_seconds_for_a_server_it_never_met(clock: Clock) -> None:
    with pytest.raises(Unreachable):
        RetryPolicy(sleep=clock.sleep, first=5.0).read(
            clock.until(10_000, Unreachable("no connection", met=False))
        )
    assert 5 <= clock.now <= 11
    clock.now = 0.0
    assert RetryPolicy(sleep=clock.sleep, first=5.0).read(clock.until(30, Unreachable("no connection"))) >= 30
