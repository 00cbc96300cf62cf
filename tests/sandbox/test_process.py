"""A sandbox starts, is found, keeps its state, is reset, steered and stopped as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from asking import Rest, control
from waiting import until

from bfinfra.sandbox import SMALL_WORLD, Running, SandboxError, process, reset, running, start, stop

pytestmark = pytest.mark.thorough

CLASSES = "/api/vcenter/namespace-management/virtual-machine-classes"
LAUNCH = process.launch
NEW = {"id": "mine", "cpu_count": 1, "memory_MB": 1024}


@pytest.fixture
def not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sandboxes start as users start them."""
    monkeypatch.setattr(process, "launch", LAUNCH)


def test_it_starts_is_found_and_stops(tmp_path: Path, not_forked: None) -> None:
    assert running(tmp_path) is None
    made = start(SMALL_WORLD, tmp_path)
    assert running(tmp_path) == made
    assert (tmp_path / "endpoints.json").stat().st_mode & 0o077 == 0
    assert made.env["VCENTER_PASSWORD"] not in repr(made)
    stop(tmp_path)
    assert running(tmp_path) is None
    stop(tmp_path)


def test_every_address_listens_and_others_are_unknown(small: Running) -> None:
    found = running(small.state)
    assert found
    assert {
        "vc.small.test:443",
        "esx1.small.test:443",
        "esx2.small.test:443",
        "10.1.0.1:443",
        "10.1.0.1:6443",
        "10.3.0.1:6443",
        "10.5.0.1:22",
        "10.5.0.11:22",
        "10.5.0.21:22",
    } == set(found.addresses)
    for name in found.addresses:
        host, _, port = name.rpartition(":")
        there = small.lookup(host, int(port))
        assert there
        socket.create_connection(there).close()
    assert small.lookup("example.org", 443) is None


def test_the_files_of_the_world_are_there(small: Running) -> None:
    assert (Path(small.files) / "note.txt").read_text() == "hello\n"
    assert (Path(small.files) / "ca.pem").read_text() == Path(small.ca_file).read_text()
    assert (Path(small.files) / "server.ova").stat().st_size > 100_000


def test_the_state_survives_a_stop_and_passwords_and_pins_stay(own: Running) -> None:
    rest = Rest(own)
    assert rest.call("POST", CLASSES, NEW).status == 204
    stop(own.state)
    again = start(SMALL_WORLD, own.state)
    assert again.env == own.env
    assert Rest(again).get(f"{CLASSES}/mine")["cpu_count"] == 1
    assert Path(again.ca_file).read_text() == Path(own.ca_file).read_text()


def test_a_reset_brings_back_the_start_whether_it_runs_or_not(own: Running) -> None:
    start_dump = control(own, "GET", "/world").data
    Rest(own).call("POST", CLASSES, NEW)
    assert control(own, "GET", "/world").data != start_dump
    reset(own.state)
    assert control(own, "GET", "/world").data == start_dump
    Rest(own).call("POST", CLASSES, NEW)
    stop(own.state)
    reset(own.state)
    assert control(start(SMALL_WORLD, own.state), "GET", "/world").data == start_dump


def test_a_reset_takes_away_what_sites_wrote_and_makes_anew_what_somebody_changed(own: Running) -> None:
    files = Path(own.files)
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    for beside in ("images/pytorch/Dockerfile", ".bfinfra/example/images/webhook/.bfinfra.json", "ssh/other"):
        (files / beside).parent.mkdir(parents=True, exist_ok=True)
        (files / beside).write_text("a site's\n")
    (files / "away").symlink_to(own.state)
    own.reset()
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before
    assert not (files / "images").exists()
    assert own.ca_file.exists(), "a link is taken away, not what it leads to"
    (files / "note.txt").write_text("bye\n")
    (files / "server.ova").unlink()
    own.reset()
    assert (files / "note.txt").read_text() == "hello\n"
    assert {path for path in files.rglob("*") if path.is_file()} == before.keys()


def test_two_worlds_of_one_file_are_equal(small: Running, tmp_path: Path) -> None:
    other = start(SMALL_WORLD, tmp_path / "other")
    try:
        assert control(small, "GET", "/world").data == control(other, "GET", "/world").data
    finally:
        stop(tmp_path / "other")


def test_a_second_process_on_the_folder_is_refused(small: Running) -> None:
    command = [
        sys.executable,
        "-m",
        "bfinfra.sandbox",
        "serve",
        "--world",
        str(SMALL_WORLD),
        "--state",
        str(small.state),
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, "another sandbox runs" in found.stderr) == (1, True)
    assert start(SMALL_WORLD, small.state).pid == small.pid


def test_a_killed_one_is_not_found_and_can_be_started_again(tmp_path: Path, not_forked: None) -> None:
    os.kill(start(SMALL_WORLD, tmp_path).pid, signal.SIGKILL)
    until(lambda: running(tmp_path) is None)
    assert running(tmp_path) is None
    start(SMALL_WORLD, tmp_path)
    stop(tmp_path)


def test_a_bad_world_and_a_damaged_state_are_reported(tmp_path: Path, not_forked: None) -> None:
    (tmp_path / "bad.yaml").write_text("vcenter: {host: x}\n")
    with pytest.raises(SandboxError, match=r"bad.yaml:1:1: users: missing"):
        start(tmp_path / "bad.yaml", tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/state.json").write_text(json.dumps({"format_version": 99}))
    with pytest.raises(SandboxError, match="reset the sandbox"):
        start(SMALL_WORLD, tmp_path / "b")


def test_calls_are_counted_and_faults_strike(small: Running) -> None:
    rest = Rest(small)
    control(small, "DELETE", "/tally")
    assert (
        control(
            small,
            "POST",
            "/faults",
            [{"api": "rest", "method": "GET /api/vcenter/host", "nth": 1, "do": {"status": 503}}],
        ).status
        == 204
    )
    assert rest.call("GET", "/api/vcenter/host").status == 503
    assert rest.call("GET", "/api/vcenter/host").status == 200
    assert rest.call("POST", CLASSES, NEW).status == 204
    tally = control(small, "GET", "/tally").data
    assert (tally["total"], tally["written"], tally["writes"]) == (3, 1, {"rest": {f"POST {CLASSES}": 1}})
    assert control(small, "GET", "/faults").data[0]["done"] == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("POST", "/faults", {"do": "nonsense"}, {}, 400),
        ("POST", "/pace", {"pace": -1}, {}, 400),
        ("POST", "/change", {"address": "x"}, {}, 400),
        ("GET", "/cellar", None, {}, 404),
        ("POST", "/reset", None, {"Origin": "https://evil.test"}, 403),
    ],
)
def test_the_control_api_refuses(
    method: str, path: str, body: object, headers: dict[str, str], status: int, small: Running
) -> None:
    assert control(small, method, path, body, headers).status == status


def test_somebody_else_changes_the_world(small: Running) -> None:
    answer = control(
        small,
        "POST",
        "/change",
        {"address": "vc.small.test:443", "method": "POST", "path": CLASSES, "body": NEW},
    )
    assert answer.data == {"status": 204, "body": ""}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "kube-system"}}
    path = "/api/v1/namespaces/kube-system/configmaps"
    made = control(
        small, "POST", "/change", {"address": "10.1.0.1:6443", "method": "POST", "path": path, "body": body}
    )
    assert made.data["status"] == 201
    assert Rest(small).get(f"{CLASSES}/mine")["id"] == "mine"


CLIENT = """
import http.client, json, os, ssl, socket, sys
sys.path.insert(0, {tests!r})
from asking import Rest
from bfinfra.sandbox import running
from pathlib import Path
rest = Rest(running(Path({state!r})))
print("ready", flush=True)
sys.stdin.readline()
rest.call("POST", {path!r}, {new!r})
print("answered", flush=True)
"""


@pytest.mark.parametrize(("when", "done"), [("before", False), ("after", True)])
def test_a_kill_rule_ends_the_caller_exactly_before_or_after_its_write(
    when: str, done: bool, small: Running
) -> None:
    code = CLIENT.format(tests=str(Path(__file__).parent), state=str(small.state), path=CLASSES, new=NEW)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout and client.stdin and client.stdout.readline() == "ready\n"
        control(
            small,
            "POST",
            "/faults",
            {"api": "rest", "method": f"POST {CLASSES}", "nth": 1, "do": {"kill": client.pid, "when": when}},
        )
        client.stdin.write("go\n")
        client.stdin.flush()
        assert client.stdout.read() == ""
        assert client.wait(60) == -signal.SIGKILL
    assert (Rest(small).call("GET", f"{CLASSES}/mine").status == 200) is done
