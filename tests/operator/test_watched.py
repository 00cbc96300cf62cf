"""What the operator does with a Site that a watcher follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from test_keeper import AGREED, MOVED, WAITS, FakeCluster

from bfinfra.model.errors import Forbidden
from bfinfra.operator.job import TRIGGER
from bfinfra.operator.replicas import LABELS
from bfinfra.operator.watchers import CHANGES_HANDS, SILENT

DAY = 86400
DRIFT = {"count": 1, "found": [{"address": "namespace/a", "field": "labels", "cause": "drift", "by": "x"}]}


class Watched(FakeCluster):
    """A cluster with a watcher, and a Site that it is to follow."""

    def __init__(self) -> None:
        super().__init__()
        self.renewals = 0
        meta = {"name": "w", "namespace": "ns", "labels": dict(LABELS)}
        self.api.create(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {}}
        )
        self.renew()
        self.site(watch=True)

    def renew(self) -> None:
        """The watcher renews its Lease."""
        self.renewals += 1
        spec = {"holderIdentity": "w", "renewTime": str(self.renewals)}
        self.api.patch("coordination.k8s.io/v1", "Lease", "w", {"spec": spec}, "ns")
        self.keeper.watchers.renew()

    def later(self, seconds: float, *, renews: bool = True) -> None:
        self.now += seconds
        if renews:
            self.renew()
        else:
            self.keeper.watchers.renew()
        self.keeper._due("uid-poc")
        self.work()

    def tells(self, drift: Mapping[str, object] | None = None, **more: object) -> None:
        """The watcher reports."""
        body = self.live()
        watch = {
            "replica": "w",
            "since": "2027-01-01T00:00:00.000Z",
            "following": True,
            "observedGeneration": body["metadata"]["generation"],
            "changed": f"at {self.now}",
            "differences": drift["count"] if drift else 0,
            **({"drift": drift} if drift else {}),
            **more,
        }
        body.setdefault("status", {})["watch"] = watch
        self.tell(body)


@pytest.fixture
def world() -> Watched:
    made = Watched()
    made.end()  # the first check
    made.tells()
    return made


def test_followed_it_is_checked_once_a_day_and_not_at_its_interval(world: Watched) -> None:
    assert world.condition("Watched")["status"] == "True"
    assert "Watched" in world.reasons()
    before = len(world.jobs())
    for _ in range(5):
        world.later(3600)
    assert len(world.jobs()) == before
    world.later(DAY)
    assert len(world.running()) == 1
    job = world.running()[0]
    assert job["spec"]["ttlSecondsAfterFinished"] > DAY
    assert "--watched" in job["spec"]["template"]["spec"]["containers"][0]["args"]


def test_drift_is_in_the_status_at_once_and_a_job_corrects_it(world: Watched) -> None:
    world.later(100)
    world.tells(DRIFT)
    assert world.condition("Drifted")["status"] == "True"
    assert world.condition("Ready")["status"] == "True"
    assert "DriftFound" in world.reasons()
    (job,) = world.running()
    assert job["metadata"]["annotations"][TRIGGER] == f"at {world.now}"
    args = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--known=namespace/a labels drift" in args
    world.end(replace(AGREED, corrected=1))
    assert world.condition("Drifted")["status"] == "False"
    jobs = len(world.jobs())
    world.later(2)
    world.tells()
    world.later(120)
    assert (len(world.jobs()), world.running()) == (jobs, [])
    assert world.reasons().count("DriftFound") == 1
    assert "DriftEnded" not in world.reasons()


def test_what_is_reported_while_a_job_runs_waits_for_its_end(world: Watched) -> None:
    world.later(100)
    world.tells(DRIFT)
    writes = len(world.api.calls)
    world.later(1)
    world.tells()
    assert "status" not in [verb for verb, _, _ in world.api.calls[writes:]]
    assert world.condition("Drifted")["status"] == "True"
    world.end(replace(AGREED, corrected=1))
    assert world.condition("Drifted")["status"] == "False"


def test_what_moves_again_and_again_gets_a_job_a_minute(world: Watched) -> None:
    world.later(100)
    for _ in range(30):
        world.tells(DRIFT)
        if world.running():
            world.end(replace(AGREED, corrected=1))
        world.later(5)
    assert 3 <= len(world.jobs()) - 1 <= 6


def test_a_plan_that_waits_is_not_made_again_while_nothing_changes(world: Watched) -> None:
    world.later(100)
    world.tells(DRIFT)
    world.end(WAITS)
    jobs = len(world.jobs())
    for _ in range(5):
        world.later(3600)
    assert len(world.jobs()) == jobs
    world.tells()  # somebody put it back by hand
    (job,) = world.running()
    assert job["metadata"]["annotations"][TRIGGER]
    world.end()
    assert world.condition("ApprovalNeeded")["status"] == "False"


def test_a_check_that_failed_is_made_again_soon(world: Watched) -> None:
    world.later(100)
    world.tells(DRIFT)
    world.end(MOVED)
    world.later(300)
    assert len(world.running()) == 1


def test_without_a_watcher_jobs_check_it_at_its_interval_and_the_status_says_so(world: Watched) -> None:
    world.later(SILENT, renews=False)
    assert (world.condition("Watched")["status"], world.condition("Watched")["reason"]) == (
        "False",
        "NoWatcher",
    )
    assert "NotWatched" in world.reasons()
    before = len(world.jobs())
    world.later(CHANGES_HANDS - 1, renews=False)
    assert len(world.jobs()) == before
    world.later(3600, renews=False)
    (job,) = world.running()
    assert job["spec"]["ttlSecondsAfterFinished"] < DAY
    assert "--watched" not in job["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_watcher_that_follows_no_server_is_none(world: Watched) -> None:
    world.tells(following=False, why="the server does not answer")
    assert world.condition("Watched")["reason"] == "NotFollowed"
    assert "does not answer" in world.condition("Watched")["message"]
    world.later(3700)
    world.later(1)
    assert len(world.running()) == 1


def test_how_long_nobody_followed_is_in_the_condition(world: Watched) -> None:
    world.tells(blindSeconds=17.2, why="its watcher v was lost")
    assert (
        "not followed for up to 17 s before: its watcher v was lost" in world.condition("Watched")["message"]
    )


def test_a_site_that_is_watched_no_more_has_nothing_left_of_it(world: Watched) -> None:
    world.tells(DRIFT)
    world.live()["spec"]["watch"] = False
    world.change(generation=2)
    assert world.condition("Watched") == {}
    world.end()
    world.change()
    assert "watch" not in world.live()["status"]


def test_an_operator_that_may_not_see_leases_checks_at_the_interval(world: Watched) -> None:
    before = len(world.jobs())
    for seconds in (SILENT, CHANGES_HANDS, 3600):
        world.api.fails = [Forbidden("list leases")]
        world.later(seconds, renews=False)
    assert len(world.jobs()) == before + 1
