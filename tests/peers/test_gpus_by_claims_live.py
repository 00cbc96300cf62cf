"""gpu_operator with resource claims on a real kube-apiserver, whose scheduler gives the devices. kwok runs the
pods; what NVIDIA's operator and its DRA driver would write is written by the test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_archive import archive
from peers.found import Peers
from peers.gpu_nodes import GPU, Nvidia, gpus_by_claims
from peers.site_files import SPECS, SiteFile, all_are, endings
from waiting import until

from bfinfra.backends.helm import Capabilities
from bfinfra.kinds.cluster.gpu_operator.kind import GpuOperator
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.nvidia_dra import devices, resource_slice

ONCE = "definitions"
KEY = "gpu_operator/gpus"


class Operator(Nvidia):
    """Says that the GPUCluster is ready."""

    def look(self) -> None:
        said = json.dumps({"status": {"state": "ready"}})
        where = ("patch", "gpucluster", "gpu-cluster", "--subresource=status", "--type=merge", "-p", said)
        self._peers.kubectl(*where)


@pytest.fixture
def site(alone: None, peers: Peers, tmp_path: Path) -> Iterator[SiteFile]:
    """See `gpus_by_claims`; with NVIDIA's operator."""
    with gpus_by_claims(peers, tmp_path, "gpu-operator-dra", "gpu") as found, Operator(peers).beside(found):
        yield found


def publish(peers: Peers, site: SiteFile, driver: str = GPU) -> None:
    """The slice that a driver of NVIDIA publishes of the node."""
    own = site.given["site"]
    node = json.loads(peers.kubectl("get", "node", own, "-o", "json"))
    gpus = Gpus(1, product="NVIDIA-A100-PCIE-40GB", driver="580.95.05")
    thing = resource_slice(driver, node, devices(driver, own, gpus))
    thing["metadata"] = {"name": f"{own}{'' if driver == GPU else '-domains'}", **thing["metadata"]}
    del thing["metadata"]["generateName"]
    peers.kubectl("create", "-f", "-", given=json.dumps(thing))


def runs(peers: Peers, site: SiteFile) -> None:
    """The pod of the Job with nvidia-smi, on the node; kwok ends Jobs at once."""
    own = site.given["site"]
    template, job = (
        yaml.safe_load((SPECS / f"manifests/{each}.yaml").read_text())
        for each in ("one-gpu", "nvidia-smi-dra")
    )
    pod = job["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"kubernetes.io/hostname": own}
    pod["tolerations"].append({"key": own, "operator": "Exists"})
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nvidia-smi"}, "spec": pod}
    for each in (template, body):
        peers.kubectl("create", "-n", own, "-f", "-", given=json.dumps(each))


def ask(peers: Peers, site: SiteFile, kind: str) -> list[Any]:
    found = json.loads(peers.kubectl("get", kind, "-n", site.given["site"], "-o", "json"))
    return list(found["items"])


def test_an_apply_waits_for_the_slice_and_a_pod_gets_the_gpu(site: SiteFile, peers: Peers) -> None:
    own = site.given["site"]
    publish(peers, site, "compute-domain.nvidia.com")
    late = endings(site.apply(deadline=12))[KEY]
    assert f"{own} has no ResourceSlice yet, so its GPUs can't be claimed" in late
    publish(peers, site)
    all_are(site.apply(deadline=60), "done", "kept")
    assert (site.apply().writes, site.changes(), site.plan().warnings) == (0, {}, ())
    runs(peers, site)
    (claim,) = until(
        lambda: [each for each in ask(peers, site, "resourceclaims") if each["status"].get("allocation")]
    )
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert result == {"request": "gpu", "driver": GPU, "pool": own, "device": "gpu-0"}
    pods = {pod["metadata"]["name"]: pod for pod in ask(peers, site, "pods")}
    assert pods["nvidia-smi"]["spec"]["nodeName"] == own


def test_a_chart_that_asks_for_claims_is_rendered_for_a_cluster_that_is_not_there(
    peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{peers.bin}:{os.environ['PATH']}")
    template = """{{ if not (.Capabilities.APIVersions.Has "resource.k8s.io/v1/DeviceClass") }}
{{ fail "no claims" }}{{ end }}
apiVersion: nvidia.com/v1alpha1
kind: GPUCluster
metadata: {name: gpu-cluster}
spec: {draDriver: {}}
"""
    chart = {"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\n", "templates/a.yaml": template}
    digest = archive(tmp_path / "demo.tgz", {f"demo/{name}": text for name, text in chart.items()})
    given = {"cluster": "k", "chart": {"file": str(tmp_path / "demo.tgz"), "digest": digest}}
    spec = Spec.model_validate({**given, "allocate": "dra"})
    for known in (Capabilities(), Capabilities("v1.34.1", ("resource.k8s.io/v1/DeviceClass",))):
        found = GpuOperator.render("gpus", spec, known, "default", lambda *_: None)
        assert [each.kind for each in found.manifests] == ["GPUCluster"]
    with pytest.raises(ValueError, match="no claims"):
        GpuOperator.render("gpus", spec, Capabilities("v1.34.1"), "default", lambda *_: None)


@pytest.mark.thorough
def test_a_slice_that_goes_is_told(site: SiteFile, peers: Peers) -> None:
    own = site.given["site"]
    publish(peers, site)
    all_are(site.apply(deadline=60), "done", "kept")
    peers.kubectl("delete", "resourceslice", own)
    (warned,) = site.plan().warnings
    assert f"GPUs can't be claimed, as their nodes have no ResourceSlice of them: {own}" in str(
        warned.problem
    )
    site.given["gpu_operator"]["gpus"]["metrics"] = "false"
    assert f"{own} has no ResourceSlice yet" in endings(site.apply(deadline=12))[KEY]
