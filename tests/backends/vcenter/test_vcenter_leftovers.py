"""Sessions of killed runs are ended by the next run of their site and machine, and nobody else's are."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, connector, leftovers
from bfinfra.sandbox import Running

HERE = leftovers.process.me().rpartition("/")[0]
SITE = """
site: left
vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}
"""


@pytest.fixture
def enter(sandbox: Running, tmp_path: Path) -> Iterator[object]:
    """Logs in as a run of a site; what was opened is closed."""
    (tmp_path / "site.yaml").write_text(SITE)
    settings = bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox).vcenter
    opened = []

    def enter(site: str, **transport: bool) -> VCenter:
        opened.append(VCenter(settings, Transport(route=sandbox.lookup, **transport), site=site))
        opened[-1].session.content()
        return opened[-1]

    yield enter
    for each in opened:
        each.close()


@pytest.fixture
def gone() -> int:
    """The process id of a process that has ended."""
    child = multiprocessing.get_context("spawn").Process(target=os.getpid)
    child.start()
    child.join()
    assert child.pid
    return child.pid


def agents(vcenter: VCenter) -> list[str]:
    return sorted(each.userAgent for each in vcenter.session.content().sessionManager.sessionList)


def left_by(pid: int, monkeypatch: pytest.MonkeyPatch, machine: str = "") -> str:
    """Sets who we are: the agent of a run with this process id."""
    monkeypatch.setattr(leftovers.process, "me", lambda: f"{machine or HERE}/{pid}")
    return connector.agent("left")


def test_what_a_killed_run_left_is_ended_and_nobody_elses_is(enter, gone, monkeypatch):
    mine = connector.agent("left")
    with monkeypatch.context() as as_another:
        killed = left_by(gone, as_another)
        enter("left", read_only=True)
        enter("another-site", read_only=True)
        elsewhere = left_by(gone, as_another, "other-host/abc")
        enter("left", read_only=True)
        alive = left_by(os.getppid(), as_another)
        enter("left", read_only=True)
    assert killed in agents(enter("left", read_only=True)), "a run that only reads ends nothing"
    assert agents(enter("left")) == sorted(
        [mine, mine, elsewhere, alive, killed.replace("left", "another-site")]
    )


def test_without_the_right_they_are_left_to_time_out(enter, gone, sandbox, monkeypatch):
    with monkeypatch.context() as as_another:
        killed = left_by(gone, as_another)
        enter("left", read_only=True)
    sandbox.faults({"api": "vcenter", "method": "TerminateSession", "do": {"soap": "NoPermission"}})
    assert killed in agents(enter("left"))
