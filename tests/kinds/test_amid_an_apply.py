"""vCenter goes away, ends sessions or lets nobody in any more amid an apply: the apply goes on with what is left, or
ends and says what happened, what is off or in maintenance mode, and what next; it never logs in again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from amid import Amid
from clocks import SharedClock
from kinds.lifecycle import EVERYTHING, EXAMPLES, endings, made
from kinds.test_out_of_service import changed

import bfinfra
from bfinfra import sandbox as sandboxes
from bfinfra.engine.apply import Options
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.outcome import Outcome
from bfinfra.render import summary
from bfinfra.sandbox import SMALL_WORLD, Running

POINTS = {
    "cloning": ("virtual_machine", "CloneVM_Task"),
    "powering on": ("virtual_machine", "PowerOnVM_Task"),
    "passthrough": ("gpu_host", "UpdatePassthruConfig"),
    "maintenance": ("gpu_host", "EnterMaintenanceMode_Task"),
    "reboot": ("gpu_host", "RebootHost_Task"),
    "end of maintenance": ("gpu_host", "ExitMaintenanceMode_Task"),
    "a draft": ("host_image", "action=commit"),
    "remediation": ("host_image", "action=apply"),
    "power off": ("virtual_machine again", "ShutdownGuest"),
    "change": ("virtual_machine again", "ReconfigVM_Task"),
}
"""What is going on: the kind whose example is applied, the request. `again`: one that exists is changed."""
NOT_MADE = "cloning"
"""Where nothing was made yet that may be off or in maintenance mode."""
MOST = 24  # logins at a vCenter that lets nobody in; 16 to 19 are sent
FULL = {
    "error_type": "SERVICE_UNAVAILABLE",
    "messages": [
        {
            "id": "com.vmware.vapi.endpoint.failedToLoginMaxUserSessionCountReached",
            "default_message": "User session count is limited to 550. Existing session count is 550 for user x",
        }
    ],
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SharedClock:
    return SharedClock(monkeypatch)


def applied(path: Path, sandbox: Running, amid: Amid, sleep: Callable[[float], None]) -> Outcome:
    retry = RetryPolicy(lasts=90, sleep=sleep)
    return bfinfra.apply(
        bfinfra.load(path, sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=Options(retry=retry),
        context=bfinfra.RunContext(sandbox=sandbox, retry=retry, middleware=(amid,)),
    )


def site(kind: str, sandbox: Running, tmp_path: Path) -> Path:
    name, again, _ = kind.partition(" again")
    return changed(name, sandbox, tmp_path) if again else EXAMPLES[name]


@pytest.mark.thorough("reboot-after", "power off-before")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("point", POINTS)
def test_an_apply_goes_on_once_vcenter_is_back(
    point: str, after: bool, sandbox: Running, tmp_path: Path, clock: SharedClock
) -> None:
    kind, word = POINTS[point]
    away = iter(range(7))

    def refuses(_: str, __: httpx2.Request) -> None:
        if next(away, None) is not None:
            raise httpx2.ConnectError("Connection refused")

    amid = Amid(word, answer=refuses, after=after)
    path = site(kind, sandbox, tmp_path)
    outcome = applied(path, sandbox, amid, clock.sleep)
    assert amid.begun
    assert next(away, None) is None, "it was not asked again"
    assert made(outcome), endings(outcome)
    assert outcome.out_of_service == ()
    assert clock.now < 90
    again = bfinfra.plan(bfinfra.load(path, sandbox=sandbox), context=bfinfra.RunContext(sandbox=sandbox))
    assert again.pending == ()


@pytest.mark.thorough("reboot-after", "remediation-before")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("point", POINTS)
def test_a_session_that_ends_is_one_new_login_of_each_api(
    point: str, after: bool, sandbox: Running, tmp_path: Path, clock: SharedClock
) -> None:
    kind, word = POINTS[point]
    amid = Amid(word, sandbox.expire, after=after)
    outcome = applied(site(kind, sandbox, tmp_path), sandbox, amid, clock.sleep)
    assert amid.begun
    assert made(outcome), endings(outcome)
    assert len(amid.logins()) == len({*amid.logins()}) <= 2


@pytest.mark.thorough("reboot", "remediation", "change")
@pytest.mark.parametrize("point", POINTS)
def test_a_password_that_no_longer_fits_is_tried_once(
    point: str, sandbox: Running, tmp_path: Path, clock: SharedClock
) -> None:
    kind, word = POINTS[point]

    def refuse() -> None:
        sandbox.expire()
        sandbox.faults(
            {"api": "vcenter", "method": "Login", "do": {"soap": "InvalidLogin"}},
            {"api": "rest", "method": "*/session", "do": {"status": 401}},
        )

    amid = Amid(word, refuse, after=True)
    outcome = applied(site(kind, sandbox, tmp_path), sandbox, amid, clock.sleep)
    said = summary.outcome(outcome)
    assert outcome.ending == "failed"
    assert "vCenter refused the login of admin@small.test" in said
    assert "check vcenter.username, and what vcenter.password refers to" in said
    assert len(amid.logins()) == 1, amid.asked
    assert clock.now < 5, "it waited for more than one look at what it did"
    assert ("Out of service now" in said) is (point != NOT_MADE), said


@pytest.mark.thorough("reboot", "remediation")
@pytest.mark.parametrize("point", POINTS)
def test_a_limit_of_sessions_is_waited_for_and_named(
    point: str, sandbox: Running, tmp_path: Path, clock: SharedClock
) -> None:
    kind, word = POINTS[point]

    def full(name: str, _: httpx2.Request) -> httpx2.Response | None:
        if name == "Login":
            return httpx2.Response(503)
        return httpx2.Response(503, json=FULL) if name == "POST /api/session" else None

    amid = Amid(word, sandbox.expire, full, after=True)
    outcome = applied(site(kind, sandbox, tmp_path), sandbox, amid, clock.sleep)
    said = summary.outcome(outcome)
    assert outcome.ending == "failed"
    assert "its limit of sessions may be reached" in said or "User session count is limited to 550" in said
    assert len(amid.logins()) <= MOST
    assert clock.now <= 200
    assert ("Out of service now" in said) is (point != NOT_MADE)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Running, Running]]:
    """Two vCenters with the same address, and other certificates."""
    folders = [tmp_path / "first", tmp_path / "second"]
    first, second = (sandboxes.start(SMALL_WORLD, each, pace=0) for each in folders)
    yield first, second
    for each in folders:
        sandboxes.stop(each)


@pytest.mark.thorough("reboot")
@pytest.mark.parametrize("point", ["reboot", "cloning", "change"])
def test_another_certificate_ends_the_apply_without_a_login(
    point: str,
    pair: tuple[Running, Running],
    tmp_path: Path,
    clock: SharedClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (first, second), (kind, word) = pair, POINTS[point]
    path, own, there = site(kind, first, tmp_path), Running.lookup, [first]
    monkeypatch.setattr(Running, "lookup", lambda _, host, port: own(there[0], host, port))

    def changes() -> None:
        there[0] = second
        sandboxes.stop(tmp_path / "first")

    amid = Amid(word, changes, after=True)
    outcome = applied(path, first, amid, clock.sleep)
    said = summary.outcome(outcome)
    assert outcome.ending == "failed"
    assert "the server's certificate is not trusted" in said
    assert "bfinfra trust vc.small.test:443 shows the certificate" in said
    assert ("Out of service now" in said) is (point != NOT_MADE), said
    assert second.tally()["total"] == 0
    assert clock.now < 90
