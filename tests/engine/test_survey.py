"""The survey: what a server that can't be reached costs."""

from __future__ import annotations

import threading

import pytest
from engine.toys import Box, Lid, ToyWorld

from bfinfra.engine.observe import survey
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.errors import BfinfraError, Busy, Malformed, Unreachable
from bfinfra.model.kind import Observation

QUICK = RetryPolicy(attempts=4, lasts=0, sleep=lambda _: None)


def asked(monkeypatch, error):
    """How often each kind was asked where all of them answer with this error."""
    found = {"box": 0, "lid": 0}

    def observe(kind, wanted, needs, *, include_unlisted=True):
        found[kind.word] += 1
        raise error

    for each in (Box, Lid):
        monkeypatch.setattr(each, "observe", observe)
    world = survey(ToyWorld().kinds(), {}, QUICK)
    assert set(world.unreadable) == {"box", "lid"}
    return found


def test_a_server_that_can_t_be_reached_is_waited_for_once_not_for_every_kind(monkeypatch):
    assert asked(monkeypatch, Unreachable("no connection")) == {"box": 4, "lid": 1}


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
