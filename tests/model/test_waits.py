"""A wait ends at its own limit or with the time of its step, by a clock that tests turn."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bfinfra.model import subprocesses, waits
from bfinfra.model.errors import StillRunning
from bfinfra.model.waits import Wait, within


class Clock:
    """Time goes on while somebody rests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.rests = 0.0, list[float]()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def endless(limit: float) -> StillRunning:
    wait = Wait("the reboot", limit, server="vc.test:443")
    with pytest.raises(StillRunning) as ended:
        while True:
            wait.rest(why="it is at 5 %")
    return ended.value


def test_what_never_ends_is_waited_for_until_its_own_limit(clock: Clock) -> None:
    (problem,) = endless(3600).problems
    assert clock.now == pytest.approx(3600)
    assert str(problem) == (
        "vc.test:443: the reboot is not over; it did not end within 3600 s; it is at 5 %; look at what holds it "
        "up, then run this again: it goes on from there"
    )


def test_what_never_ends_is_waited_for_until_the_deadline_of_its_step(clock: Clock) -> None:
    clock.now = 1000
    with within(90):
        clock.now += 30  # the step did something else before
        (problem,) = endless(3600).problems
    assert clock.now == pytest.approx(1090)
    assert "it did not end within 90 s, the --deadline; it is at 5 %" in str(problem)
    assert problem.next.endswith("and --deadline TIME waits longer")


def test_a_longer_deadline_leaves_a_wait_its_own_limit(clock: Clock) -> None:
    with within(7200):
        error = endless(300)
    assert clock.now == pytest.approx(300)
    assert "--deadline" not in str(error)


def test_a_wait_that_shows_nothing_of_itself_says_how_long_it_was(clock: Clock) -> None:
    wait = Wait("the reboot", 5)
    wait.rest(2)
    wait.check()
    assert clock.rests == [2]
    clock.now = 5
    assert (wait.over().server, wait.over().problems[0].why) == ("", "it did not end within 5 s")
    for go_on in (wait.check, wait.rest):
        with pytest.raises(StillRunning) as ended:
            go_on()
        assert ended.value.problems == wait.over().problems


def test_no_pause_goes_beyond_the_end_and_the_pauses_grow_to_a_bound(clock: Clock) -> None:
    endless(100)
    assert clock.rests[:3] == [0.05, 0.1, 0.2]
    assert max(clock.rests) == 10
    assert sum(clock.rests) == pytest.approx(100)


def test_after_its_block_a_step_has_no_end_any_more(clock: Clock) -> None:
    with within(5):
        assert waits.left() == 5
        with within(None):
            assert waits.left() == float("inf")
    assert waits.left() == float("inf")


def test_a_request_may_take_what_the_step_has_left_and_a_little_to_clear_up(clock: Clock) -> None:
    assert waits.capped(7200) == 7200
    with within(50):
        assert (waits.capped(7200), waits.capped(20)) == (60, 20)
        clock.now = 500
        assert waits.capped(7200) == 10


def test_other_threads_of_a_step_have_its_time(clock: Clock) -> None:
    with within(7), ThreadPoolExecutor(2) as pool:
        assert [*pool.map(waits.carried(lambda _: waits.left()), "ab")] == [7, 7]
        assert pool.submit(waits.left).result() == float("inf")


def test_a_lock_that_another_thread_keeps_ends_with_the_step() -> None:
    lock = threading.Lock()
    with (
        lock,
        within(0.01),
        pytest.raises(StillRunning, match="another upload is not over"),
        waits.held(lock, "another upload", 3600),
    ):
        raise AssertionError("it is held twice")
    with waits.held(lock, "another upload", 3600):
        assert lock.locked()
    assert not lock.locked()


def test_a_program_ends_with_the_step_or_at_its_own_limit() -> None:
    def sleep() -> None:
        subprocesses.run(["/bin/sleep", "60"], env={}, limit=0.05)

    with pytest.raises(subprocesses.Overdue):
        sleep()
    with within(0.01), pytest.raises(StillRunning, match="sleep is not over"):
        sleep()
