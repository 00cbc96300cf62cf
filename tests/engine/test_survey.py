"""The survey: what a server that can't be reached costs."""

from __future__ import annotations

import threading
import time

import pytest
from engine.toys import AtOnce, Box, BoxSpec, Lid, LidSpec, ToyState, ToyWorld

from bfinfra.engine.observe import ObservedState, ask, needs_of, survey
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.context import ResolvedRef
from bfinfra.model.errors import BfinfraError, Busy, Malformed, Missing, Refusal, Unanswered, Unreachable
from bfinfra.model.kind import Observation
from bfinfra.model.refs import Key

QUICK = RetryPolicy(attempts=4, lasts=0, sleep=lambda _: None)


def asked(monkeypatch, error, retry=QUICK):
    """How often each kind was asked where all of them answer with this error."""
    found = {"box": 0, "lid": 0}

    def observe(kind, wanted, needs, *, include_unlisted=True):
        found[kind.word] += 1
        raise error

    for each in (Box, Lid):
        monkeypatch.setattr(each, "observe", observe)
    world = survey(ToyWorld().kinds(), {}, retry)
    assert world.unreadable == {"box": str(error), "lid": str(error)}
    return found


def test_a_server_that_can_t_be_reached_is_waited_for_once_not_for_every_kind(monkeypatch):
    assert asked(monkeypatch, Unreachable("no connection")) == {"box": 4, "lid": 1}


@pytest.mark.parametrize(("lasts", "met", "seconds"), [(90, False, 3), (1, False, 1), (90, True, 90)])
def test_a_server_that_never_answered_is_waited_for_shortly(monkeypatch, lasts, met, seconds):
    clock = []
    monkeypatch.setattr(time, "monotonic", lambda: len(clock) / 2)
    error = Unreachable("no connection", met=met)
    assert asked(monkeypatch, error, RetryPolicy(lasts=lasts, sleep=clock.append))["lid"] == 1
    assert time.monotonic() == seconds


def test_a_busy_one_is_asked_again_by_each(monkeypatch):
    assert asked(monkeypatch, Busy("later")) == {"box": 4, "lid": 4}


def test_a_kind_that_takes_nothing_of_what_others_saw_is_asked_beside_those_that_it_refers_to(monkeypatch):
    both = threading.Barrier(2, timeout=60)

    def observe(kind, wanted, needs, *, include_unlisted=True):
        both.wait()
        return Observation({})

    for each in (Box, Lid):
        monkeypatch.setattr(each, "observe", observe)
    monkeypatch.setattr(Lid, "alone", True)
    assert not survey(ToyWorld().kinds(), {}, QUICK).unreadable
    assert not both.broken


def test_who_is_interrupted_waits_for_no_server(monkeypatch):
    began, answered = threading.Event(), threading.Event()

    def interrupted(kind, wanted, needs, *, include_unlisted=True):
        began.wait(60)
        raise KeyboardInterrupt

    def slow(kind, wanted, needs, *, include_unlisted=True):
        began.set()
        answered.wait(60)
        return Observation({})

    monkeypatch.setattr(Box, "observe", interrupted)
    monkeypatch.setattr(Lid, "observe", slow)
    monkeypatch.setattr(Lid, "alone", True)
    with pytest.raises(KeyboardInterrupt):
        survey(ToyWorld().kinds(), {}, QUICK)
    assert not answered.is_set()
    answered.set()


def test_a_lack_of_memory_is_not_blamed_on_a_server(monkeypatch):
    def observe(kind, wanted, needs, *, include_unlisted=True):
        raise MemoryError

    for each in (Box, Lid):
        monkeypatch.setattr(each, "observe", observe)
    with pytest.raises(BfinfraError, match=r"not enough memory to work on (box|lid)") as caught:
        survey(ToyWorld().kinds(), {}, QUICK)
    assert not isinstance(caught.value, Malformed)


A, B, TOP = Key("box", "a"), Key("box", "b"), Key("lid", "top")


@pytest.mark.parametrize(
    ("why", "times"),
    [
        (Busy("later"), 4),
        (Unanswered("cut off"), 4),
        (Unreachable("no connection"), 4),
        (Unreachable("no connection", met=False), 1),  # who asked it has waited for it already
        (Missing("no such shelf"), 1),
        ("it is locked", 1),
    ],
)
def test_a_part_that_is_away_in_passing_is_waited_for_and_what_was_read_is_kept(why, times):
    seen, reads = Observation({"b": ToyState(fields={})}, unreadable={"a": why}), []

    class Partly(Box):
        def observe(self, wanted, needs, *, include_unlisted=True):
            reads.append(wanted)
            return seen

    assert ask(Partly(ToyWorld()), "box", {A: BoxSpec(), TOP: None}, ObservedState(), QUICK) is seen
    assert reads == [{"a": BoxSpec()}] * times


def test_a_kind_is_shown_what_it_may_refer_to_as_far_as_it_could_be_read(monkeypatch):
    spec, state = BoxSpec(), ToyState(fields={})
    wanted = {TOP: LidSpec(box="a"), A: spec, Key("box", "away"): spec}
    observed = ObservedState({B: state, A: state, TOP: None}, unreadable={Key("box", "away"): "no answer"})
    seen, kind = {A: ResolvedRef(A, spec, state), B: ResolvedRef(B, None, state)}, Lid(ToyWorld())
    assert needs_of("lid", kind, wanted, observed) == seen
    assert needs_of("box", kind, wanted, observed) == {}, "it is no other kind"
    for part, plain in (("Spec", BoxSpec), ("State", ToyState)):
        with monkeypatch.context() as patch:
            patch.setattr(Lid, part, plain)
            assert needs_of("lid", kind, wanted, observed) == seen
    monkeypatch.setattr(Lid, "alone", True)
    assert needs_of("lid", kind, wanted, observed) == {}


def test_what_has_no_place_is_known_of_every_kind():
    observed, refused = ObservedState(), {name: Refusal(f"no room for {name}") for name in ("a", "top")}
    observed.take("box", Observation({}, refused={"a": refused["a"]}))
    observed.take("lid", Observation({}, refused={"top": refused["top"]}))
    assert observed.refused == {A: refused["a"], TOP: refused["top"]}


def test_sixteen_kinds_are_asked_at_once_and_no_more():
    readers = AtOnce(16)

    class Slow(Box):
        def observe(self, wanted, needs, *, include_unlisted=True):
            readers.passing()
            return Observation({})

    survey({f"box{number}": Slow(ToyWorld()) for number in range(20)}, {}, QUICK)
    assert readers.most == 16


def test_who_is_interrupted_asks_no_more_kinds():
    threads, go_on = [], threading.Event()

    class Slow(Box):
        def observe(self, wanted, needs, *, include_unlisted=True):
            threads.append(threading.current_thread())
            go_on.wait(60)
            return Observation({})

    class Interrupted(Box):
        def observe(self, wanted, needs, *, include_unlisted=True):
            raise KeyboardInterrupt

    kinds = {f"box{number}": Slow(ToyWorld()) for number in range(30)}
    with pytest.raises(KeyboardInterrupt):
        survey({"a": Interrupted(ToyWorld()), **kinds}, {}, QUICK)
    go_on.set()
    for each in {*threads}:
        each.join(60)
    assert len(threads) <= 16
