"""What never ends in vCenter is waited for until its limit, or until the step has no more time."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from pyVmomi import vim

from bfinfra.backends.vcenter.host_images import HostImages
from bfinfra.backends.vcenter.hosts import Hosts
from bfinfra.backends.vcenter.library import Libraries
from bfinfra.backends.vcenter.tasks import Tasks
from bfinfra.model.errors import Rejected, StillRunning, Unanswered
from bfinfra.model.waits import within

HOUR = 3600


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on while somebody waits."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", sleep)
    return now


class Session:
    """One whose tasks show what `shows` says, after the seconds for which vCenter was asked to wait."""

    server = "vc.test:443"

    def __init__(self, now: list[float], **shows: Any) -> None:
        self._now, self._shows, self.dropped = now, shows, 0

    def write(self, start: Callable[[Any], object]) -> object:
        return start(self.content())

    def content(self) -> Any:
        def wait(version: str, options: Any) -> Any:
            self._now[0] += options.maxWaitSeconds
            info = vim.TaskInfo(**self._shows)
            change = SimpleNamespace(name="info", val=info)
            entry = SimpleNamespace(kind="modify", missingSet=(), changeSet=(change,))
            return SimpleNamespace(version="1", filterSet=[SimpleNamespace(objectSet=[entry])])

        def drop() -> None:
            self.dropped += 1

        collector = SimpleNamespace(
            CreateFilter=lambda *_, **__: None, WaitForUpdatesEx=wait, DestroyPropertyCollector=drop
        )
        made = SimpleNamespace(CreatePropertyCollector=lambda: collector)
        return SimpleNamespace(propertyCollector=made)


@pytest.mark.parametrize(("deadline", "most"), [(None, HOUR), (30, 30), (2 * HOUR, HOUR)])
def test_a_task_that_never_ends_is_followed_no_longer_than_that(
    now: list[float], deadline: float | None, most: float
) -> None:
    session = Session(now, state="running", progress=5)
    with within(deadline), pytest.raises(StillRunning) as ended:
        Tasks(session).run(lambda _: vim.Task("task-1"), "powering on")
    assert now == [most]
    assert session.dropped == 1
    assert f"powering on is not over; it did not end within {most} s" in str(ended.value)
    assert "its task in vCenter is running at 5 %" in str(ended.value)


def test_a_task_that_vcenter_itself_ended_as_too_long_is_not_begun_again(now: list[float]) -> None:
    session = Session(now, state="error", error=vim.fault.Timedout(msg="vm-1 can't leave"))
    with within(60), pytest.raises(StillRunning, match="mode is not over; vCenter gave up: vm-1 can't leave"):
        Tasks(session).run(lambda _: vim.Task("task-1"), "entering maintenance mode")


@pytest.mark.parametrize(("deadline", "given"), [(None, HOUR), (45, 45), (0.2, 1)])
def test_vcenter_is_told_when_to_give_up_entering_maintenance_mode(
    now: list[float], monkeypatch: pytest.MonkeyPatch, deadline: float | None, given: int
) -> None:
    asked = []
    monkeypatch.setattr(
        vim.HostSystem, "EnterMaintenanceMode_Task", lambda _, **how: asked.append(how) or vim.Task("task-1")
    )
    session = Session(now, state="running")
    session.content().stub = None
    monkeypatch.setattr("bfinfra.backends.vcenter.refs.refer", lambda _, kind, moid: kind(moid))
    with within(deadline), pytest.raises(StillRunning, match="entering maintenance mode is not over"):
        Hosts(session, Tasks(session)).enter_maintenance("host-1")
    assert [each["timeout"] for each in asked] == [given]


class Rest:
    """A vCenter whose tasks and uploads never end, and which says so."""

    server, account = "vc.test:443", "u@vsphere.local"
    answers: ClassVar = {"/api/cis/tasks/t": {"status": "RUNNING"}}

    def __init__(self, refusal: BaseException | None = None) -> None:
        self.refusal = refusal

    def get(self, path: str, **_: object) -> Any:
        return self.answers.get(path, {"state": "ACTIVE"})

    def post(self, path: str, *_: object, **__: object) -> Any:
        if self.refusal:
            raise self.refusal
        return "t"


IN_PROGRESS = Rejected("POST failed", why="another one runs; 400 NOT_ALLOWED_IN_CURRENT_STATE")
ENDLESS: dict[str, tuple[Callable[[], object], int, str]] = {
    "remediation": (
        lambda: HostImages(Rest()).apply("domain-c1", ["host-1"], eula=True),
        4 * HOUR,
        "the remediation is not over",
    ),
    "check": (
        lambda: HostImages(Rest()).check("domain-c1", ["host-1"]),
        4 * HOUR,
        "the check of the hosts is not over",
    ),
    "depot": (
        lambda: HostImages(Rest()).import_depot("https://depot.test/index.xml", "ours"),
        4 * HOUR,
        "the import of https://depot.test/index.xml is not over",
    ),
    "another remediation": (
        lambda: HostImages(Rest(IN_PROGRESS)).apply("domain-c1", ["host-1"], eula=True),
        HOUR,
        "another operation on the image of the cluster is not over",
    ),
    "storing": (
        lambda: Libraries(Rest(), None, None)._settled("s"),
        1800,
        "storing what was uploaded is not over",
    ),
}


@pytest.mark.parametrize("deadline", [None, 60])
@pytest.mark.parametrize("what", ENDLESS)
def test_whatever_never_ends_in_rest_is_asked_no_longer_than_that(
    now: list[float], what: str, deadline: int | None
) -> None:
    run, own, words = ENDLESS[what]
    with within(deadline), pytest.raises(StillRunning) as ended:
        run()
    most = deadline or own
    assert now[0] == pytest.approx(most)
    assert f"vc.test:443: {words}; it did not end within {most} s" in str(ended.value)


def test_an_answer_that_does_not_come_within_the_step_is_no_lost_answer(now: list[float]) -> None:
    wanted = SimpleNamespace(
        name="vm", extra={}, datastore="d", networks={}, thin=True, pool="p", folder="f", host=""
    )

    class Silent(Rest):
        def post(self, path: str, *_: object, **__: object) -> Any:
            now[0] += 70
            raise Unanswered("no whole answer to POST", why="timed out")

    libraries = Libraries(Silent(), None, None)
    with within(60), pytest.raises(StillRunning, match="the deployment of vm is not over"):
        libraries.deploy("item", wanted)
    with within(600), pytest.raises(Unanswered):
        libraries.deploy("item", wanted)
