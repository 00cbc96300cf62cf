"""gpu_operator on a real kube-apiserver: its nodes are cordoned, emptied by real evictions, labelled and
uncordoned. kwok runs the pods; what NVIDIA's operator and its MIG manager would write is written by the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from peers.found import Peers
from peers.gpu_nodes import Nvidia, gpu_node
from peers.site_files import SiteFile, all_are, endings

ONCE = "definitions"
KEY, LAYOUT, STATE = "gpu_operator/gpus", "nvidia.com/mig.config", "nvidia.com/mig.config.state"
GPU, PART = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"


class Operator(Nvidia):
    """The operator and the MIG manager."""

    def __init__(self, peers: Peers, node: str) -> None:
        super().__init__(peers)
        self._node = node

    def look(self) -> None:
        if "cluster-policy" in self.ask("get", "clusterpolicies", "-o", "name"):
            self.patch(
                "clusterpolicy", "cluster-policy", {"status": {"state": "ready"}}, "--subresource=status"
            )
        labels = node(self._peers, self._node)["metadata"]["labels"]
        if LAYOUT in labels and STATE not in labels:
            offer(self._peers, self._node, PART, "7")
            self.patch("node", self._node, {"metadata": {"labels": {STATE: "success"}}})

    def patch(self, kind: str, name: str, body: Any, *more: str) -> None:
        self.ask("patch", kind, name, "--type=merge", "-p", json.dumps(body), *more)

    def ask(self, *words: str) -> str:
        """What kubectl prints; "" where the type is not served yet, or the object is gone."""
        try:
            return self._peers.kubectl(*words)
        except AssertionError:
            return ""


def node(peers: Peers, name: str) -> Any:
    return json.loads(peers.kubectl("get", "node", name, "-o", "json"))


def offer(peers: Peers, name: str, resource: str, count: str) -> None:
    other = GPU if resource == PART else PART
    values = {resource: count, other: None}
    body = json.dumps({"status": dict.fromkeys(("capacity", "allocatable"), values)})
    peers.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", body)


@pytest.fixture
def site(alone: None, peers: Peers, tmp_path: Path) -> Iterator[SiteFile]:
    """With a namespace and a node of the test's own, whose GPU two pods of a Deployment could share."""
    with gpu_node(peers, tmp_path, "gpu-operator", "gpus") as found:
        own = found.given["site"]
        offer(peers, own, GPU, "2")
        with Operator(peers, own).beside(found):
            yield found


def trains(peers: Peers, site: SiteFile, *more: Any) -> None:
    """A Deployment with a pod that uses the node's GPU, and runs."""
    own = site.given["site"]
    container = {"name": "c", "image": "train:1", "resources": {"limits": {GPU: "1"}}}
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": own},
        "tolerations": [{"key": own, "operator": "Exists"}],
        "containers": [container],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train", "namespace": own},
        "spec": {
            "selector": {"matchLabels": {"app": "train"}},
            "template": {"metadata": {"labels": {"app": "train"}}, "spec": pod},
        },
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": [deployment, *more]}
    peers.kubectl("apply", "-f", "-", given=json.dumps(listed))
    peers.kubectl("rollout", "status", "deployment/train", "-n", own, "--timeout=60s")


def divided(site: SiteFile) -> None:
    layout = {"layout": "all-1g.5gb", "nodes": [site.given["site"]]}
    site.given["gpu_operator"]["gpus"] |= {"mig_layouts": [layout], "drain": "if_needed"}


def test_a_node_is_emptied_divided_and_uncordoned(site: SiteFile, peers: Peers) -> None:
    own = site.given["site"]
    all_are(site.apply(deadline=60), "done", "kept")
    trains(peers, site)
    divided(site)
    all_are(site.apply(deadline=60), "done", "kept")
    found = node(peers, own)
    assert found["metadata"]["labels"][LAYOUT] == "all-1g.5gb"
    assert "unschedulable" not in found["spec"]
    assert "bfinfra.io/mig" not in found["metadata"].get("annotations", {})
    pods = json.loads(peers.kubectl("get", "pods", "-n", own, "-l", "app=train", "-o", "json"))["items"]
    assert {pod["status"]["phase"] for pod in pods} == {"Pending"}, "a new one waits for a GPU"
    assert site.apply().writes == 0


def test_a_disruption_budget_keeps_a_pod(site: SiteFile, peers: Peers) -> None:
    own = site.given["site"]
    all_are(site.apply(deadline=60), "done", "kept")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "train", "namespace": own},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "train"}}},
    }
    trains(peers, site, budget)
    divided(site)
    ended = endings(site.apply(deadline=30))[KEY]
    assert f"can't be evicted from {own}" in ended
    assert "Cannot evict pod as it would violate the pod's disruption budget." in ended
    assert node(peers, own)["spec"]["unschedulable"] is True
    peers.kubectl("delete", "pdb", "train", "-n", own)
    all_are(site.apply(deadline=60), "done", "kept")
    assert "unschedulable" not in node(peers, own)["spec"]
