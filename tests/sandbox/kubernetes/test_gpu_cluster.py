"""NVIDIA's GPUCluster, its DRA driver and the kubelets in the sandbox are as strict as upstream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from kube_serving import http_of
from waiting import until

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.device_cel import NoSuchKey, Unsupported, compiled
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

HOME = "/api/v1/namespaces/default"
NODE = "/api/v1/nodes/n1"
NVIDIA, DRA = "/apis/nvidia.com", "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
CLUSTERS = f"{NVIDIA}/v1alpha1/gpuclusters"
RENDERED = Path(__file__).parents[3] / "specs/manifests"
PATHS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ServiceAccount": f"{HOME}/serviceaccounts",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "ClusterPolicy": f"{NVIDIA}/v1/clusterpolicies",
    "GPUCluster": CLUSTERS,
    "NVIDIADriver": f"{NVIDIA}/v1alpha1/nvidiadrivers",
}
MERGE = {"content-type": "application/merge-patch+json"}
Started = Callable[[str], httpx2.Client]


@pytest.fixture
def started(clock: Clock, listeners: Listeners, pki: Pki) -> Iterator[Started]:
    """A cluster of a version, with two nodes, of which n1 has GPUs, and the operator's objects."""
    running: list[Any] = []

    def start(version: str) -> httpx2.Client:
        gpus = {"n1": Gpus(2, product="NVIDIA-A100-PCIE-40GB", memory=40960)}
        found = RunningCluster("g", version, clock, Outside(gpus=lambda node: gpus.get(node, Gpus())))
        found.start()
        for name in ("n0", "n1"):
            found.add_node(name, cpus=8, memory=2**35, version=version)
        opened = http_of(found.cluster, listeners, pki)
        running.extend((found, opened))
        http = opened.__enter__()
        until(lambda: http.get(f"{HOME}/serviceaccounts/default").status_code == 200)
        for folder in ("gpu-operator", "gpu-operator-dra"):
            made(http, folder, "CustomResourceDefinition")
        until(lambda: http.get(CLUSTERS).status_code == 200)
        made(http, "gpu-operator-dra", "ServiceAccount", "Deployment", "NVIDIADriver")
        return http

    yield start
    found, opened = running
    opened.__exit__(None, None, None)
    found.cluster.close()


def made(http: httpx2.Client, folder: str, *kinds: str) -> None:
    for each in yaml.safe_load_all((RENDERED / folder / "operator.yaml").read_text()):
        if each["kind"] in kinds:
            assert http.post(PATHS[each["kind"]], json=each).status_code == 201


def said(http: httpx2.Client, path: str) -> tuple[str, str]:
    """State, and what the condition Error says."""
    status = http.get(path).json().get("status", {})
    errors = [each for each in status.get("conditions", []) if each["type"] == "Error"]
    return status.get("state", ""), errors[0]["message"] if errors else ""


def items(http: httpx2.Client, path: str) -> list[Any]:
    return list(http.get(path).json()["items"])


def ready(started: Started) -> httpx2.Client:
    http = started("v1.34.1")
    made(http, "gpu-operator-dra", "GPUCluster")
    until(lambda: said(http, f"{CLUSTERS}/gpu-cluster")[0] == "ready")
    return http


def asks(http: httpx2.Client, name: str, **pod: Any) -> None:
    """A claim of one GPU, and a pod with it."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
    assert http.post(CLAIMS, json=claim).status_code == 201
    container = {"name": "c", "image": "x:1", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}], "containers": [container], **pod}
    assert http.post(f"{HOME}/pods", json={"metadata": {"name": name}, "spec": spec}).status_code == 201


def phase(http: httpx2.Client, name: str) -> str:
    return str(http.get(f"{HOME}/pods/{name}").json()["status"].get("phase"))


def event(http: httpx2.Client, reason: str) -> str:
    return " ".join(each["message"] for each in items(http, f"{HOME}/events") if each["reason"] == reason)


def test_operands_with_admin_access_run_beside_pods_that_have_the_gpus(started):
    http = ready(started)
    space = http.get("/api/v1/namespaces/default").json()
    assert space["metadata"]["labels"]["resource.kubernetes.io/admin-access"] == "true"
    for name in ("a", "b", "c"):
        asks(http, name)
    until(lambda: phase(http, "a") == phase(http, "b") == "Running")
    until(lambda: "cannot allocate all claims" in str(http.get(f"{HOME}/pods/c").json()["status"]))
    taken = {each["spec"]["nodeName"] for each in items(http, f"{HOME}/pods") if each["spec"].get("nodeName")}
    assert "n1" in taken
    assert http.delete(f"{HOME}/pods/a").status_code == 200
    until(lambda: phase(http, "c") == "Running")


def test_a_cluster_policy_and_a_gpu_cluster_exclude_each_other(started):
    http = ready(started)
    made(http, "gpu-operator", "ClusterPolicy")
    until(lambda: said(http, f"{CLUSTERS}/gpu-cluster")[0] == "notReady")
    assert "may not exist at the same time" in said(http, f"{CLUSTERS}/gpu-cluster")[1]
    policy = f"{PATHS['ClusterPolicy']}/cluster-policy"
    until(lambda: said(http, policy)[0] == "notReady")
    assert "ClusterPolicy and GPUCluster cannot co-exist" in said(http, policy)[1]


def test_an_older_cluster_serves_no_claims(started):
    http = started("v1.33.4")
    assert http.get(f"{DRA}/deviceclasses").status_code == 404
    made(http, "gpu-operator-dra", "GPUCluster")
    until(lambda: "DeviceClass API is not served by the cluster" in said(http, f"{CLUSTERS}/gpu-cluster")[1])
    used = {"resources": {"claims": [{"name": "gpu"}]}}
    spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}],
        "containers": [{"name": "c", "image": "x:1", **used}],
    }
    pod = http.post(f"{HOME}/pods", json={"metadata": {"name": "p"}, "spec": spec}).json()
    assert ("resourceClaims" in pod["spec"], pod["spec"]["containers"][0]["resources"]) == (False, {})


def test_a_slice_that_somebody_deletes_comes_back_and_goes_with_the_plug_in(started):
    http = ready(started)
    (found,) = [
        each for each in items(http, f"{DRA}/resourceslices") if "compute" not in str(each["spec"]["driver"])
    ]
    assert http.delete(f"{DRA}/resourceslices/{found['metadata']['name']}").status_code == 200
    until(lambda: len(items(http, f"{DRA}/resourceslices")) == 2)
    body = {"metadata": {"labels": {"nvidia.com/gpu.deploy.dra-driver": "false"}}}
    assert http.patch(NODE, json=body, headers=MERGE).status_code == 200
    until(lambda: items(http, f"{DRA}/resourceslices") == [])
    asks(http, "late")
    until(lambda: "cannot allocate all claims" in str(http.get(f"{HOME}/pods/late").json()["status"]))


def test_a_kubelet_starts_no_pod_whose_claim_it_can_not_prepare(started):
    http = ready(started)
    asks(http, "aside", nodeName="n1")
    until(lambda: "is not allowed to use ResourceClaim aside" in event(http, "FailedPrepareDynamicResources"))
    assert phase(http, "aside") == "Pending"


DEVICE = {
    "attributes": {
        "type": {"string": "gpu"},
        "id": {"int": 0},
        "on": {"bool": True},
        "version": {"version": "1.2.3"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    }
}


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ("device.driver == 'a'", True),
        ('device.driver != "a"', False),
        ("device.attributes['a'].type == 'gpu' && device.attributes['a'].id == 0", True),
        ("device.attributes['a'].on == true", True),
        ("device.attributes['a'].type == 0", False),
        ("device.attributes['a'].version == '1.2.3'", False),
        ("device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:00'", True),
        ("(device.driver == 'b' || device.driver == 'a') && device.attributes['a'].id != 1", True),
        ("device.driver == 'a' || device.driver == 'b' && device.driver == 'c'", True),
        ("device.attributes['a'].missing == 1 && device.driver == 'b'", False),
        ("device.attributes['b'].type == 'gpu' || device.driver == 'a'", True),
    ],
)
def test_a_selector_is_evaluated_as_cel_does(expression, matches):
    assert compiled(expression)("a", DEVICE) is matches


def test_an_attribute_that_is_missing_is_an_error_unless_the_other_side_decides():
    with pytest.raises(NoSuchKey, match="no such key: type"):
        compiled("device.attributes['b'].type == 'gpu' && device.driver == 'a'")("a", DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "true",
        "device.driver",
        "device.driver == 1",
        "device.driver == 'a' && ",
        "(device.driver == 'a'",
        "!(device.driver == 'a')",
        "device.driver in ['a']",
        "device.driver == 'it\\'s'",
        "'type' in device.attributes['a']",
        "device.attributes['a'].id < 2",
        "device.attributes['a'].type.matches('g.*')",
        "device.capacity['a'].memory.compareTo(quantity('1Gi')) > 0",
    ],
)
def test_every_other_selector_is_refused(expression):
    with pytest.raises(Unsupported, match="the sandbox does not implement this CEL expression"):
        compiled(expression)
