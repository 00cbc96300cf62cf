"""How often a thing that takes its time is looked at, on a clock that the test moves."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bfinfra.engine import readiness_wait
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.readiness import waiting
from bfinfra.model.refs import Key

BOX = Key("box", "a")


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


class Slow:
    deadline = 10_000


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(readiness_wait, "time", made)
    return made


def looks(clock: Clock, seconds: float) -> list[float]:
    """When something that waits, and says something new each time, is looked at."""
    made = readiness_wait.ReadinessWait(None, None, {"box": Slow}, None, RetryPolicy(), None)
    made.add(BOX, final=True)
    began, found = clock.now, []
    while clock.now < began + seconds:
        assert made.due(set()) == [("box", (BOX,))]
        found.append(clock.now - began)
        made.judge("box", {BOX: waiting(f"{len(found)} nodes ready")})
        clock.now += made.pause()
    return found


def test_what_takes_20_seconds_is_looked_at_15_times_and_noticed_2_seconds_late_at_most(clock):
    found = looks(clock, 20)
    assert len(found) <= 17
    assert found[0] == 0
    assert found[1] < 0.2
    assert max(after - before for before, after in pairwise(found)) <= 2.001


def test_what_takes_an_hour_is_looked_at_every_5_seconds(clock):
    found = looks(clock, 3600)
    assert len(found) < 760
    assert max(after - before for before, after in pairwise(found)) <= 5.001


def test_one_that_comes_later_is_looked_at_at_once(clock):
    made = readiness_wait.ReadinessWait(None, None, {"box": Slow}, None, RetryPolicy(), None)
    made.add(BOX, final=True)
    for _ in range(20):
        made.judge("box", {BOX: waiting("the glue dries")})
        clock.now += made.pause()
    made.judge("box", {BOX: waiting("the glue dries")})
    assert made.due(set()) == []
    made.add(Key("box", "b"), final=True)
    assert made.due(set()) == [("box", (BOX, Key("box", "b")))]
    made.judge("box", dict.fromkeys([BOX, Key("box", "b")], waiting("the glue dries")))
    assert made.pause() < 0.2


def test_one_that_comes_while_the_others_are_looked_at_does_not_wait_for_their_next_look(clock):
    made = readiness_wait.ReadinessWait(None, None, {"box": Slow}, None, RetryPolicy(), None)
    made.add(BOX, final=True)
    assert made.due(set()) == [("box", (BOX,))]
    made.add(Key("box", "b"), final=True)
    assert made.due({"box"}) == []
    made.judge("box", {BOX: waiting("no nodes ready")})
    assert made.due(set()) == [("box", (BOX, Key("box", "b")))]


def test_a_deadline_is_not_overslept(clock):
    made = readiness_wait.ReadinessWait(None, None, {"box": Slow}, None, RetryPolicy(), 61)
    made.add(BOX, final=True)
    began = clock.now
    while not made.judge("box", {BOX: waiting("it dries")})[0]:
        clock.now += made.pause()
    assert 61 <= clock.now - began < 61.2
