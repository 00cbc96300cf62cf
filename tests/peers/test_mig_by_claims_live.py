"""gpu_operator with parts of GPUs (MIG) by resource claims on a real kube-apiserver, whose scheduler gives the
parts. kwok runs the pods; what NVIDIA's operator, its MIG manager and its DRA driver would write is written by
the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from peers.found import Peers
from peers.gpu_nodes import GPU, Nvidia, gpus_by_claims
from peers.site_files import SiteFile, all_are, endings
from waiting import until

from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.nvidia_dra import devices, resource_slice

ONCE = "definitions"
KEY, LAYOUT, STATE = "gpu_operator/gpus", "nvidia.com/mig.config", "nvidia.com/mig.config.state"
MIG = "mig.nvidia.com"
ONE, WHOLE = "all-1g.5gb", "all-disabled"
PARTS = {WHOLE: (), ONE: (("1g.5gb", 7),)}
LAYOUTS = {
    WHOLE: [{"devices": "all", "mig-enabled": False}],
    ONE: [{"devices": "all", "mig-enabled": True, "mig-devices": dict(PARTS[ONE])}],
}


class OnNode(Nvidia):
    """The operator, the MIG manager and the DRA driver of the node. A pod of the DRA driver publishes the GPU as it
    is when the pod starts.
    """

    def __init__(self, peers: Peers, own: str) -> None:
        super().__init__(peers)
        self._own, self._published = own, ""
        """The uid of the pod that published the slice."""

    def look(self) -> None:
        found = ask(self._peers, "node", self._own)
        labels = found["metadata"]["labels"]
        if LAYOUT in labels and STATE not in labels:
            self._patch("node", {"metadata": {"labels": {STATE: "success"}}})
        pods = ask(self._peers, "pods", "-n", self._own, "-l", "app=dra")["items"]
        for uid in (pod["metadata"]["uid"] for pod in pods if pod["status"].get("phase") == "Running"):
            if uid != self._published:
                self._publish(found, PARTS[labels.get(LAYOUT, WHOLE)])
                self._published = uid
        said = json.dumps({"status": {"state": "ready"}})
        where = ("patch", "clusterpolicy", "cluster-policy", "--subresource=status", "--type=merge", "-p")
        self._peers.kubectl(*where, said)

    def _publish(self, found: Any, profiles: tuple[tuple[str, int], ...]) -> None:
        gpus = Gpus(1, product="NVIDIA-A100-PCIE-40GB", driver="580.95.05", profiles=profiles)
        thing = resource_slice(GPU, found, devices(GPU, self._own, gpus))
        thing["metadata"] |= {"name": self._own}
        del thing["metadata"]["generateName"]
        if self._published:
            self._patch("resourceslice", {"spec": {"devices": thing["spec"]["devices"]}})
        else:
            self._peers.kubectl("create", "-f", "-", given=json.dumps(thing))

    def _patch(self, kind: str, body: Any) -> None:
        self._peers.kubectl("patch", kind, self._own, "--type=merge", "-p", json.dumps(body))


def ask(peers: Peers, *what: str) -> Any:
    return json.loads(peers.kubectl("get", *what, "-o", "json"))


def inside(own: str) -> Iterator[Any]:
    """The DRA driver, and the layouts of the MIG manager."""
    container = {"name": "gpus", "image": "dra:1", "command": ["bash", "-c", "gpu-kubelet-plugin -v 4"]}
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": own},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    yield {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "dra", "namespace": own},
        "spec": {
            "selector": {"matchLabels": {"app": "dra"}},
            "template": {"metadata": {"labels": {"app": "dra"}}, "spec": pod},
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "default-mig-parted-config", "namespace": own},
        "data": {"config.yaml": yaml.safe_dump({"version": "v1", "mig-configs": LAYOUTS})},
    }


@pytest.fixture
def site(alone: None, peers: Peers, tmp_path: Path) -> Iterator[SiteFile]:
    """See `gpus_by_claims`; applied, with NVIDIA's operator and DRA driver."""
    with gpus_by_claims(peers, tmp_path, "gpu-operator", "mig") as found:
        own = found.given["site"]
        with OnNode(peers, own).beside(found):
            assert f"{own} has no ResourceSlice yet" in endings(found.apply(deadline=8))[KEY]
            for each in inside(own):
                peers.kubectl("apply", "-f", "-", given=json.dumps(each))
            all_are(found.apply(deadline=60), "done", "kept")
            yield found


def divided(site: SiteFile, layout: str) -> None:
    site.given["gpu_operator"]["gpus"]["mig_layouts"] = [{"layout": layout, "nodes": [site.given["site"]]}]


def trains(peers: Peers, own: str) -> None:
    """A pod with a claim of a part of the GPU."""
    selector = {"cel": {"expression": f"device.attributes['{GPU}'].profile == '1g.5gb'"}}
    request = {"name": "part", "exactly": {"deviceClassName": MIG, "selectors": [selector]}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "train", "namespace": own},
        "spec": {"devices": {"requests": [request]}},
    }
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": own},
        "tolerations": [{"key": own, "operator": "Exists"}],
        "resourceClaims": [{"name": "part", "resourceClaimName": "train"}],
        "containers": [{"name": "c", "image": "train:1", "resources": {"claims": [{"name": "part"}]}}],
    }
    meta = {"name": "train", "namespace": own}
    for each in (claim, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod}):
        peers.kubectl("create", "-f", "-", given=json.dumps(each))


def published(peers: Peers, own: str) -> list[str]:
    return [each["name"] for each in ask(peers, "resourceslice", own)["spec"]["devices"]]


@pytest.mark.thorough
def test_parts_are_claimed_once_the_driver_is_restarted_and_who_holds_one_is_waited_for(
    site: SiteFile, peers: Peers
) -> None:
    own = site.given["site"]
    assert published(peers, own) == ["gpu-0"]
    divided(site, ONE)
    all_are(site.apply(deadline=60), "done", "kept")
    assert published(peers, own) == [f"gpu-0-mig-1g5gb-19-{start}" for start in range(7)]
    found = ask(peers, "node", own)
    assert "unschedulable" not in found["spec"]
    assert "bfinfra.io/mig" not in found["metadata"].get("annotations", {})
    assert (site.apply().writes, site.changes(), site.plan().warnings) == (0, {}, ())
    trains(peers, own)
    claim = until(
        lambda: (one := ask(peers, "resourceclaim", "train", "-n", own))["status"].get("allocation") and one
    )
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"]) == (GPU, own)
    assert result["device"] in published(peers, own)
    divided(site, WHOLE)
    late = endings(site.apply(deadline=8))[KEY]
    assert f"{own}/train (no controller) uses GPUs of {own}" in late
    assert ask(peers, "node", own)["spec"]["unschedulable"] is True
    peers.kubectl("delete", "pod", "train", "-n", own)
    all_are(site.apply(deadline=60), "done", "kept")
    assert (published(peers, own), site.apply().writes) == (["gpu-0"], 0)
    assert "unschedulable" not in ask(peers, "node", own)["spec"]


def test_parts_that_the_slice_lacks_are_drift(site: SiteFile, peers: Peers) -> None:
    own = site.given["site"]
    divided(site, ONE)
    all_are(site.apply(deadline=60), "done", "kept")
    peers.kubectl(
        "patch",
        "resourceslice",
        own,
        "--type=merge",
        "-p",
        json.dumps({"spec": {"devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}]}}),
    )
    assert site.changes()[KEY] == {f"nodes.{own}.claimable"}
    all_are(site.apply(deadline=60), "done", "kept")
    assert len(published(peers, own)) == 7
