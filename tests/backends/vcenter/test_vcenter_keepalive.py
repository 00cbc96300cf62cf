from __future__ import annotations

import threading

import pytest

from bfinfra.backends.vcenter.keepalive import KeepAlive
from bfinfra.model.errors import Missing, Unanswered


class Lease:
    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.percents, self.twice = error, [], threading.Event()

    def HttpNfcLeaseProgress(self, percent: int) -> None:  # noqa: N802 - vSphere's name
        self.percents.append(percent)
        if len(self.percents) > 1 or self.error:
            self.twice.set()
        if self.error:
            raise self.error


def quick(lease: Lease) -> KeepAlive:
    alive = KeepAlive(lease.HttpNfcLeaseProgress, 300)
    alive._every = alive._report_every = 0.001
    return alive


def test_it_reports_while_no_data_flows():
    lease = Lease()
    with quick(lease) as alive:
        alive.percent = 100
        assert lease.twice.wait(60)
        alive.check()
    assert lease.percents[-1] in (0, 99), "the last percent belongs to the one who completes the lease"


def test_a_lease_that_ended_stops_the_upload_at_its_next_block():
    lease = Lease(Missing("the lease is gone"))
    with quick(lease) as alive:
        assert lease.twice.wait(60)
        alive._thread.join(60)
        with pytest.raises(Missing):
            alive.check()


def test_it_reports_three_times_within_the_time_out_and_at_least_every_minute():
    assert KeepAlive(print, 30)._every == 10
    assert KeepAlive(print, 3600)._every == 60


def test_a_sign_of_life_that_is_not_answered_is_given_again_until_the_lease_can_have_run_out():
    lease = Lease(Unanswered("no whole answer"))
    with quick(lease) as alive:
        alive._timeout = 5
        assert lease.twice.wait(60)
        lease.twice.clear()
        assert lease.twice.wait(60)
        alive.check()
    with quick(Lease(Unanswered("no whole answer"))) as alive:
        alive._timeout = 0
        with pytest.raises(Unanswered):
            alive.wait(5)


def test_progress_is_sent_soon_and_no_progress_three_times_within_the_time_out():
    lease = Lease()
    alive = KeepAlive(lease.HttpNfcLeaseProgress, 300)
    alive._report_every = 0.001
    with alive:
        alive.percent = 37
        while not lease.percents:
            lease.twice.wait(0.01)
    assert lease.percents == [37]
