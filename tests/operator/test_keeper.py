"""The keeper on a cluster in memory: what it writes, how often, and what it says once."""

from __future__ import annotations

import copy
import datetime as dt
import threading
from collections.abc import Callable
from typing import Any

import pytest
from kinds.of_several import of_several
from operator_cluster import FakeApi

from bfinfra.model.errors import Busy, Rejected
from bfinfra.operator import keeper as module
from bfinfra.operator.desired import FINALIZER
from bfinfra.operator.job import Mould
from bfinfra.operator.keeper import Keeper
from bfinfra.operator.result import Moved, Outcome, Planned, Result

AGREED = Result(Outcome.AGREED, resources=2, seconds=(1.0, 0.0))
MOVED = Result(Outcome.FAILED, "the server says no", 2, 1, (Moved("namespace/a", "labels", "drift", "root"),))
WAITS = Result(
    Outcome.APPROVAL,
    resources=2,
    digest="a" * 16,
    planned=1,
    changes=(Planned("namespace/a", "delete", "none"),),
)
LOST = None


class FakeCluster:
    """A cluster, its clock, and a keeper that gets every event as from watches."""

    def __init__(self, limit: int = 20) -> None:
        self.api, self.now = FakeApi(), 1_800_000_000.0
        self.keeper = Keeper(self.api, Mould("image"), limit, clock=lambda: self.now)

    def site(self, name: str = "poc", site: str = "", **spec: Any) -> dict[str, Any]:
        body = {
            "apiVersion": "bfinfra.io/v1alpha1",
            "kind": "Site",
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"uid-{name}",
                "generation": 1,
                "creationTimestamp": self.iso(),
            },
            "spec": {"interval": "1h", "site": {"site": site or name}, **spec},
        }
        self.tell(self.api.create(body))
        return body

    def iso(self) -> str:
        return dt.datetime.fromtimestamp(self.now, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def live(self, name: str = "poc") -> dict[str, Any]:
        return self.api.objects["Site", "ns", name]

    def tell(self, body: dict[str, Any], *, gone: bool = False) -> None:
        self.keeper.site(copy.deepcopy(body), gone=gone)
        self.work()

    def change(self, name: str = "poc", **meta: Any) -> None:
        self.live(name)["metadata"] |= meta
        self.tell(self.live(name))

    def work(self) -> None:
        while found := self.keeper.ready():
            for uid in found:
                self.keeper.tend(uid)

    def jobs(self) -> list[dict[str, Any]]:
        return self.api.kinds("Job")

    def running(self) -> list[dict[str, Any]]:
        return [job for job in self.jobs() if not job.get("status")]

    def end(self, result: Result | None = AGREED) -> None:
        """The newest Job of those that run ends."""
        job = self.running()[-1]
        job["metadata"].setdefault("creationTimestamp", self.iso())
        self.now += 5
        job["status"] = {
            "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": self.iso()}]
        }
        self.keeper.job(copy.deepcopy(job))
        state = {
            "terminated": {
                "exitCode": 0 if result else 137,
                "reason": "OOMKilled",
                "message": result.text() if result else "",
            }
        }
        self.keeper.pod(
            {
                "metadata": {
                    "labels": {
                        **job["metadata"]["labels"],
                        "batch.kubernetes.io/job-name": job["metadata"]["name"],
                    }
                },
                "status": {"containerStatuses": [{"state": state}]},
            }
        )
        self.work()

    def look(self, result: Result | None = AGREED, later: float = 3600) -> None:
        self.now += later
        self.work()
        self.end(result)

    def condition(self, kind: str, name: str = "poc") -> dict[str, Any]:
        return next(
            (
                each
                for each in self.live(name).get("status", {}).get("conditions", ())
                if each["type"] == kind
            ),
            {},
        )

    def reasons(self) -> list[str]:
        return [each["reason"] for each in self.api.kinds("Event")]

    def calls(self, act: Callable[[], None]) -> list[str]:
        before = len(self.api.calls)
        act()
        return [f"{verb} {kind}" for verb, kind, _ in self.api.calls[before:]]


@pytest.fixture
def world() -> FakeCluster:
    return FakeCluster()


def test_a_new_site_gets_its_finalizer_then_a_job_and_its_result_becomes_the_status(
    world: FakeCluster,
) -> None:
    assert world.calls(lambda: world.site() and None) == ["create Site", "patch Site", "create Job"]
    assert world.live()["metadata"]["finalizers"] == [FINALIZER]
    world.end()
    assert (
        world.condition("Ready")["status"],
        world.condition("Drifted")["status"],
        world.condition("ApprovalNeeded")["status"],
    ) == ("True", "False", "False")
    assert (world.live()["status"]["observedGeneration"], world.live()["status"]["resources"]) == (1, 2)


def test_while_nothing_changes_an_interval_costs_one_request_and_no_event(world: FakeCluster) -> None:
    world.site()
    world.end()
    status = copy.deepcopy(world.live()["status"])
    for _ in range(5):
        assert world.calls(world.look) == ["create Job"]
    assert world.live()["status"] == status
    assert world.reasons() == []


def test_the_status_has_no_time_but_those_of_conditions(world: FakeCluster) -> None:
    world.site()
    world.end(MOVED)
    text = str({key: value for key, value in world.live()["status"].items() if key != "conditions"})
    assert "202" not in text
    first = world.condition("Drifted")["lastTransitionTime"]
    world.look(MOVED, later=400)
    assert world.condition("Drifted")["lastTransitionTime"] == first
    world.look(AGREED, later=400)
    assert world.condition("Drifted")["lastTransitionTime"] > first


def test_lasting_drift_is_reported_once_and_its_end_once(world: FakeCluster) -> None:
    world.site()
    world.end()
    for _ in range(4):
        world.look(Result(Outcome.APPROVAL, "", 2, 1, MOVED.moved, digest="a" * 16, planned=1))
    assert sorted(world.reasons()) == ["ApprovalNeeded", "DriftFound"]
    assert world.condition("Drifted")["message"] == "1: namespace/a labels drift by root"
    world.look()
    world.look()
    assert sorted(world.reasons()) == ["ApprovalNeeded", "DriftEnded", "DriftFound"]


def test_one_failure_that_may_pass_does_not_turn_a_condition_and_the_second_does(world: FakeCluster) -> None:
    world.site()
    world.end()
    world.look(LOST)
    world.now += 30
    world.work()
    assert (world.condition("Ready")["status"], world.reasons()) == ("True", [])
    world.look(Result(Outcome.UNREADABLE, "vc can't be reached"), later=400)
    assert (world.condition("Ready")["status"], world.condition("Ready")["reason"], world.reasons()) == (
        "False",
        "Unreadable",
        ["Unreadable"],
    )
    assert world.condition("Drifted")["status"] == "False"  # nobody could look: as it was


def test_a_job_without_output_is_reported_with_its_reason(world: FakeCluster) -> None:
    world.site()
    world.end(LOST)
    world.now += 30
    world.work()
    assert world.condition("Ready")["reason"] == "JobFailed"
    assert "OOMKilled (exit 137)" in world.condition("Ready")["message"]
    assert world.condition("Drifted") == {}


def test_a_plan_that_waits_runs_when_its_digest_is_approved_and_the_word_is_used_up(
    world: FakeCluster,
) -> None:
    world.site()
    world.end(WAITS)
    assert "bfinfra.io/approve=aaaaaaaaaaaaaaaa" in world.condition("Ready")["message"]
    world.change(annotations={"bfinfra.io/approve": "b" * 16})
    assert world.running() == []
    world.change(annotations={"bfinfra.io/approve": "a" * 16, "other": "x"})
    args = world.running()[0]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-2:] == ["--approved", "a" * 16]
    world.end(Result(Outcome.APPLIED, resources=2, approved="a" * 16, writes=3))
    assert world.live()["metadata"]["annotations"] == {"other": "x"}
    assert "plan" not in world.live()["status"]
    assert world.reasons() == ["ApprovalNeeded", "Applied"]


def test_a_change_of_the_spec_is_looked_at_at_once_but_not_beside_a_job_that_runs(world: FakeCluster) -> None:
    world.site()
    world.change(generation=2)
    assert len(world.running()) == 1
    world.end()
    assert len(world.running()) == 1
    world.end()
    assert (len(world.running()), world.live()["status"]["observedGeneration"]) == (0, 2)


def test_a_deleted_site_is_destroyed_first_and_a_refusal_keeps_it(world: FakeCluster) -> None:
    world.site()
    world.end()
    world.change(deletionTimestamp=world.iso(), generation=2)
    assert world.running()[0]["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--destroy"
    world.end(Result(Outcome.FAILED, "namespace/a: it is protected"))
    assert (world.live()["metadata"]["finalizers"], world.condition("Ready")["message"]) == (
        [FINALIZER],
        "namespace/a: it is protected",
    )
    world.look(Result(Outcome.APPLIED, writes=1), later=400)
    assert world.live()["metadata"]["finalizers"] == []


@of_several("--jobs")
def test_no_more_jobs_than_allowed_run_and_each_that_ends_lets_the_next_begin() -> None:
    world = FakeCluster(limit=3)
    for number in range(10):
        world.site(f"poc-{number}")
    assert len(world.running()) == 3
    for ended in range(1, 11):
        world.end()
        assert len(world.running()) == min(3, 10 - ended)
    assert len(world.jobs()) == 10


def test_two_sites_of_one_name_the_second_does_nothing_until_the_first_is_gone(world: FakeCluster) -> None:
    world.site("first", "same")
    world.now += 1
    world.site("second", "same")
    world.end()
    assert world.condition("Ready", "second")["reason"] == "Invalid"
    assert "ns/first" in world.condition("Ready", "second")["message"]
    assert world.running() == []
    world.tell(world.live("first"), gone=True)
    assert len(world.running()) == 1


def test_whoever_leads_next_looks_at_nothing_twice_and_says_nothing_twice(world: FakeCluster) -> None:
    world.site()
    world.end()
    world.look(Result(Outcome.APPLIED, resources=2, corrected=1, writes=2))
    events, jobs = len(world.reasons()), len(world.jobs())
    second = Keeper(world.api, Mould("image"), clock=lambda: world.now)
    last = max(world.jobs(), key=lambda job: job["metadata"]["creationTimestamp"])
    world.api.objects["Pod", "ns", "p"] = {
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "labels": {
                **last["metadata"]["labels"],
                "batch.kubernetes.io/job-name": last["metadata"]["name"],
            },
        },
        "status": {
            "containerStatuses": [
                {
                    "state": {
                        "terminated": {
                            "message": Result(Outcome.APPLIED, resources=2, corrected=1, writes=2).text()
                        }
                    }
                }
            ]
        },
    }
    second.begin()
    world.keeper = second
    assert world.calls(lambda: world.tell(world.live())) == []
    assert (len(world.reasons()), len(world.jobs())) == (events, jobs)
    assert [row[1].outcome for row in second.rows() if row[1]] == [Outcome.APPLIED]


def test_a_job_that_another_leader_made_in_the_same_moment_is_taken_for_ours(world: FakeCluster) -> None:
    world.site()
    other = FakeCluster()
    other.api.objects, other.now = world.api.objects, world.now
    other.tell(world.live())
    assert len(world.jobs()) == 1
    assert other.keeper.looks.running == 1


def test_what_the_server_refuses_is_tried_again_and_leaves_no_job_behind(world: FakeCluster) -> None:
    world.api.fails = []
    world.site(suspend=True)
    world.api.fails = [Busy("patch"), Busy("create")]
    body = world.live()
    body["spec"]["suspend"] = False
    world.tell(body)
    assert world.keeper.looks.running == 0
    world.now += module.AGAIN
    world.work()
    world.now += 2 * module.AGAIN
    world.work()
    assert len(world.running()) == 1


def test_what_the_server_refuses_for_good_is_tried_ever_more_seldom_and_reported_once(
    world: FakeCluster,
) -> None:
    real = world.api.create

    def create(manifest: Any) -> Any:
        if manifest["kind"] == "Job":
            world.api.calls.append(("refused", "Job", ""))
            raise Rejected("POST jobs", why="exceeded quota: none")
        return real(manifest)

    world.api.create = create  # type: ignore[method-assign]  # a namespace without room
    world.site()
    for _ in range(600):
        world.now += 1
        world.work()
    assert sum(verb == "refused" for verb, _, _ in world.api.calls) == 7
    assert "exceeded quota" in world.condition("Ready")["message"]
    assert world.reasons() == ["JobFailed"]
    world.api.create = real  # type: ignore[method-assign]  # there is room now
    world.now += 400
    world.work()
    world.end()
    assert world.condition("Ready")["status"] == "True"


def test_a_job_that_went_unseen_does_not_keep_its_site_waiting_for_ever(world: FakeCluster) -> None:
    world.site()
    del world.api.objects["Job", "ns", world.jobs()[0]["metadata"]["name"]]
    world.now += module.SETTLED + 1
    world.keeper.renew()
    world.work()
    assert len(world.running()) == 1


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (
            {
                "containerStatuses": [
                    {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
                ]
            },
            "ImagePullBackOff: no such image",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
            "check that each Secret and ConfigMap of spec.env and spec.files exists",
        ),
        (
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes",
                    }
                ]
            },
            "Unschedulable: 0/3 nodes",
        ),
    ],
)
def test_a_check_that_can_not_start_says_why_once_and_no_more_once_it_has_started(
    world: FakeCluster, status: dict[str, Any], word: str
) -> None:
    world.site()
    job = world.running()[0]
    job["metadata"]["creationTimestamp"] = world.iso()
    labels = {**job["metadata"]["labels"], "batch.kubernetes.io/job-name": job["metadata"]["name"]}
    world.api.objects["Pod", "ns", "p"] = {
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels, "creationTimestamp": world.iso()},
        "status": {"phase": "Pending", **status},
    }
    world.keeper.renew()
    world.work()
    assert world.condition("Ready") == {}  # it has its time
    for _ in range(3):
        world.now += 130
        world.keeper.renew()
        world.work()
    assert word in world.condition("Ready")["message"]
    assert world.reasons() == ["JobFailed"]
    del world.api.objects["Pod", "ns", "p"]
    world.end()
    assert world.condition("Ready")["status"] == "True"


def test_its_own_thread_runs_until_it_is_stopped(world: FakeCluster) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=world.keeper.run, args=(stop,))
    thread.start()
    made = threading.Event()
    create = world.api.create

    def watched(manifest: Any) -> Any:
        found = create(manifest)
        if manifest["kind"] == "Job":
            made.set()
        return found

    world.api.create = watched  # type: ignore[method-assign]  # a test listens
    world.keeper.site(
        create(
            {
                "apiVersion": "bfinfra.io/v1alpha1",
                "kind": "Site",
                "metadata": {"name": "poc", "namespace": "ns", "uid": "u"},
                "spec": {"site": {"site": "poc"}},
            }
        )
    )
    assert made.wait(60)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
