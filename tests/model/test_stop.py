from __future__ import annotations

from bfinfra.model.stop import Stop


def test_who_waits_is_woken_when_the_run_is_asked_to_end() -> None:
    stop, seen = Stop(), list[bool]()
    stop.wake = lambda: seen.append(stop.flag.is_set())
    assert not stop.ask(15)
    assert seen == [True]
