"""What is begun before it is needed."""

from __future__ import annotations

import threading

from bfinfra.backends.ahead import Shared


def test_who_begins_while_it_is_under_way_shares_it_and_takes_it_once():
    go, done = threading.Event(), []

    def do():
        go.wait(60)
        done.append(len(done))
        return done[-1]

    shared = Shared(do, "test")
    shared.begin("one")
    shared.begin("other")
    go.set()
    assert (shared.take("one"), shared.take("other")) == (0, 0)
    assert (shared.take("one"), len(done)) == (1, 2)


def test_nobody_joins_what_is_over_or_what_it_began_itself():
    begun, go = threading.Semaphore(0), threading.Event()

    def do():
        begun.release()
        go.wait(60)
        return object()

    shared = Shared(do, "test")
    shared.begin("one")
    shared.begin("one")
    assert begun.acquire(timeout=60)
    assert begun.acquire(timeout=60)
    go.set()
    over = shared.take("one")
    shared.begin("other")
    assert shared.take("other") is not over
