"""An MPI operator and its job on a real kube-apiserver: definition, roles, Deployment, MPIJob; kubectl looks
on, meddles, and plays the operator.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from peers.found import Peers
from peers.site_files import SPECS, SiteFile, all_are, endings

ONCE = "mpijobs"
JOB = "tensorflow-benchmarks"


class Operated(SiteFile):
    """The site with a namespace of its own, and what kubectl shows of its job."""

    def __init__(self, folder: Path, peers: Peers, api: str) -> None:
        super().__init__(SPECS / "peers/mpi.yaml", folder)
        self.peers, self.api, self.space = peers, api, f"peers-mpi-{uuid.uuid4().hex[:8]}"
        self.given["site"] = self.space
        self.given["namespace"]["mpi-operator"]["namespace"] = self.space
        self.given["mpi_operator"]["mpi"]["api"] = api
        self.put("admin.kubeconfig", peers.kubeconfig.read_text())

    def kubectl(self, verb: str, *words: str) -> str:
        """On the job, by a kubectl that remembers nothing of the definition of the test before."""
        return self.peers.kubectl(
            f"--cache-dir={self.folder}/{uuid.uuid4().hex}",
            verb,
            f"mpijobs.{self.api}.kubeflow.org",
            JOB,
            "-n",
            self.space,
            *words,
        )

    def job(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", "-o", "json"))
        return found

    def say(self, *kinds: str) -> None:
        """The operator's status: these conditions are true."""
        body = {
            "status": {
                "conditions": [
                    {"type": each, "status": "True", "message": f"it is {each.lower()}"} for each in kinds
                ]
            }
        }
        self.kubectl("patch", "--type=merge", "--subresource=status", "-p", json.dumps(body))

    def runs_once_made(self, *kinds: str) -> threading.Thread:
        """Plays the operator as soon as the job is there."""

        def wait() -> None:
            end = time.monotonic() + 30
            while time.monotonic() < end:
                with contextlib.suppress(AssertionError):  # it isn't there yet
                    self.say(*kinds)
                    return
                time.sleep(0.1)

        thread = threading.Thread(target=wait)
        thread.start()
        return thread


@pytest.fixture(params=["v2beta1", "v1alpha2"])
def site(peers: Peers, alone: None, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Operated]:
    found = Operated(tmp_path, peers, request.param)
    yield found
    peers.kubectl("delete", "crd", "mpijobs.kubeflow.org", "--ignore-not-found")
    peers.kubectl(
        "delete", "clusterrole/mpi-operator", "clusterrolebinding/mpi-operator", "--ignore-not-found"
    )
    peers.kubectl("delete", "namespace", found.space, "--ignore-not-found", "--wait=false")


@pytest.mark.thorough("v2beta1")
def test_the_life_of_an_mpi_job(site: Operated, peers: Peers) -> None:
    operator = site.runs_once_made("Created", "Succeeded")
    all_are(site.apply(), "done", "kept")
    operator.join()
    worker = site.job()["spec"]["mpiReplicaSpecs"]["Worker"]
    assert (worker["replicas"], worker["template"]["spec"]["containers"][0]["resources"]) == (
        4,
        {"limits": {"nvidia.com/gpu": 1}},
    )
    again = site.apply()
    all_are(again, "kept")
    assert again.writes == 0

    site.kubectl("patch", "--type=merge", "-p", '{"spec": {"slotsPerWorker": 2}}')
    assert site.changes() == {f"mpi_job/{JOB}": {"slots"}}
    peers.kubectl(
        "patch", "clusterrole", "mpi-operator", "--type=json", "-p", '[{"op": "remove", "path": "/rules/0"}]'
    )
    assert "mpi_operator/mpi" in site.changes()
    ended = endings(site.apply(deadline=2))  # nobody plays the operator now: the new job waits
    assert (ended["mpi_operator/mpi"], ended[f"mpi_job/{JOB}"].partition(":")[0]) == (
        "done",
        "still-waiting",
    ), ended
    site.say("Succeeded")
    all_are(site.apply(), "done", "kept")
    assert site.changes() == {}

    all_are(site.apply(destroy=True), "done", "kept")
    assert "mpi" not in peers.kubectl("get", "crd,clusterroles,clusterrolebindings", "-o", "name")


def test_a_job_that_fails_says_why(site: Operated) -> None:
    site.runs_once_made("Created", "Failed")
    ended = endings(site.apply())[f"mpi_job/{JOB}"]
    assert ended.startswith("failed"), ended
    assert "it is failed" in ended


def test_what_the_definition_does_not_allow_is_refused(site: Operated) -> None:
    site.given["mpi_job"][JOB] |= {"retries": "99999999999"}
    ended = endings(site.apply())[f"mpi_job/{JOB}"]
    assert ended.startswith("failed"), ended
    assert "backoffLimit" in ended
