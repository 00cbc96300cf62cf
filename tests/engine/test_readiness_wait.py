"""How often a thing that takes its time is looked at, on a clock that the test moves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from engine.toys import BoxSpec, ToyState

from bfinfra.engine import readiness_wait
from bfinfra.engine.observe import ObservedState
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.errors import Busy, Denied, Problem
from bfinfra.model.events import Ending
from bfinfra.model.kind import Source
from bfinfra.model.readiness import READY, Readiness, Ready, failed, waiting
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


class Looking:
    """Boxes as they are, read when asked; a look may fail."""

    def __init__(self, wanted=None, fails=None):
        self.observed, self.looked, self.fails = ObservedState(), [], fails
        kinds = {"box": self}
        retry = RetryPolicy(attempts=1, lasts=0, sleep=lambda _: None)
        self.wait = readiness_wait.ReadinessWait(
            DesiredState("toys", wanted or {}), self.observed, kinds, self, retry, 60
        )
        self.says = waiting("it dries")

    def look(self, kind, names):
        self.looked.append(names)
        if self.fails:
            raise self.fails

    def ready(self, spec, state):
        self.asked = (spec, state)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


HERE = ToyState(fields={})


def test_what_was_read_just_now_is_not_read_again_for_its_first_look_and_is_for_the_next():
    boxes = Looking({BOX: BoxSpec()})
    boxes.observed.states[BOX] = HERE
    boxes.wait.add(BOX, final=True, just_read=True)
    answers = boxes.wait.poll("box", (BOX,))
    assert (boxes.looked, boxes.asked) == ([], (BoxSpec(), HERE))
    boxes.wait.judge("box", answers)
    boxes.wait.poll("box", (BOX,))
    assert boxes.looked == [("a",)]


def test_a_look_that_fails_ends_what_it_was_for_with_its_problem_and_not_what_was_read_before():
    boxes, other = Looking({BOX: BoxSpec()}, fails=Denied("no right to look")), Key("box", "b")
    boxes.observed.states |= {BOX: HERE, other: HERE}
    boxes.wait.add(BOX, final=True)
    boxes.wait.add(other, final=True, just_read=True)
    answers = boxes.wait.poll("box", (BOX, other))
    verdicts, _ = boxes.wait.judge("box", answers)
    assert {*verdicts} == {BOX}
    assert verdicts[BOX].ending is Ending.FAILED
    assert "no right to look" in verdicts[BOX].problem.what
    assert boxes.wait


@pytest.mark.parametrize(
    ("spec", "state", "final", "status", "why"),
    [
        (None, None, True, Ready.READY, ""),
        (None, HERE, True, Ready.WAITING, "being removed"),
        (BoxSpec(), None, True, Ready.FAILED, "it was deleted while bfinfra waited for it"),
        (BoxSpec(), None, False, Ready.READY, ""),  # it went, to be made anew
        (BoxSpec(), HERE, True, Ready.WAITING, "it dries"),
        (None, HERE, False, Ready.WAITING, "it dries"),
    ],
)
def test_what_goes_is_ready_once_it_is_gone_and_what_stays_as_its_kind_says(spec, state, final, status, why):
    boxes = Looking({BOX: spec} if spec else {})
    boxes.observed.states |= {BOX: state} if state else {}
    boxes.wait.add(BOX, final=final)
    answer = boxes.wait.poll("box", (BOX,))[BOX]
    assert (answer.status, answer.why) == (status, why)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Busy("come back later"), "come back later"),
        (KeyError("phase"), "bfinfra can't read the server's answer about box/a"),
    ],
)
def test_an_answer_that_can_not_be_had_or_read_is_waited_for(error, why):
    boxes = Looking({BOX: BoxSpec()})
    boxes.observed.states[BOX] = HERE
    boxes.says = error
    boxes.wait.add(BOX, final=True)
    answer = boxes.wait.poll("box", (BOX,))[BOX]
    assert answer.status is Ready.WAITING
    assert answer.why.startswith(why)


def test_what_is_ready_between_two_steps_goes_on_and_at_the_end_is_done_with_its_note():
    boxes = Looking({BOX: BoxSpec()})
    for final, ending in ((False, None), (True, Ending.DONE)):
        boxes.wait.add(BOX, final=final)
        verdicts, _ = boxes.wait.judge("box", {BOX: Readiness(Ready.READY, note="at 10.0.0.1")})
        assert (verdicts[BOX].ending, verdicts[BOX].note) == (ending, "at 10.0.0.1")
        assert not boxes.wait


def test_what_can_not_become_ready_fails_with_why_and_what_to_do():
    boxes = Looking({BOX: BoxSpec()})
    boxes.wait.add(BOX, final=True)
    [verdict] = boxes.wait.judge("box", {BOX: failed("it is broken")})[0].values()
    assert verdict.ending is Ending.FAILED
    assert verdict.problem == Problem(
        "box/a can't become ready", why="it is broken", next="correct the cause, then apply again"
    )


def test_what_took_too_long_still_waits_and_says_for_what(clock):
    boxes = Looking({BOX: BoxSpec()})
    boxes.wait.add(BOX, final=True)
    clock.now += 60
    [verdict] = boxes.wait.judge("box", {BOX: waiting("it dries")})[0].values()
    assert (verdict.ending, verdict.problem.what, verdict.problem.why) == (
        Ending.WAITING,
        "box/a is not ready after 60 s",
        "it dries",
    )
    assert verdict.problem.next.startswith("apply again to wait longer")


def test_each_new_reason_is_told_once(clock):
    boxes = Looking({BOX: BoxSpec()})
    boxes.wait.add(BOX, final=True)
    told = []
    for why in ("it dries", "it dries", "it cools", "it dries"):
        told += boxes.wait.judge("box", {BOX: waiting(why)})[1]
    assert [(each.key, each.why, each.at) for each in told] == [
        (BOX, why, clock.now) for why in ("it dries", "it cools", "it dries")
    ]


def test_where_nothing_waits_nothing_is_due_and_the_pause_is_the_longest(clock):
    boxes = Looking()
    assert (boxes.wait.due(set()), boxes.wait.pause(), bool(boxes.wait)) == ([], 5.0, False)


class Given(Source):
    """What is only read."""

    answer = READY

    def __init__(self):
        pass

    def observe(self, wanted, needs, *, include_unlisted=True):
        raise AssertionError(wanted)

    def ready(self, spec, state):
        self.asked = (spec, state)
        return self.answer


def given(answer, spec, state):
    kind = Given()
    kind.answer = answer
    observed = ObservedState({BOX: state} if state else {})
    desired = DesiredState("toys", {BOX: spec} if spec else {})
    wait = readiness_wait.ReadinessWait(desired, observed, {"box": kind}, None, RetryPolicy(), None)
    return kind, wait.at_once(BOX)


def test_what_is_only_read_and_was_found_ready_is_done_with_its_note():
    kind, verdict = given(Readiness(Ready.READY, note="at 10.0.0.1"), BoxSpec(), HERE)
    assert (verdict.ending, verdict.note) == (Ending.DONE, "at 10.0.0.1")
    assert kind.asked == (BoxSpec(), HERE)


def test_what_is_only_read_and_is_not_ready_or_not_there_is_waited_for():
    assert given(waiting("it boots"), BoxSpec(), HERE)[1] is None
    assert given(READY, BoxSpec(), None)[1] is None


def test_what_is_to_go_is_done_at_once_only_if_it_is_gone():
    assert given(READY, None, None)[1].ending is Ending.DONE
    assert given(READY, None, HERE)[1] is None
