"""The site of the FlexDirect guide on the sandbox, whole: from empty, again, one thing moved, health, gone.
By Ansible, so with --peers; what is decided is tried always.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EVERYTHING, QUICK, apply, endings, made, plan, world
from rights.given import other

import bfinfra
import bfinfra.sandbox
from bfinfra.app import health
from bfinfra.engine.apply import Options
from bfinfra.render import health as render
from bfinfra.sandbox import Running

SPECS = Path(__file__).parents[1] / "specs"
SITE = SPECS / "flexdirect.yaml"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    yield bfinfra.sandbox.start(SPECS / "worlds/flexdirect.yaml", tmp_path / "sandbox", pace=0)
    bfinfra.sandbox.stop(tmp_path / "sandbox")


def test_its_plan_sets_every_machine_up_before_it_is_listed_and_health_says_what_is_not_there(
    sandbox: Running,
) -> None:
    found = plan(SITE, sandbox)
    assert not found.problems and not found.unreadable
    waits = {str(item.key): {str(key) for key in item.waits_for} for item in found.items}
    assert waits["flexdirect_pool/v100"] >= {"flexdirect_host/v100", "linux_host/node-1"}
    examined = health.health(bfinfra.load(SITE, sandbox=sandbox), context=bfinfra.RunContext(sandbox=sandbox))
    assert {each.machine: each.good for each in examined} == dict.fromkeys(
        ("v100-1", "v100-2", "k80-1", "node-1", "node-2"), False
    )
    assert "0 of 5 machines are healthy enough" in render.text(examined)
    assert sandbox.tally()["written"] == 0


def jobs_alone(tmp_path: Path) -> Path:
    """The site without all that makes FlexDirect stand: its jobs, started too early."""
    (tmp_path / "site.yaml").write_text(
        re.sub(
            r"^linux_host:.*?(?=^kubernetes_cluster:)", "", SITE.read_text(), flags=re.DOTALL | re.MULTILINE
        )
    )
    (tmp_path / "manifests").symlink_to(SPECS / "manifests")
    return tmp_path / "site.yaml"


def test_jobs_that_start_before_flexdirect_exists_fail(sandbox: Running, tmp_path: Path) -> None:
    found = bfinfra.apply(
        bfinfra.load(jobs_alone(tmp_path), sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=Options(retry=QUICK, deadline=1),
        context=bfinfra.RunContext(sandbox=sandbox),
    )
    assert {
        each: text.partition(":")[0] for each, text in endings(found).items() if each.startswith("workload")
    } == dict.fromkeys(("workload/health", "workload/tf-cnn"), "still-waiting")
    messages = [each["message"] for each in events(sandbox)]
    assert any(
        (
            'MountVolume.SetUp failed for volume "bitfusionio" : hostPath type check failed: '
            "/etc/bitfusionio is not a directory"
        )
        in each
        for each in messages
    ), messages


def test_a_job_whose_servers_do_not_listen_yet_fails_and_says_so(sandbox: Running, tmp_path: Path) -> None:
    for node in ("node-1", "node-2"):
        for path, text in (
            ("/usr/bin/flexdirect", "x"),
            ("/etc/bitfusionio/lic/host_id", "one\n"),
            ("/etc/bitfusionio/servers.conf", "10.174.21.8\n"),
        ):
            sandbox.change({"machine": node, "path": path, "text": text})
    found = endings(apply(jobs_alone(tmp_path), sandbox))
    assert found["workload/health"] == "done"
    assert "none of the servers responded" in found["workload/tf-cnn"]


def events(sandbox: Running) -> list[Any]:
    found: list[Any] = other(sandbox, "k8s.kubeconfig").call("GET", "/api/v1/namespaces/training/events")[
        "items"
    ]
    return found


@pytest.mark.peers
@pytest.mark.thorough
def test_the_whole_site_lives(sandbox: Running) -> None:
    before = world(sandbox)
    first = apply(SITE, sandbox)
    assert made(first), endings(first)
    machines = sandbox.world()["linux"]
    for node in ("node-1", "node-2"):
        assert machines[node]["files"]["/etc/bitfusionio/servers.conf"].splitlines()[1:] == [
            "10.174.21.8",
            "10.174.21.9",
        ]
        assert machines[node]["files"]["/etc/bitfusionio/K80_servers.conf"].splitlines()[1:] == [
            "10.172.31.44:56002"
        ]
    written = sandbox.tally()["written"]
    assert set(endings(apply(SITE, sandbox)).values()) == {"kept"}
    assert sandbox.tally()["written"] == written
    examined = health.health(bfinfra.load(SITE, sandbox=sandbox), context=bfinfra.RunContext(sandbox=sandbox))
    assert all(each.good for each in examined), render.text(examined)
    assert json.dumps(render.data("flexdirect", examined))
    sandbox.change(
        {
            "machine": "node-2",
            "path": "/etc/bitfusionio/K80_servers.conf",
            "text": machines["node-2"]["files"]["/etc/bitfusionio/K80_servers.conf"].replace("44", "45"),
        }
    )
    (moved,) = plan(SITE, sandbox).pending
    assert [(change.field, change.now, change.wanted) for change in moved.changes] == [
        ("on.node-2.K80_servers.conf", ["10.172.31.45:56002"], ["10.172.31.44:56002"])
    ]
    assert made(apply(SITE, sandbox))
    gone = apply(SITE, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before
