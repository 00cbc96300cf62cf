"""vks_cluster on real Cluster API: its webhooks, its topology and machine controllers, and machines in memory.
The kind is wired by hand, as no peer has supervisor namespaces.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from peers.found import Peers
from peers.site_files import SPECS, all_are, endings
from peers.spaces import Engine
from peers.vks_class import CLUSTER_API, FIRST, NEXT, known, rewriting, service

from bfinfra.backends.kubernetes import Clusters
from bfinfra.backends.transport import Middleware
from bfinfra.kinds.supervisor.vks_cluster.kind import VksCluster
from bfinfra.model.refs import Key
from bfinfra.sandbox.kubernetes.vks.offered import PUBLIC

HERE = Path(__file__).parent
ADDRESS = "vks_cluster/ml-01"
CLUSTER = ("cluster", "ml-01")
LONG = 180  # seconds that a cluster of machines in memory may take on a busy machine


@pytest.fixture(scope="module")
def cluster_api(peers: Peers) -> Iterator[Peers]:
    with running(peers) as made:
        yield made


@contextlib.contextmanager
def running(peers: Peers) -> Iterator[Peers]:
    """Cluster API on an API server of its own, with the classes; one at a time on a machine."""
    environment = {**os.environ, "KUBE_BIN": str(peers.bin)}
    script = str(HERE / "capi.sh")
    with Path("/tmp/bfinfra-cluster-api.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        output = subprocess.run([script, "up"], env=environment, check=True, capture_output=True, text=True)
        kubeconfig = Path(output.stdout.strip().rpartition("=")[2])
        made = Peers(peers.bin, kubeconfig, "", "")
        try:
            put(made, known())
            for each in known():
                made.established(each["metadata"]["name"])
            put(made, service())
            made.kubectl(
                "wait", "clusterclass", "--all", "-A", "--for=condition=VariablesReady", "--timeout=60s"
            )
            rewritten(made)
            yield made
        finally:
            subprocess.run([script, "down"], env=environment, check=True)


def put(peers: Peers, objects: list[Any]) -> None:
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    peers.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=given)


def rewritten(peers: Peers, to: str = FIRST) -> None:
    """Let admission rewrite versions, and the class to this one; returns once it does."""
    put(peers, rewriting(to))
    end = time.monotonic() + 30
    while True:
        asked = ("create", "--dry-run=server", "-o", "json", "-f", "-")
        try:
            made = json.loads(peers.kubectl(*asked, given=json.dumps(probe())))["spec"]["topology"]
            if (made["classRef"]["name"], made["version"]) == (to, "v1.33.3+vmware.1"):
                return
        except AssertionError as error:
            assert "valid semantic version" in str(error), error
        assert time.monotonic() < end, "admission rewrites nothing"
        time.sleep(0.2)


def probe(**more: Any) -> dict[str, Any]:
    """A Cluster without workers, in the namespace default."""
    values = {"vmClass": "a", "storageClass": "a", **more}
    topology = {
        "classRef": {"name": FIRST, "namespace": PUBLIC},
        "version": "v1.33",
        "controlPlane": {"replicas": 1},
        "variables": [{"name": name, "value": value} for name, value in values.items()],
    }
    return {
        "apiVersion": CLUSTER_API,
        "kind": "Cluster",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {"topology": topology},
    }


class Site(Engine):
    """The site file, in the namespace of this ending."""

    name = "vks_cluster"

    def __init__(self, folder: Path, peers: Peers, own: str, *middleware: Middleware) -> None:
        super().__init__(SPECS / "peers/vks.yaml", folder, peers, own, *middleware)
        self.peers = peers

    def made(self, clusters: Clusters) -> VksCluster:
        return VksCluster(clusters)

    def applied(self, **how: Any) -> None:
        all_are(self.run(deadline=LONG, **how), "done", "kept")

    def live(self, *what: str) -> Any:
        return json.loads(self.peers.kubectl("get", *(what or CLUSTER), "-n", self.space, "-o", "json"))

    def nodes(self) -> dict[str, str]:
        """Of the cluster in memory, by its own administrator's kubeconfig: node → version."""
        secret = self.live("secret", "ml-01-kubeconfig")["data"]["value"]
        path = self.folder / "guest.kubeconfig"
        path.write_bytes(base64.b64decode(secret))
        listed = json.loads(self.peers.kubectl("get", "nodes", "-o", "json", kubeconfig=path))["items"]
        return {
            each["metadata"]["name"]: each["status"].get("nodeInfo", {}).get("kubeletVersion", "")
            for each in listed
        }

    def ready(self) -> bool:
        conditions = self.live()["status"]["conditions"]
        status = {each["type"]: each["status"] for each in conditions}
        return (
            status["TopologyReconciled"] == status["Available"] == "True" and status["RollingOut"] == "False"
        )

    def waited(self, what: Callable[[], bool]) -> None:
        end = time.monotonic() + LONG
        while not what():
            assert time.monotonic() < end, "it does not come"
            time.sleep(0.5)

    def writer(self, field: str) -> str:
        """Who else wrote a field of the cluster last."""
        key, world = Key("vks_cluster", "ml-01"), self.look()[2]
        found = self.kinds["vks_cluster"].audit({"ml-01": (world.states[key], (field,))})
        return found["ml-01"][field].by

    def patch(self, kind: str, name: str, body: Any) -> None:
        self.peers.kubectl(
            "patch", kind, name, "-n", self.space, "--type=merge", "--field-manager=kubectl-edit",
            "-p", json.dumps(body),
        )  # fmt: skip


@pytest.fixture
def site(cluster_api: Peers, tmp_path: Path) -> Iterator[Site]:
    with placed(cluster_api, tmp_path) as site:
        yield site


@contextlib.contextmanager
def placed(peers: Peers, folder: Path) -> Iterator[Site]:
    """The site in a namespace of its own, which ends with its clusters."""
    site = Site(folder, peers, uuid.uuid4().hex[:8])
    peers.kubectl("create", "namespace", site.space)
    small = {
        "apiVersion": "vmoperator.vmware.com/v1alpha1",
        "kind": "VirtualMachineClass",
        "metadata": {"name": "best-effort-small", "namespace": site.space},
    }
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "storage", "namespace": site.space},
        "spec": {"hard": {"gold.storageclass.storage.k8s.io/requests.storage": "1Ti"}},
    }
    put(peers, [small, quota])
    try:
        yield site
    finally:
        site.close()
        peers.kubectl("delete", "cluster", "--all", "-n", site.space, f"--timeout={LONG}s")
        peers.kubectl("delete", "namespace", site.space, "--wait=false")


@pytest.mark.thorough
def test_a_cluster_lives_on_cluster_api(site: Site) -> None:
    """Made, agreed, scaled, scaled by others, upgraded, drifted, mended, deleted: one life, as each of its
    clusters takes long.
    """
    site.applied()
    topology = site.live()["spec"]["topology"]
    assert topology["version"] == "v1.33.3+vmware.1", "the beginning of a version was resolved"
    values = {each["name"]: each["value"] for each in topology["variables"]}
    assert values["kubernetes"]["kubeletConfiguration"] == {"maxPods": 200}
    assert values["kubernetes"]["certificateRotation"] == {"enabled": True, "renewalDaysBeforeExpiry": 90}
    assert len(site.nodes()) == 2
    writes = site.transport.tally.writes
    all_are(site.run(), "kept")
    assert (site.transport.tally.writes, site.changes()) == (writes, {})

    site.cluster["workers"]["cpu"]["count"] = "2"
    assert site.changes() == {ADDRESS: {"workers.cpu.count"}}
    site.applied()
    assert len(site.nodes()) == 3
    assert site.live()["spec"]["topology"]["version"] == "v1.33.3+vmware.1"

    pool = site.live("machinedeployment", "-l", "topology.cluster.x-k8s.io/deployment-name=gpu")["items"][0]
    site.patch("machinedeployment", pool["metadata"]["name"], {"spec": {"replicas": 1}})
    site.waited(lambda: len(site.nodes()) == 4)
    assert site.changes() == {}, "the autoscaler's hand is nobody's drift"
    site.cluster["workers"]["cpu"]["count"] = "1"
    site.applied()
    assert len(site.nodes()) == 3, "and an apply leaves it"

    rewritten(site.peers, NEXT)
    site.patch("cluster", "ml-01", {"metadata": {"annotations": {"team": "a"}}})
    site.waited(lambda: site.live()["spec"]["topology"]["classRef"]["name"] == NEXT)
    assert site.changes() == {}, "a newer class in place of the written one is no drift"
    site.waited(site.ready)

    pools = site.live()["spec"]["topology"]["workers"]["machineDeployments"]
    pools[0]["replicas"] = 3
    site.patch("cluster", "ml-01", {"spec": {"topology": {"workers": {"machineDeployments": pools}}}})
    assert site.changes() == {ADDRESS: {"workers.cpu.count"}}
    assert site.writer("workers.cpu.count") == "kubectl-edit"
    site.applied()
    assert site.changes() == {}

    site.cluster["version"] = "v1.35"
    site.applied()
    assert site.live()["spec"]["topology"]["version"] == "v1.35.0+vmware.1"
    assert set(site.nodes().values()) == {"v1.35.0+vmware.1"}, "over v1.34, each node through before the next"
    assert site.changes() == {}

    site.applied(destroy=True)
    assert site.peers.kubectl("get", "cluster,machine,devmachine", "-n", site.space, "-o", "name") == ""


def test_what_the_plan_refuses_cluster_api_refuses(site: Site) -> None:
    """A variable outside of the schema, sent all the same: the plan's refusal is the server's."""
    site.cluster["variables"] = {"kubernetes": {"kubeletConfiguration": {"maxPods": "10"}}}
    (problem,) = site.plan().problems
    assert "maxPods is less than 20" in str(problem)
    body = probe(kubernetes={"kubeletConfiguration": {"maxPods": 10}})
    with pytest.raises(AssertionError, match="should be greater than or equal to 20"):
        site.peers.kubectl("create", "-f", "-", given=json.dumps(body))


def test_a_cluster_that_is_not_through_says_what_is_missing(site: Site) -> None:
    found = endings(site.run(deadline=0.5))[ADDRESS]
    assert found.startswith("still-waiting")
    assert "TopologyReconciled" in found or "accepted" in found or "nodes" in found
