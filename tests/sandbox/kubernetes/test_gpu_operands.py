"""NVIDIA's operator in the sandbox is as strict as upstream: operands by label, GPUs only with a driver, drivers
that nothing replaces, and a MIG manager that acts when its label changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from kube_serving import http_of
from waiting import until

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

pytestmark = pytest.mark.thorough

HOME = "/api/v1/namespaces/default"
NODE = "/api/v1/nodes/n1"
POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
RENDERED = Path(__file__).parents[3] / "specs/manifests/gpu-operator/operator.yaml"
PATHS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ServiceAccount": f"{HOME}/serviceaccounts",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "ClusterPolicy": POLICIES,
}
MERGE = {"content-type": "application/merge-patch+json"}
A100 = Gpus(1, product="NVIDIA-A100-PCIE-40GB")


@pytest.fixture
def http(clock: Clock, listeners: Listeners, pki: Pki) -> Iterator[httpx2.Client]:
    """A cluster with a node with a GPU and no driver, and the operator's objects but its ClusterPolicy."""
    gpus = {"n1": A100}
    running = RunningCluster("g", "v1.34.1", clock, Outside(gpus=lambda node: gpus.get(node, Gpus())))
    running.start()
    for name in ("n0", "n1"):
        running.add_node(name, cpus=8, memory=2**35, version="v1.34.1")
    with http_of(running.cluster, listeners, pki) as client:
        until(lambda: client.get(f"{HOME}/serviceaccounts/default").status_code == 200)
        for each in yaml.safe_load_all(RENDERED.read_text()):
            if each["kind"] != "ClusterPolicy":
                assert client.post(PATHS[each["kind"]], json=each).status_code == 201
        until(lambda: client.get(POLICIES).status_code == 200)
        yield client
    running.cluster.close()


def policy(http: httpx2.Client, name: str = "p", **spec: Any) -> None:
    body = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": spec}
    assert http.post(POLICIES, json=body).status_code == 201


def state(http: httpx2.Client, name: str = "p") -> str:
    return str(http.get(f"{POLICIES}/{name}").json().get("status", {}).get("state"))


def labels(http: httpx2.Client, node: str = "n1") -> dict[str, str]:
    found: dict[str, str] = http.get(f"/api/v1/nodes/{node}").json()["metadata"]["labels"]
    return found


def offered(http: httpx2.Client) -> dict[str, str]:
    every = http.get(NODE).json()["status"]["allocatable"]
    return {name: count for name, count in every.items() if name.startswith("nvidia.com/")}


def label(http: httpx2.Client, **values: str) -> None:
    named = {f"nvidia.com/mig.{name.replace('_', '.')}": value for name, value in values.items()}
    answer = http.patch(NODE, json={"metadata": {"labels": named}}, headers=MERGE)
    assert answer.status_code == 200


def driver(http: httpx2.Client) -> Any:
    selector = "app.kubernetes.io/component=nvidia-driver"
    found = http.get(f"{HOME}/pods", params={"labelSelector": selector}).json()["items"]
    return found[0] if found else None


def image(http: httpx2.Client) -> str:
    found = driver(http)
    return str(found["spec"]["containers"][0]["image"]) if found else ""


def test_a_node_with_gpus_gets_labels_and_operands_and_offers_them(http):
    policy(http)
    until(lambda: offered(http) == {"nvidia.com/gpu": "1"})
    until(lambda: state(http) == "ready")
    assert labels(http)["nvidia.com/gpu.deploy.driver"] == "true"
    assert labels(http)["nvidia.com/mig.capable"] == "true"
    assert "nvidia.com/gpu.present" not in labels(http, "n0")


def test_without_a_driver_there_are_no_gpus(http):
    policy(http, driver={"enabled": True, "licensingConfig": {"secretName": "missing"}})
    until(lambda: driver(http))
    assert state(http) == "notReady"
    assert offered(http) == {}
    secret = {"metadata": {"name": "missing"}, "stringData": {"client_configuration_token.tok": "a.b.c"}}
    assert http.post(f"{HOME}/secrets", json=secret).status_code == 201
    until(lambda: offered(http) == {"nvidia.com/gpu": "1"})


def test_the_second_policy_is_ignored(http):
    policy(http, "a")
    until(lambda: state(http, "a") == "ready")
    policy(http, "b")
    until(lambda: state(http, "b") == "ignored")


def test_a_driver_of_another_version_waits_for_its_pod_to_be_deleted(http):
    policy(http, driver={"version": "1"})
    until(lambda: state(http) == "ready")
    before = driver(http)["metadata"]["name"]
    body = {"spec": {"driver": {"version": "2"}}}
    assert http.patch(f"{POLICIES}/p", json=body, headers=MERGE).status_code == 200
    until(lambda: state(http) == "notReady")
    assert driver(http)["metadata"]["name"] == before
    assert http.delete(f"{HOME}/pods/{before}").status_code == 200
    until(lambda: state(http) == "ready")
    assert image(http).endswith("driver:2-ubuntu24.04")


def test_with_auto_upgrade_the_operator_deletes_it(http):
    policy(http, driver={"version": "1", "upgradePolicy": {"autoUpgrade": True}})
    until(lambda: state(http) == "ready")
    body = {"spec": {"driver": {"version": "2"}}}
    assert http.patch(f"{POLICIES}/p", json=body, headers=MERGE).status_code == 200
    until(lambda: image(http).endswith(":2-ubuntu24.04"))
    until(lambda: state(http) == "ready")


@pytest.mark.parametrize(
    ("strategy", "parts"), [("mixed", {"nvidia.com/mig-1g.5gb": "7"}), ("single", {"nvidia.com/gpu": "7"})]
)
def test_the_mig_manager_divides_gpus_by_label(http, strategy, parts):
    policy(http, mig={"strategy": strategy})
    until(lambda: state(http) == "ready")
    label(http, config="all-1g.5gb")
    until(lambda: labels(http).get("nvidia.com/mig.config.state") == "success")
    until(lambda: offered(http) == parts)
    label(http, config="all-disabled")
    until(lambda: offered(http) == {"nvidia.com/gpu": "1"})


def test_a_layout_that_it_does_not_know_fails_and_an_unchanged_label_does_nothing(http):
    policy(http)
    until(lambda: state(http) == "ready")
    label(http, config="all-9g")
    until(lambda: labels(http).get("nvidia.com/mig.config.state") == "failed")
    label(http, config="all-9g", config_state="edited")
    until(lambda: state(http) == "ready")
    assert labels(http)["nvidia.com/mig.config.state"] == "edited"


def test_gpus_that_a_pod_holds_are_not_divided(http):
    policy(http)
    until(lambda: offered(http) == {"nvidia.com/gpu": "1"})
    asked = {"limits": {"nvidia.com/gpu": "1"}}
    spec = {"containers": [{"name": "c", "image": "x:1", "resources": asked}]}
    assert http.post(f"{HOME}/pods", json={"metadata": {"name": "w"}, "spec": spec}).status_code == 201
    until(lambda: http.get(f"{HOME}/pods/w").json()["status"].get("phase") == "Running")
    label(http, config="all-1g.5gb")
    until(lambda: labels(http).get("nvidia.com/mig.config.state") == "failed")
