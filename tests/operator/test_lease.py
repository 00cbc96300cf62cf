"""Of several replicas one leads."""

from __future__ import annotations

import threading

from operator_cluster import FakeApi

from bfinfra.model.errors import Unreachable
from bfinfra.operator.lease import GIVEN_UP, LASTS, Lease


class Two:
    def __init__(self) -> None:
        self.api, self.now = FakeApi(), 0.0
        self.one, self.other = (
            Lease(self.api, "ns", "op", me, clock=lambda: self.now) for me in ("one", "other")
        )


def test_the_first_leads_and_the_other_waits_as_long_as_it_renews() -> None:
    two = Two()
    assert (two.one.step(), two.other.step()) == (True, False)
    for _ in range(10):
        two.now += LASTS - 1
        assert (two.one.step(), two.other.step()) == (True, False)


def test_a_leader_that_fell_silent_is_followed_after_its_whole_time_and_knows_it() -> None:
    two = Two()
    two.one.step()
    two.other.step()
    two.now += LASTS - 1
    assert not two.other.step()
    two.now += 1
    assert two.other.step()
    assert not two.one.step()


def test_one_that_ends_lets_the_next_in_at_once() -> None:
    two = Two()
    two.one.step()
    two.one.release()
    assert two.other.step()
    assert two.api.objects["Lease", "ns", "op"]["spec"]["leaseTransitions"] == 1


def test_who_can_not_renew_stops_before_anybody_else_begins() -> None:
    two = Two()
    two.one.step()
    two.now += 4
    two.api.fails = [Unreachable("no")] * 3
    assert two.one.step()
    two.now += GIVEN_UP
    assert not two.one.step()
    assert GIVEN_UP + 4 < LASTS


def test_of_two_that_take_it_at_once_one_gets_it() -> None:
    two = Two()
    real = two.api.get

    def slow(*words: str) -> object:
        found = real(*words)
        two.api.get = real  # type: ignore[method-assign]  # only the first is overtaken
        two.one.step()
        return found

    two.api.get = slow  # type: ignore[assignment,method-assign]  # a test's own
    assert not two.other.step()
    assert two.one.leading


def test_a_lost_lease_is_reported_and_waiting_ends_when_it_is_stopped() -> None:
    two = Two()
    stop, lost = threading.Event(), threading.Event()
    assert two.one.lead(stop)
    two.now += LASTS
    two.other.step()
    two.now += LASTS
    two.other.step()
    two.one.keep(stop, lost, every=0)
    assert lost.is_set()
    stop.set()
    assert not two.one.lead(stop)
