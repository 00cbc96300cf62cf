"""`bfinfra watch` on the sandbox: what changes is reported when it changes, and what is reported is what a
check would find.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from heard import NEVER, Heard, following
from kinds.lifecycle import EXAMPLES, QUICK, apply, drift, made
from pyVmomi import vim
from rights.given import administrator
from waiting import until

import bfinfra
from bfinfra.app.listener import Listeners
from bfinfra.app.sight import Sight
from bfinfra.app.watch import watch
from bfinfra.cli.main import main
from bfinfra.cli.screen import Screen
from bfinfra.cli.watched import Printed
from bfinfra.model.drift import Report
from bfinfra.model.errors import Unreachable
from bfinfra.model.stop import Stop
from bfinfra.sandbox import SMALL_WORLD, Running

SITE = """\
site: example
vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}
supervisor_namespace: {team-a: {cluster: compute, limits: {memory: 2GiB}}}
"""
IN_CLUSTER = """\
site: who
kubernetes_cluster: {other: {kubeconfig: {file: other.kubeconfig}}}
namespace: {team-a: {cluster: other, labels: {team: one}}}
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))


@contextmanager
def watching(path: Path, sandbox: Running, interval: float = NEVER) -> Iterator[Heard]:
    site = bfinfra.load(path, sandbox=sandbox)
    context = bfinfra.RunContext(sandbox=sandbox, retry=QUICK)
    with following(site, context, interval) as running:
        yield running
    assert "changes" not in {each.name for each in threading.enumerate()}


@contextmanager
def machine(sandbox: Running) -> Iterator[vim.VirtualMachine]:
    """The server's VM, as another user has it."""
    with administrator(sandbox) as si:
        view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.VirtualMachine], True)
        yield next(vm for vm in view.view if vm.config.extraConfig and vm.name.startswith("bf"))


def settled(task: vim.Task) -> None:
    limit = time.monotonic() + 60
    while task.info.state not in ("success", "error") and time.monotonic() < limit:
        time.sleep(0.01)
    assert task.info.state == "success", task.info.error


def fields(report: Report) -> list[str]:
    return [each.field for each in report.found]


def test_a_change_of_a_machine_is_reported_and_so_is_its_end(sandbox: Running) -> None:
    path = EXAMPLES["bitfusion_server"]
    assert made(apply(path, sandbox))
    sandbox.clear_tally()
    with watching(path, sandbox) as watched, machine(sandbox) as vm:
        assert watched.next().report.found == ()
        memory = vm.config.hardware.memoryMB
        settled(vm.PowerOffVM_Task())
        found = watched.next().report
        assert fields(found) == ["power"]
        assert found.found[0].by
        assert watched.changes
        settled(vm.ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=memory * 2)))
        both = watched.next().report
        assert sorted(fields(both)) == ["memory", "power"]
        settled(vm.ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=memory)))
        last = watched.next().report
        assert (fields(last), [each.split()[1] for each in last.ended]) == (["power"], ["memory"])
        assert last.found[0].by == found.found[0].by
    assert watched.ended == last
    assert fields(drift(path, sandbox)) == ["power"]
    with watching(path, sandbox) as again:
        (lasting,) = again.next().report.found
        assert lasting.by


def test_a_machine_that_goes_has_vanished(sandbox: Running) -> None:
    path = EXAMPLES["bitfusion_server"]
    assert made(apply(path, sandbox))
    with watching(path, sandbox) as watched, machine(sandbox) as vm:
        watched.next()
        settled(vm.PowerOffVM_Task())
        watched.next()
        settled(vm.Destroy_Task())
        gone = watched.next().report
        assert [str(each.cause) for each in gone.found] == ["vanished"]
        assert fields(drift(path, sandbox)) == fields(gone)


def test_what_no_server_reports_is_read_at_intervals(sandbox: Running, tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    assert made(apply(path, sandbox))
    with watching(path, sandbox, interval=0.2) as watched:
        assert watched.next().report.found == ()
        sandbox.change(
            {
                "address": "vc.small.test:443",
                "method": "PATCH",
                "path": "/api/vcenter/namespaces/instances/team-a",
                "body": {"resource_spec": {"memory_limit": 4096}},
            }
        )
        assert fields(watched.next().report) == ["limits.memory"]


def test_a_change_of_an_object_in_a_cluster_is_reported(sandbox: Running, tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(IN_CLUSTER)
    assert made(apply(path, sandbox))

    def somebody(method: str, body: object = None) -> None:
        sandbox.change(
            {
                "address": "10.3.0.1:6443",
                "method": method,
                "content_type": "application/merge-patch+json",
                "path": "/api/v1/namespaces/team-a",
                "body": body,
            }
        )

    with watching(path, sandbox) as watched:
        assert watched.next().report.found == ()
        somebody("PATCH", {"metadata": {"labels": {"team": "other"}}})
        assert fields(watched.next().report) == ["labels.team"]
        somebody("PATCH", {"metadata": {"labels": {"team": "one"}}})
        assert watched.next().report.found == ()
        somebody("DELETE")
        assert [str(each.cause) for each in watched.next().report.found] == ["vanished"]


def labelled(sandbox: Running, team: str) -> None:
    """Somebody labels the namespace."""
    sandbox.change(
        {
            "address": "10.3.0.1:6443",
            "method": "PATCH",
            "content_type": "application/merge-patch+json",
            "path": "/api/v1/namespaces/team-a",
            "body": {"metadata": {"labels": {"team": team}}},
        }
    )


def test_a_cluster_that_ends_a_watch_once_is_followed_again_and_the_report_says_so(
    sandbox: Running, tmp_path: Path
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(IN_CLUSTER)
    assert made(apply(path, sandbox))
    sandbox.faults({"api": "kubernetes", "object": "watch", "nth": 1, "do": {"status": 410}})
    with watching(path, sandbox) as watched:
        first, again = watched.next(), watched.next()
        assert (first.why, again.lost, watched.interruptions) == ("", (), [])
        assert "410" in again.why
        assert again.blind > 0
        labelled(sandbox, "other")
        assert fields(watched.next().report) == ["labels.team"]


@pytest.mark.thorough
def test_a_cluster_that_is_away_is_said_to_be_lost_until_it_is_followed_again(
    sandbox: Running, tmp_path: Path
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(IN_CLUSTER)
    assert made(apply(path, sandbox))
    sandbox.faults({"api": "kubernetes", "object": "watch", "nth": 1, "times": 3, "do": "reset_before"})
    with watching(path, sandbox) as watched:
        sights = [watched.next()]
        while not sights[-1].why or sights[-1].lost:
            sights.append(watched.next())
        assert len(watched.interruptions) == 1
        assert "10.3.0.1:6443" in watched.interruptions[0]
        labelled(sandbox, "other")
        assert fields(watched.next().report) == ["labels.team"]


@pytest.mark.thorough
def test_what_could_not_be_read_when_it_changed_is_read_again_before_the_interval(
    sandbox: Running, tmp_path: Path
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(IN_CLUSTER)
    assert made(apply(path, sandbox))
    with watching(path, sandbox) as watched:
        watched.next()
        sandbox.faults({"api": "kubernetes", "method": "GET *", "do": {"status": 503}})
        labelled(sandbox, "other")
        assert watched.next().report.unreadable
        sandbox.clear_faults()
        assert fields(watched.next().report) == ["labels.team"]


def test_of_a_cluster_that_lets_nobody_watch_changes_are_found_at_intervals(
    sandbox: Running, tmp_path: Path
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(IN_CLUSTER)
    assert made(apply(path, sandbox))
    sandbox.faults({"api": "kubernetes", "object": "watch", "do": {"status": 403}})
    with watching(path, sandbox, interval=0.2) as watched:
        assert watched.next().report.found == ()
        labelled(sandbox, "other")
        assert fields(watched.next().report) == ["labels.team"]
        assert watched.interruptions == []


def test_after_its_session_ended_it_surveys_anew_and_says_how_long_it_saw_nothing(sandbox: Running) -> None:
    path = EXAMPLES["bitfusion_server"]
    assert made(apply(path, sandbox))
    with watching(path, sandbox) as watched, administrator(sandbox) as si:
        first = watched.next()
        assert first.why == ""
        manager = si.content.sessionManager
        own = manager.currentSession.key
        manager.TerminateSession([each.key for each in manager.sessionList if each.key != own])
        with machine(sandbox) as vm:
            settled(vm.PowerOffVM_Task())
        again = watched.next()
        assert again.why == watched.interruptions[0]
        assert again.blind > 0
        seen = again.report if again.report.found else watched.next().report
        assert fields(seen) == ["power"]


def test_it_writes_nothing(sandbox: Running) -> None:
    path = EXAMPLES["bitfusion_server"]
    assert made(apply(path, sandbox))
    sandbox.clear_tally()
    with watching(path, sandbox, interval=0.1) as watched:
        watched.next()
    assert sandbox.tally()["written"] == 0


def test_the_command_ends_as_drift_does(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLES["bitfusion_server"]
    assert made(apply(path, sandbox))
    monkeypatch.setattr("bfinfra.worlds.embedded", lambda *_, **__: sandbox)
    words = ["watch", str(path), "--world", str(SMALL_WORLD), "--once-settled"]
    assert main(words) == 0
    assert "no drift" in capsys.readouterr().out
    with machine(sandbox) as vm:
        settled(vm.PowerOffVM_Task())
    assert main([*words, "--output", "jsonl"]) == 2
    assert '"field":"power"' in capsys.readouterr().out
    assert main([*words, "--output", "json"]) == 1
    assert "use --output jsonl" in capsys.readouterr().err


def test_a_signal_ends_it_as_drift_would_end_then_and_its_page_says_so(
    sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, page = EXAMPLES["bitfusion_server"], tmp_path / "watch.html"
    assert made(apply(path, sandbox))
    monkeypatch.setattr("bfinfra.worlds.embedded", lambda *_, **__: sandbox)

    def somebody() -> None:
        try:
            until(page.exists)
            assert "Everything is as the site says" in page.read_text()
            with machine(sandbox) as vm:
                settled(vm.PowerOffVM_Task())
            until(lambda: "power" in page.read_text())
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    other = threading.Thread(target=somebody)
    other.start()
    words = ["watch", str(path), "--world", str(SMALL_WORLD), "--html", str(page)]
    assert main(words) == 2
    other.join()
    assert "The watch ended" in page.read_text()
    assert [each.name for each in tmp_path.iterdir() if each.name != "state"] == ["watch.html"]


def test_a_connection_that_is_lost_after_the_signal_takes_nothing_back(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, stop, heard = Report("poc", (), 1), Stop(), Listeners([])

    def followed(*_: object) -> Iterator[Sight]:
        yield Sight(found)
        stop.ask(15)
        raise Unreachable("cannot connect", server="vc.small.test")

    monkeypatch.setattr("bfinfra.app.watch._followed", followed)
    site = bfinfra.load(EXAMPLES["bitfusion_server"])
    assert watch(site, heard, context=bfinfra.RunContext(sandbox=sandbox, stop=stop)) is found
    assert heard.following


def test_a_watch_that_does_not_follow_when_a_signal_comes_could_not_say_what_drifted() -> None:
    heard = Listeners([])
    assert not heard.following
    heard.report(Sight(Report("poc", (), 1)))
    assert heard.following
    heard.report(Sight(Report("poc", (), 1), lost=("10.3.0.1:6443",)))
    assert not heard.following
    heard.interrupted("vCenter ended the session", 0)
    assert not heard.following


def test_what_the_account_may_not_watch_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Listeners([Printed(Screen("text", verbose=False, plain=True))]).polled(
        "cannot watch resource jobs in API group batch", 60
    )
    said = capsys.readouterr()
    assert said.err.startswith("read each 60 s, and not followed: cannot watch resource jobs")


def test_after_many_changes_it_says_what_a_check_says(sandbox: Running) -> None:
    path, drawn = EXAMPLES["bitfusion_server"], random.Random(24)
    assert made(apply(path, sandbox))
    with watching(path, sandbox) as watched, machine(sandbox) as vm:
        watched.next()
        settled(vm.PowerOffVM_Task())
        for _ in range(30):
            match drawn.randrange(5):
                case 0:
                    on = vm.runtime.powerState == "poweredOn"
                    settled(vm.PowerOffVM_Task() if on else vm.PowerOnVM_Task())
                case 1 if vm.runtime.powerState == "poweredOff":
                    size = drawn.choice((32, 64, 128)) << 10
                    settled(vm.ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=size)))
                case 2:
                    settled(vm.Rename_Task(drawn.choice((vm.name, "renamed"))))
                case 3:
                    settled(vm.ReconfigVM_Task(vim.vm.ConfigSpec(annotation=str(drawn.random()))))
                case _ if vm.runtime.powerState == "poweredOff":
                    count = drawn.choice((4, 8))
                    settled(vm.ReconfigVM_Task(vim.vm.ConfigSpec(numCPUs=count)))
        time.sleep(3)
    assert watched.ended is not None
    fresh = drift(path, sandbox)
    assert [(each.field, each.now) for each in watched.ended.found] == [
        (each.field, each.now) for each in fresh.found
    ]
