"""With a GPUCluster, GPUs are given by resource claims: an apply waits for the slice of each node with GPUs, a
slice that goes is told, and a pod with a claim has its GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.at_cluster import Site
from kinds.gpu_operator.at_gpus import (
    ADDRESS,
    VGPU,
    drivers,
    given,
    labels,
    made,
    offered,
    phase,
    with_dra_driver,
)
from kinds.lifecycle import SPECS
from waiting import until

from bfinfra.model.events import Ending

API, GPU, NVIDIA = "resource.k8s.io/v1", "gpu.nvidia.com", "nvidia.com/v1alpha1"
PLUGIN = "nvidia-dra-driver-kubelet-plugin"
pytestmark = [pytest.mark.parametrize("api", ["sandbox"], indirect=True), pytest.mark.thorough]


@pytest.fixture
def server_version() -> str:
    return "v1.34.1"


@pytest.fixture
def site(api: Any, node_gpus: Any, tmp_path: Path) -> Site:
    return made(api, tmp_path, "gpu-operator-dra", allocate="dra")


def slices(cluster: Any, driver: str = GPU) -> dict[str, Any]:
    """Node → its slice."""
    found = cluster.list(API, "ResourceSlice")
    return {each["spec"]["nodeName"]: each for each in found if each["spec"]["driver"] == driver}


def gpu_cluster(cluster: Any) -> Any:
    return cluster.get(NVIDIA, "GPUCluster", "gpu-cluster")


def waits(site: Site) -> str:
    """Why an apply ends as still waiting."""
    outcome = site.apply(deadline=1)
    (ended,) = [each for key, each in outcome.endings.items() if str(key) == ADDRESS]
    assert ended.ending is Ending.WAITING
    return str(ended.problem)


def runs(cluster: Any, name: str, **wanted: Any) -> None:
    """The Job with nvidia-smi under another name, whose claim asks for these devices."""
    template, job = (
        yaml.safe_load((SPECS / f"manifests/{each}.yaml").read_text())
        for each in ("one-gpu", "nvidia-smi-dra")
    )
    template["metadata"] |= {"name": name, "namespace": "default"}
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"] |= wanted
    pod = job["spec"]["template"]["spec"]
    pod["resourceClaims"][0]["resourceClaimTemplateName"] = name
    cluster.create(template)
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod})


def test_each_node_with_gpus_has_a_slice_when_the_apply_ends(site, cluster):
    site.applied()
    found = slices(cluster)
    assert set(found) == {"g1", "g2"}
    assert (offered(cluster, "g1"), offered(cluster, "worker")) == ({}, {})
    assert gpu_cluster(cluster)["status"]["state"] == "ready"
    first = found["g1"]["spec"]["devices"][0]
    assert [each["name"] for each in found["g1"]["spec"]["devices"]] == ["gpu-0", "gpu-1"]
    assert first["attributes"]["productName"] == {"string": "NVIDIA A100-PCIE-40GB"}
    assert first["attributes"]["driverVersion"] == {"version": "580.95.5"}
    assert found["g1"]["metadata"]["ownerReferences"][0]["kind"] == "Node"
    classes = {each["metadata"]["name"] for each in cluster.list(API, "DeviceClass")}
    assert {GPU, "mig.nvidia.com", "vfio.gpu.nvidia.com"} <= classes
    assert set(drivers(cluster)) == {"g1", "g2"}
    assert labels(cluster, "g1")["nvidia.com/gpu.deploy.dra-driver"] == "true"
    assert site.item(ADDRESS).steps == ()
    assert [item for item in site.plan().items if item.steps] == []


def test_a_pod_has_the_gpu_of_its_claim_and_gives_it_back(site, cluster, node_gpus):
    del node_gpus["g2"]
    site.applied()
    runs(cluster, "first")
    until(lambda: phase(cluster, "first") == "Succeeded")
    device = slices(cluster)["g1"]["spec"]["devices"][0]
    uuid = device["attributes"]["uuid"]["string"]
    assert cluster.log("first") == f"GPU 0: NVIDIA A100-PCIE-40GB (UUID: {uuid})\n"
    until(lambda: not [each for each in claims(cluster) if each["metadata"]["name"].startswith("first")])
    runs(cluster, "second", count=3)
    until(
        lambda: "cannot allocate all claims" in str(cluster.get("v1", "Pod", "second", "default")["status"])
    )


def claims(cluster: Any) -> list[Any]:
    return list(cluster.list(API, "ResourceClaim", "default"))


def test_a_node_without_a_slice_is_named_until_it_has_one(site, cluster, node_gpus):
    node_gpus["g2"] = VGPU
    assert "Waiting for operand pods to be ready" in waits(site)
    assert set(slices(cluster)) == {"g1"}
    assert set(slices(cluster, "compute-domain.nvidia.com")) == {"g1"}


def test_a_slice_that_goes_is_told(site, cluster):
    site.applied()
    assert site.plan().warnings == ()
    body = {"metadata": {"labels": {"nvidia.com/gpu.deploy.dra-driver": "false"}}}
    cluster.patch("v1", "Node", "g1", body)
    until(lambda: set(slices(cluster)) == {"g2"})
    (warned,) = site.plan().warnings
    assert "GPUs can't be claimed, as their nodes have no ResourceSlice of them: g1" in str(warned.problem)


def test_its_operands_go_before_the_operator(site, cluster):
    site.applied()
    site.applied(destroy=True)
    assert cluster.list("apps/v1", "DaemonSet", "default") == []
    assert slices(cluster) == {}
    assert cluster.list(API, "DeviceClass") == []
    assert claims(cluster) == []


def test_an_older_cluster_is_refused(site, server_version):
    assert given(site, allocate="device_plugin").plan().problems


def test_beside_a_cluster_policy_the_dra_driver_is_the_sites_own(api, node_gpus, tmp_path, cluster):
    site = made(api, tmp_path, allocate="dra")
    assert "g1 has no ResourceSlice yet" in waits(site)
    assert offered(cluster, "g1") == {}
    with_dra_driver(site, tmp_path).applied()
    assert set(slices(cluster)) == {"g1", "g2"}
    assert cluster.get("apps/v1", "DaemonSet", "nvidia-device-plugin-daemonset", "default") is None
