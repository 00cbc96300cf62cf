"""The survey: what a server that can't be reached costs."""

from __future__ import annotations

import threading

from engine.toys import Box, Lid, ToyWorld

from bfinfra.engine.observe import survey
from bfinfra.engine.retry import Patience
from bfinfra.model.errors import Busy, Unreachable
from bfinfra.model.kind import Seen

QUICK = Patience(attempts=4, sleep=lambda _: None)


def asked(monkeypatch, error):
    """How often each kind was asked where all of them answer with this error."""
    found = {"box": 0, "lid": 0}

    def observe(kind, wanted, needs, *, others=True):
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
    both = threading.Barrier(2, timeout=20)

    def observe(kind, wanted, needs, *, others=True):
        both.wait()
        return Seen({})

    for each in (Box, Lid):
        monkeypatch.setattr(each, "observe", observe)
    monkeypatch.setattr(Lid, "alone", True)
    assert not survey(ToyWorld().kinds(), {}, QUICK).unreadable
    assert not both.broken
