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


def test_who_begins_when_it_is_done_and_taken_joins_all_the_same():
    """Threads of one kind may be through before the next kind of the same survey begins."""
    done = []

    def do():
        done.append(len(done))
        return done[-1]

    shared = Shared(do, "test")
    shared.begin("one")
    assert shared.take("one") == 0
    shared.begin("other")
    assert (shared.take("other"), len(done)) == (0, 1)


def test_who_joined_it_begins_anew_whoever_else_has_not_taken_it():
    done = []

    def do():
        done.append(len(done))
        return done[-1]

    shared = Shared(do, "test")
    shared.begin("one")
    shared.begin("other")
    assert shared.take("one") == 0
    shared.begin("one")
    assert (shared.take("one"), shared.take("other")) == (1, 0)


def test_who_begins_twice_begins_two_even_side_by_side():
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
