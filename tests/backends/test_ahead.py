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
    go, done = threading.Event(), []

    def do():
        go.wait(60)
        done.append(None)
        return len(done)

    shared = Shared(do, "test")
    shared.begin("one")
    shared.begin("one")
    go.set()
    shared.take("one")
    shared.begin("other")
    assert shared.take("other") == len(done)
    assert len(done) > 1
