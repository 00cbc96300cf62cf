"""What `bfinfra schedule` prints, read by systemd's own tools, run by a shell, and carried out by
kube-apiserver and its controllers.
"""

from __future__ import annotations

import itertools
import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from peers.found import Peers, run

from bfinfra.cli.main import main
from bfinfra.model.schedule import STEPS, Schedule


@pytest.fixture
def folder(peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "one.kubeconfig").write_text(peers.kubeconfig.read_text())
    (tmp_path / "site.yaml").write_text(
        "site: poc\nkubernetes_cluster:\n  one: {kubeconfig: {file: one.kubeconfig}}\nnamespace:\n  "
        "never-made: {cluster: one}\n"
    )
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def space(peers: Peers) -> Iterator[str]:
    name = f"schedule-{secrets.token_hex(3)}"
    peers.kubectl("create", "namespace", name)
    peers.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield name
    peers.kubectl("delete", "namespace", name, "--wait=false")
    peers.kubectl("delete", "clusterrole,clusterrolebinding", "bfinfra-drift-poc", "--ignore-not-found")


def test_systemd_takes_the_units_and_finds_little_to_expose(folder: Path) -> None:
    assert main(["schedule", "systemd", "site.yaml", "--user", "daemon", "--out", "."]) == 0
    units = [str(folder / f"bfinfra-drift-poc.{each}") for each in ("service", "timer")]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "bfinfra-drift" in line]) == (
        0,
        [],
    )
    exposed = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=30", units[0]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert exposed.returncode == 0, exposed.stdout[-600:]


def test_systemd_takes_the_unit_of_a_watch_too(folder: Path) -> None:
    assert main(["schedule", "systemd", "site.yaml", "--watch", "--user", "daemon", "--out", "."]) == 0
    unit = str(folder / "bfinfra-watch-poc.service")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    messages = [line for line in done.stderr.splitlines() if "bfinfra-watch" in line]
    assert (done.returncode, messages) == (0, [])
    judge = ["systemd-analyze", "security", "--offline=yes", "--threshold=30", unit]
    exposed = subprocess.run(judge, capture_output=True, text=True, check=False)
    assert exposed.returncode == 0, exposed.stdout[-600:]


@pytest.mark.parametrize("every", STEPS)
def test_systemd_starts_it_as_often_as_configured(every: str) -> None:
    found = Schedule.every(every, "poc")
    output = run(["systemd-analyze", "calendar", "--iterations=3", found.calendar], {"TZ": "UTC"})
    starts = [
        line.split(": ", 1)[1] for line in output.splitlines() if "Next elapse" in line or "Iter. #" in line
    ]
    seconds = [int(run(["date", "-u", "-d", each, "+%s"], {})) for each in starts]
    assert len(seconds) == 3
    assert {b - a for a, b in itertools.pairwise(seconds)} == {found.seconds}


def test_a_shell_runs_the_line_of_the_crontab(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "cron", "site.yaml"]) == 0
    command = capsys.readouterr().out.split(None, 5)[5].replace(r"\%", "%")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "BFINFRA_STATE_HOME": str(folder / "state")}
    first, second = (
        subprocess.run(["/bin/sh", "-c", command], env=env, capture_output=True, text=True, check=False)
        for _ in range(2)
    )
    assert (first.returncode, second.returncode) == (2, 2), first.stderr + second.stderr
    assert "namespace/never-made does not exist" in first.stdout
    assert second.stdout == ""  # what lasts is no mail


@pytest.mark.thorough
def test_a_cluster_carries_the_check_out_every_time_it_is_due(
    folder: Path, peers: Peers, space: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "schedule",
                "kubernetes",
                "site.yaml",
                "--image",
                "registry.test/bfinfra:1",
                "--namespace",
                space,
                "--in-cluster",
                "kubernetes_cluster/one",
            ]
        )
        == 0
    )
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    peers.kubectl(
        "create",
        "secret",
        "generic",
        "bfinfra-drift-poc",
        "-n",
        space,
        f"--from-file=secret-0={folder}/one.kubeconfig",
    )
    peers.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(found))
    peers.kubectl(
        "patch",
        "cronjob",
        "bfinfra-drift-poc",
        "-n",
        space,
        "--type=merge",
        "-p",
        '{"spec": {"schedule": "* * * * *"}}',
    )
    account = f"system:serviceaccount:{space}:bfinfra-drift-poc"
    assert peers.kubectl("auth", "can-i", "list", "namespaces", "--as", account).strip() == "yes"
    refused = subprocess.run(
        [
            peers.bin / "kubectl",
            "--kubeconfig",
            peers.kubeconfig,
            "auth",
            "can-i",
            "create",
            "namespaces",
            "--as",
            account,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.stdout.strip() == "no"
    until = time.monotonic() + 150
    while True:  # the next full minute, and what its pod takes
        jobs = json.loads(peers.kubectl("get", "jobs", "-n", space, "-o", "json"))["items"]
        if any(job["status"].get("succeeded") for job in jobs):
            break
        assert time.monotonic() < until, (jobs, peers.kubectl("get", "events", "-n", space))
        time.sleep(1)
    assert jobs[0]["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    (pod, *_) = json.loads(peers.kubectl("get", "pods", "-n", space, "-o", "json"))["items"]
    assert pod["spec"]["containers"][0]["args"] == ["drift", "--forget", "/site/site.yaml"]
