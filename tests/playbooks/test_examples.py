"""The example playbooks, run by ansible-runner on the sandbox as a user would: look, apply, again, drift that
somebody makes, destroy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ansible_runner
import pytest
from kinds.lifecycle import world
from rights.given import administrator

from bfinfra import sandbox as sandboxes
from bfinfra import worlds
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "playbooks/examples"
CHEAP = "bitfusion-on-kubernetes"


def relabel(sandbox: Running) -> None:
    """Somebody changes a label of a namespace."""
    address = next(each for each in sandbox.addresses if each.endswith(":6443"))
    sandbox.change(
        {
            "address": address,
            "method": "PATCH",
            "path": "/api/v1/namespaces/bwki",
            "content_type": "application/merge-patch+json",
            "body": {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
        }
    )


def limit(vcenter: str, namespace: str, **body: object) -> Callable[[Running], None]:
    """Somebody takes something from a supervisor namespace."""
    path = f"/api/vcenter/namespaces/instances/{namespace}"
    return lambda sandbox: sandbox.change(
        {"address": f"{vcenter}:443", "method": "PATCH", "path": path, "body": body}
    )


def close_the_firewall(sandbox: Running) -> None:
    """Somebody closes a host's firewall."""
    with administrator(sandbox) as si:
        si.content.searchIndex.FindByInventoryPath(
            "/lab/host/workload/sc2esx25"
        ).configManager.firewallSystem.DisableRuleset("pvrdma")


def edit_a_file(sandbox: Running) -> None:
    """Somebody leads a machine to another GPU server."""
    path = "/etc/bitfusionio/K80_servers.conf"
    sandbox.change(
        {
            "machine": "node-2",
            "path": path,
            "text": sandbox.world()["linux"]["node-2"]["files"][path].replace("44", "45"),
        }
    )


@dataclass(frozen=True)
class Example:
    """`moves`: what somebody else does to the world; `drifts`: what the check then names."""

    moves: Callable[[Running], None]
    drifts: str


SITES = {
    CHEAP: Example(relabel, "namespace/bwki"),
    "singapore-poc": Example(
        limit("vcsa.aiml.local", "cnasg", resource_spec={"memory_limit": 4096}), "supervisor_namespace/cnasg"
    ),
    "consolidated-gpu-cluster": Example(
        limit("vcsa.hpc.local", "hpc2", vm_service_spec={"vm_classes": ["best-effort-small"]}),
        "supervisor_namespace/hpc2",
    ),
    "pvrdma-rdg": Example(close_the_firewall, "host_firewall_rule/pvrdma"),
    "dlvm": Example(
        limit("vc.example.com", "ml", vm_service_spec={"vm_classes": []}), "supervisor_namespace/ml"
    ),
    "flexdirect": Example(edit_a_file, "flexdirect_pool/K80"),
}


class Desk:
    """Runs a playbook; the output of its tasks, by their names."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.runs = name, folder, 0

    def play(self, *tags: str) -> dict[str, dict[str, Any]]:
        self.runs += 1
        place = self.folder / f"run-{self.runs}"
        place.mkdir()
        heard: dict[str, dict[str, Any]] = {}

        def take(event: dict[str, Any]) -> bool:
            if event["event"] in ("runner_on_ok", "runner_on_failed"):
                heard[event["event_data"]["task"]] = {
                    "failed": event["event"] == "runner_on_failed",
                    **event["event_data"]["res"],
                }
            return False

        done = ansible_runner.run(
            private_data_dir=str(place),
            playbook=str(EXAMPLES / f"{self.name}.yaml"),
            tags=",".join(tags),
            quiet=True,
            event_handler=take,
            envvars={
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks"),
                "ANSIBLE_LOCALHOST_WARNING": "False",
                "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            },
        )
        assert heard, done.stdout.read()
        return heard


@contextmanager
def at(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Desk, Running]]:
    """The site's world without waiting times, where `sandbox: true` finds it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "xdg"))
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(folder / "state"))
    file = ROOT / f"specs/worlds/{name}.yaml"
    running = sandboxes.start(file, worlds.state(file), pace=0)
    try:
        yield Desk(name, folder), running
    finally:
        sandboxes.stop(worlds.state(file))


def test_a_look_at_the_cheapest_example_shows_what_would_be_done_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with at(CHEAP, tmp_path, monkeypatch) as (desk, sandbox):
        looked = desk.play("look")["What would be done"]
        assert (looked["failed"], looked["changed"], sandbox.tally()["written"]) == (False, True, 0), (
            looked.get("msg")
        )
        assert sandbox.tally()["total"] > 0
        assert "labels.team: benchmarks" in "".join(each["after"] for each in looked["diff"])


@pytest.mark.peers  # half a minute of Ansible's own start each
@pytest.mark.parametrize("name", SITES)
def test_an_example_lives(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with at(name, tmp_path, monkeypatch) as (desk, sandbox):
        before = world(sandbox)
        results = desk.play("look", "apply", "drift")
        assert not any(each["failed"] for each in results.values()), {
            task: each.get("msg") for task, each in results.items() if each["failed"]
        }
        looked, made, again = (
            results["What would be done"],
            results["Do it"],
            results["Nothing is left to do"],
        )
        assert (looked["changed"], made["changed"], again["changed"]) == (True, True, False)
        assert looked["diff"] == made["diff"] != []
        assert not results["Nobody changed it since"]["drifted"]
        SITES[name].moves(sandbox)
        moved = desk.play("drift")["Nobody changed it since"]
        assert (moved["failed"], moved["alarming"]) == (True, [SITES[name].drifts])
        gone = desk.play("destroy")["Delete what the site made"]
        assert (gone["failed"], gone["changed"]) == (False, True), gone.get("msg")
        assert world(sandbox) == before


def test_each_site_has_its_example() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(SITES)
