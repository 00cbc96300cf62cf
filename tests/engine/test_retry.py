"""What passes is waited for by the clock: an outage outlives any number of quick tries. The class of an error
says what passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

import pytest

from bfinfra.engine.retry import RetryPolicy
from bfinfra.model import waits
from bfinfra.model.errors import (
    BfinfraError,
    Busy,
    Conflict,
    Denied,
    Exists,
    Expired,
    Malformed,
    Missing,
    NotYet,
    OutOfFiles,
    Rejected,
    RemoteError,
    StillRunning,
    Unanswered,
    Unreachable,
    Untrusted,
)

PASSES = [Unreachable("no connection"), Busy("come back later"), NotYet("not there"), Unanswered("cut off")]
FEW_TRIES = [Exists("the name is taken"), Conflict("another writer")]
FINAL = [
    StillRunning("it takes long"),
    Untrusted("another certificate"),
    Denied("no right"),
    Missing("no such object"),
    Rejected("refused"),
    Malformed("no JSON"),
    OutOfFiles("no more files"),
    ValueError("a mistake of ours"),
]


def named(error: Exception) -> str:
    return type(error).__name__


class Clock:
    """Time goes on while somebody sleeps, and a second for each try."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.tries = 0.0, 0
        self.slept: list[float] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def until(self, end: float, error: Exception) -> Callable[[], float]:
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
    assert max(clock.slept) <= 5, "it looks again at least every five seconds"


def test_what_time_does_not_mend_is_tried_a_few_times(clock: Clock) -> None:
    with pytest.raises(Conflict):
        RetryPolicy(sleep=clock.sleep).look(clock.until(10_000, Conflict("another writer")), lambda _: None)
    assert clock.tries == 6


@pytest.mark.parametrize("first", [0.5, 5.0])
def test_a_survey_waits_only_seconds_for_a_server_it_never_met(clock: Clock, first: float) -> None:
    with pytest.raises(Unreachable):
        RetryPolicy(sleep=clock.sleep, first=first).read(
            clock.until(10_000, Unreachable("no connection", met=False))
        )
    assert first <= clock.now <= first + 6
    clock.now = 0.0
    assert RetryPolicy(sleep=clock.sleep, first=5.0).read(clock.until(30, Unreachable("no connection"))) >= 30


def test_a_survey_looks_for_a_server_it_never_met_more_often(clock: Clock) -> None:
    unmet = Unreachable("no connection", met=False)
    with pytest.raises(Unreachable):
        RetryPolicy(sleep=clock.sleep, first=50.0).read(clock.until(10_000, unmet))
    assert max(clock.slept) == 0.5


def test_an_apply_waits_for_a_server_it_never_met_as_for_any_other(clock: Clock) -> None:
    unmet = Unreachable("no connection", met=False)
    assert RetryPolicy(sleep=clock.sleep).read(clock.until(80, unmet)) >= 80


@pytest.mark.parametrize("error", PASSES, ids=named)
def test_what_passes_is_outlived_by_reading_and_by_looking_again(clock: Clock, error: RemoteError) -> None:
    policy = RetryPolicy(sleep=clock.sleep)
    assert policy.read(clock.until(80, error)) >= 80
    clock.now = 0.0
    assert policy.look(clock.until(80, error), lambda _: None) >= 80


def test_an_outage_is_tried_a_few_times_however_long_each_try_takes(clock: Clock) -> None:
    def slow() -> None:
        clock.tries, clock.now = clock.tries + 1, clock.now + 100
        raise Unanswered("cut off")

    with pytest.raises(Unanswered):
        RetryPolicy(sleep=clock.sleep).read(slow)
    assert clock.tries == 6


def test_without_patience_an_outage_is_tried_so_many_times_however_quick_it_is(clock: Clock) -> None:
    left = 9

    def quick() -> int:
        nonlocal left
        left -= 1
        if left:
            raise Unanswered("cut off")
        return left

    with pytest.raises(Unanswered):
        RetryPolicy(attempts=4, lasts=0, sleep=lambda _: None).read(quick)
    assert left == 9 - 4


@pytest.mark.parametrize("error", FEW_TRIES, ids=named)
def test_another_writer_means_to_look_and_decide_again_a_few_times(clock: Clock, error: RemoteError) -> None:
    with pytest.raises(type(error)):
        RetryPolicy(sleep=clock.sleep).look(clock.until(10_000, error), lambda _: None)
    assert clock.tries == 6


@pytest.mark.parametrize("error", FEW_TRIES, ids=named)
def test_another_writer_is_nothing_that_reading_again_mends(clock: Clock, error: RemoteError) -> None:
    with pytest.raises(type(error)):
        RetryPolicy(sleep=clock.sleep).read(clock.until(10_000, error))
    assert (clock.tries, clock.slept) == (1, [])


@pytest.mark.parametrize("look", [False, True], ids=["read", "look"])
def test_a_session_that_ended_is_opened_anew_a_few_times(clock: Clock, look: bool) -> None:
    policy, what = RetryPolicy(sleep=clock.sleep), clock.until(10_000, Expired("logged out"))
    with pytest.raises(Expired):
        policy.look(what, lambda _: None) if look else policy.read(what)
    assert clock.tries == 6


@pytest.mark.parametrize("error", FINAL, ids=named)
@pytest.mark.parametrize("look", [False, True], ids=["read", "look"])
def test_what_is_final_is_tried_once(clock: Clock, error: Exception, look: bool) -> None:
    policy, what = RetryPolicy(sleep=clock.sleep), clock.until(10_000, error)
    with pytest.raises(type(error)):
        policy.look(what, lambda _: None) if look else policy.read(what)
    assert (clock.tries, clock.slept) == (1, [])


@pytest.mark.parametrize("error", FINAL, ids=named)
def test_what_is_final_ends_it_after_an_outage_too(clock: Clock, error: Exception) -> None:
    left: list[Exception] = [Unreachable("no connection"), error]

    def what() -> None:
        clock.tries += 1
        raise left.pop(0) if left else AssertionError("tried again")

    with pytest.raises(type(error)):
        RetryPolicy(sleep=clock.sleep).read(what)
    assert clock.tries == 2


def test_patience_is_counted_from_the_first_try_whatever_the_clock_shows(clock: Clock) -> None:
    clock.now = 5000.0
    with pytest.raises(Unreachable):
        RetryPolicy(sleep=clock.sleep).read(clock.until(50_000, Unreachable("no connection")))
    assert 5090 <= clock.now < 5100


def test_each_failure_but_the_last_is_told_before_it_is_tried_again(clock: Clock) -> None:
    told: list[RemoteError] = []
    with pytest.raises(Conflict):
        RetryPolicy(sleep=clock.sleep).look(clock.until(10_000, Conflict("another writer")), told.append)
    assert [str(each.problems[0].what) for each in told] == ["another writer"] * 5


# How long it pauses.


def busy(clock: Clock, after: float | None, tries: int = 3) -> list[float]:
    """The pauses between so many tries at a server that asks to come back after so many seconds."""

    def what() -> int:
        clock.tries += 1
        if clock.tries < tries:
            raise Busy("come back later", retry_after=after)
        return clock.tries

    assert RetryPolicy(sleep=clock.sleep, lasts=10_000).read(what) == tries
    return clock.slept


@pytest.mark.parametrize("seconds", [0.0, 3.0, 17.0, 60.0])
def test_a_server_that_names_a_time_is_left_alone_for_exactly_that(clock: Clock, seconds: float) -> None:
    assert busy(clock, seconds) == [seconds, seconds]


@pytest.mark.parametrize("seconds", [61.0, 3600.0, 86_400.0])
def test_nobody_is_left_alone_for_more_than_a_minute(clock: Clock, seconds: float) -> None:
    assert busy(clock, seconds) == [60.0, 60.0]


def test_without_a_time_the_pauses_are_random_and_grow_to_five_seconds(clock: Clock) -> None:
    slept = busy(clock, None, tries=200)
    assert len({*slept}) > 150, "several runs don't come back together"
    assert slept[0] <= 0.5
    assert slept[1] <= 1
    assert 4 < max(slept) <= 5


@pytest.mark.parametrize("look", [False, True], ids=["read", "look"])
def test_once_the_run_is_stopped_nothing_is_tried_again(clock: Clock, look: bool) -> None:
    policy, what = RetryPolicy(sleep=clock.sleep), clock.until(10_000, Busy("come back later"))
    policy.halt.set()
    with pytest.raises(Busy):
        policy.look(what, lambda _: None) if look else policy.read(what)
    assert (clock.tries, clock.slept) == (1, [])


def test_a_pause_is_as_long_as_it_says_and_listens_for_a_stop() -> None:
    class Heard(Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout)
            return False

    waited: list[float | None] = []
    RetryPolicy(halt=Heard()).rest(7.0)
    assert waited == [7.0]


def test_a_stop_ends_the_pause_itself() -> None:
    policy = RetryPolicy()
    policy.halt.set()
    began = time.monotonic()
    policy.rest(600)
    assert time.monotonic() - began < 60


def test_a_deadline_ends_the_tries_and_cuts_the_last_pause(clock: Clock) -> None:
    policy = RetryPolicy(sleep=clock.sleep, deadline=20.0)
    with pytest.raises(Busy):
        policy.look(clock.until(10_000, Busy("come back later", retry_after=15)), lambda _: None)
    assert clock.slept == pytest.approx([15, 5], abs=0.1)
    assert waits.left() == float("inf"), "the time of one step is not that of the next"


# A server that was away too long while others asked it too.


def gone(away: float) -> Unreachable:
    found = Unreachable("no connection")
    found.away = away
    return found


def test_a_server_that_all_have_waited_for_is_not_waited_for_again(clock: Clock) -> None:
    with pytest.raises(Unreachable):
        RetryPolicy(sleep=clock.sleep).read(clock.until(10_000, gone(90.0)))
    assert (clock.tries, clock.slept) == (1, [])


def test_a_server_that_has_been_away_for_less_is_waited_for(clock: Clock) -> None:
    assert RetryPolicy(sleep=clock.sleep).read(clock.until(30, gone(89.0))) >= 30


def test_a_survey_counts_the_time_that_others_have_waited_for_a_new_server(clock: Clock) -> None:
    unmet = Unreachable("no connection", met=False)
    unmet.away = 5.0
    with pytest.raises(Unreachable):
        RetryPolicy(sleep=clock.sleep, first=5.0).read(clock.until(10_000, unmet))
    assert clock.tries == 1


def test_the_answer_to_its_own_request_is_reported_rather_than_that_of_others(clock: Clock) -> None:
    answers = [Unreachable("connection refused"), gone(20.0), gone(100.0)]

    def what() -> None:
        raise answers.pop(0)

    with pytest.raises(Unreachable, match="connection refused"):
        RetryPolicy(sleep=clock.sleep).read(what)
    assert answers == []


def test_the_newest_answer_to_its_own_request_is_reported(clock: Clock) -> None:
    answers: list[RemoteError] = [Unreachable("connection refused"), Busy("starting"), gone(100.0)]

    def what() -> None:
        raise answers.pop(0)

    with pytest.raises(BfinfraError, match="starting"):
        RetryPolicy(sleep=clock.sleep).read(what)
