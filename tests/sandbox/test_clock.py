"""The sandbox's clock."""

from __future__ import annotations

import threading
import time

from bfinfra.sandbox.clock import Clock


def test_at_rest_everything_due_is_done_with_what_it_set_off():
    clock, done, go = Clock(pace=0), [], threading.Event()

    def first() -> None:
        go.wait(60)
        clock.after(10, lambda: done.append("second"))
        done.append("first")

    clock.after(10, first)
    go.set()
    clock.rest()
    assert done == ["first", "second"]


def test_what_lies_ahead_is_not_waited_for():
    clock = Clock()
    clock.after(1000, lambda: None)
    began = time.monotonic()
    clock.rest(longest=1000)
    assert time.monotonic() - began < 60


def test_it_does_not_wait_for_ever():
    clock, stays = Clock(pace=0), threading.Event()
    clock.after(0, lambda: stays.wait(60) and None)
    began = time.monotonic()
    clock.rest(longest=0.01)
    assert time.monotonic() - began < 30
    stays.set()
