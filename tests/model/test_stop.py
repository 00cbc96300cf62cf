from __future__ import annotations

import pytest

from bfinfra.model.stop import Interrupted, Stop


def test_who_waits_is_woken_when_the_run_is_asked_to_end() -> None:
    stop, seen = Stop(), list[bool]()
    stop.wake = lambda: seen.append(stop.flag.is_set())
    assert not stop.ask(15)
    assert seen == [True]


def test_a_run_that_writes_finishes_what_it_began_and_another_ends_at_once() -> None:
    stop = Stop()
    stop.check()
    stop.begin_writing()
    assert stop.ask(2)
    assert (stop.number, stop.code, stop.flag.is_set(), stop.serves) == (2, 130, True, False)
    stop.check()
    early = Stop()
    assert (early.number, early.flag.is_set()) == (0, False)
    assert not early.ask(15)
    assert early.code == 143
    for go_on in (early.check, early.begin_writing):
        with pytest.raises(Interrupted):
            go_on()
    assert not early.ask(15), "it never began to write"
