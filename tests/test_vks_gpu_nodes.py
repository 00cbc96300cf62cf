"""The GPU nodes of specs/vks-gpu.yaml: the autoscaler starts them for pods with GPUs within its bounds and ends idle
ones, hosts give them vGPUs as long as there is room, and GPUs are allocatable only with driver and license.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from documents import started
from kinds.lifecycle import SPECS, apply, drift, endings, made
from rights.given import Kube, guest, supervisor
from waiting import until

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

SITE = SPECS / "vks-gpu.yaml"
POOL = "/apis/cluster.x-k8s.io/v1beta1/namespaces/ml/machinedeployments/ml-01-gpu"
CLUSTER = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ml/clusters/ml-01"
PODS = "/api/v1/namespaces/default/pods"
SECRET = "/api/v1/namespaces/gpu-operator/secrets/bfinfra-vgpu-license"
LIMIT = 60.0  # seconds


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A sandbox where an idle node goes after six seconds."""
    with started(
        SPECS / "worlds/vks-gpu.yaml", tmp_path_factory.mktemp("vks-gpu-nodes"), pace=0.01
    ) as running:
        yield running


@dataclass(frozen=True)
class First:
    """What the site's job left behind: its log, its pod's node, and the nodes that offered GPUs."""

    log: str
    node: str
    offering: list[str]


@pytest.fixture(scope="module")
def first(gpus: Running) -> First:
    """The site, applied; read before its node is idle for long."""
    done = apply(SITE, gpus)
    assert made(done), endings(done)
    kube = guest(gpus, "ml", "ml-01", "GPU")
    (pod,) = listed(kube, PODS)
    nodes = listed(kube, "/api/v1/nodes")
    offering = [
        each["metadata"]["name"] for each in nodes if "nvidia.com/gpu" in each["status"]["allocatable"]
    ]
    return First(kube.text(f"{PODS}/{pod['metadata']['name']}/log"), pod["spec"]["nodeName"], offering)


@pytest.fixture
def site(gpus: Running, first: First) -> Running:
    return gpus


@pytest.fixture
def inside(site: Running) -> Iterator[Kube]:
    """The cluster's API, without a GPU node; in the end, no pod is left that asks for one."""
    kube = guest(site, "ml", "ml-01", "GPU")
    supervisor(site, "GPU").call("PATCH", POOL, {"spec": {"replicas": 0}})
    until(lambda: not gpu_nodes(kube), LIMIT)
    yield kube
    for pod in listed(kube, PODS):
        kube.call("DELETE", f"{PODS}/{pod['metadata']['name']}")


def listed(kube: Kube, path: str) -> list[Any]:
    found: list[Any] = kube.call("GET", path)["items"]
    return found


def gpu_nodes(kube: Kube) -> dict[str, str]:
    """Node of the pool → the GPUs that it offers."""
    return {
        each["metadata"]["name"]: each["status"]["allocatable"].get("nvidia.com/gpu", "0")
        for each in listed(kube, "/api/v1/nodes")
        if each["metadata"]["name"].startswith("ml-01-gpu-")
    }


def pods_of(kube: Kube, component: str) -> list[Any]:
    every = listed(kube, "/api/v1/namespaces/gpu-operator/pods")
    return [
        each for each in every if each["metadata"]["labels"].get("app.kubernetes.io/component") == component
    ]


def train(kube: Kube, name: str, **spec: Any) -> None:
    """A pod that holds a GPU until it is deleted."""
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "c",
        "image": "train:1",
        "securityContext": safe,
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    body = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [container],
        **spec,
    }
    kube.call("POST", PODS, {"metadata": {"name": name}, "spec": body})


def phase(kube: Kube, name: str) -> Any:
    return kube.call("GET", f"{PODS}/{name}")["status"].get("phase")


def waits(kube: Kube, name: str) -> str:
    """Why a pod finds no node."""
    found = kube.call("GET", f"{PODS}/{name}")["status"].get("conditions") or [{}]
    return str(found[0].get("message", ""))


def test_a_job_starts_a_node_from_none_and_prints_nvidia_smi(site: Running, first: First) -> None:
    log = first.log
    assert (
        "| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |" in log
    )
    assert "|   0  NVIDIA H100-40C                On  |" in log
    assert first.offering == [first.node]
    assert first.node.startswith("ml-01-gpu-")
    assert drift(SITE, site).found == (), "the autoscaler's count is nobody's"
    kube = supervisor(site, "GPU")
    until(lambda: kube.call("GET", POOL)["spec"]["replicas"] == 0, LIMIT)
    assert drift(SITE, site).found == ()
    assert set(endings(apply(SITE, site)).values()) == {"kept"}


def test_pods_raise_a_pool_to_its_most_and_no_further(site: Running, inside: Kube) -> None:
    for number in range(6):
        train(inside, f"train-{number}")
    until(lambda: [phase(inside, f"train-{n}") for n in range(6)].count("Running") == 4, LIMIT)
    assert len(gpu_nodes(inside)) == 4
    late = [f"train-{n}" for n in range(6) if phase(inside, f"train-{n}") == "Pending"]
    assert all("Insufficient nvidia.com/gpu" in waits(inside, each) for each in late)
    assert supervisor(site, "GPU").call("GET", POOL)["spec"]["replicas"] == 4
    busy = {*gpu_nodes(inside)}
    for each in [f"train-{n}" for n in range(6) if f"train-{n}" not in late][:2]:
        inside.call("DELETE", f"{PODS}/{each}")
    until(lambda: all(phase(inside, each) == "Running" for each in late), LIMIT)
    assert set(gpu_nodes(inside)) == busy, "freed GPUs are used again"


def test_one_idle_node_goes_and_the_busy_ones_stay(inside: Kube) -> None:
    for number in range(2):
        train(inside, f"train-{number}")
    until(lambda: phase(inside, "train-0") == phase(inside, "train-1") == "Running", LIMIT)
    inside.call("DELETE", f"{PODS}/train-0")
    until(lambda: len(gpu_nodes(inside)) == 1, LIMIT)
    assert phase(inside, "train-1") == "Running"
    assert inside.call("GET", f"{PODS}/train-1")["spec"]["nodeName"] in gpu_nodes(inside)


def test_without_a_good_license_no_gpu_is_allocatable(inside: Kube) -> None:
    good = inside.call("GET", SECRET)["data"]
    inside.call("PATCH", SECRET, {"data": dict.fromkeys(good, "eC54Lng=")})
    train(inside, "train")
    until(
        lambda: [each["status"].get("phase") for each in pods_of(inside, "nvidia-driver")] == ["Running"],
        LIMIT,
    )
    until(lambda: set(gpu_nodes(inside).values()) == {"0"}, LIMIT)
    assert phase(inside, "train") == "Pending"
    inside.call("PATCH", SECRET, {"data": good})
    (driver,) = pods_of(inside, "nvidia-driver")
    assert phase(inside, "train") == "Pending", "a driver reads its token when it starts"
    inside.call("DELETE", f"/api/v1/namespaces/gpu-operator/pods/{driver['metadata']['name']}")
    until(lambda: phase(inside, "train") == "Running", LIMIT)


POLICY = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy"


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        ({"repository": "nvcr.io/nvidia", "image": "driver"}, "could not insert 'nvidia': No such device"),
        ({"version": "590.44.01"}, "incompatible with the host driver"),
    ],
)
def test_a_driver_that_is_not_right_makes_no_gpus(inside: Kube, driver: dict[str, str], why: str) -> None:
    before = inside.call("GET", POLICY)["spec"]["driver"]
    inside.call("PATCH", POLICY, {"spec": {"driver": driver}})
    train(inside, "train")

    def crashed() -> bool:
        states = [each["status"].get("containerStatuses") for each in pods_of(inside, "nvidia-driver")]
        return "CrashLoopBackOff" in str(states)

    until(crashed, LIMIT)
    (pod,) = pods_of(inside, "nvidia-driver")
    home = "/api/v1/namespaces/gpu-operator/pods"
    assert why in inside.text(f"{home}/{pod['metadata']['name']}/log?container=nvidia-driver-ctr")
    assert set(gpu_nodes(inside).values()) == {"0"}
    assert phase(inside, "train") == "Pending"
    inside.call("PATCH", POLICY, {"spec": {"driver": before}})
    inside.call("DELETE", f"{home}/{pod['metadata']['name']}")
    until(lambda: phase(inside, "train") == "Running", LIMIT)


def test_nodes_come_as_long_as_hosts_have_vgpus(site: Running, inside: Kube) -> None:
    kube = supervisor(site, "GPU")
    kube.call("PATCH", POOL, {"spec": {"replicas": 9}})
    until(lambda: "graphics resource" in str(kube.call("GET", CLUSTER)["status"]), LIMIT)
    assert len(gpu_nodes(inside)) == 8, "two hosts with two cards of two vGPUs each"
    (available,) = [
        each for each in kube.call("GET", CLUSTER)["status"]["conditions"] if each["type"] == "Available"
    ]
    assert available["status"] == "False"
    kube.call("PATCH", POOL, {"spec": {"replicas": 1}})
    until(lambda: len(gpu_nodes(inside)) == 1, LIMIT)


def test_an_empty_pool_without_its_number_of_gpus_is_never_raised(site: Running, inside: Kube) -> None:
    kube = supervisor(site, "GPU")
    topology = kube.call("GET", CLUSTER)["spec"]["topology"]
    pools = topology["workers"]["machineDeployments"]
    count = "capacity.cluster-autoscaler.kubernetes.io/gpu-count"
    (pool,) = [each for each in pools if each["name"] == "gpu"]
    pool["metadata"]["annotations"].pop(count)
    body = {"spec": {"topology": {"workers": {"machineDeployments": pools}}}}
    kube.call("PATCH", f"{CLUSTER}?fieldManager=kubectl-edit", body)
    until(lambda: count not in kube.call("GET", POOL)["metadata"]["annotations"], LIMIT)
    assert [each.field for each in drift(SITE, site).found] == ["workers.gpu.autoscale.gpus"]
    train(inside, "train")
    until(lambda: "Insufficient nvidia.com/gpu" in waits(inside, "train"), LIMIT)
    assert kube.call("GET", POOL)["spec"]["replicas"] == 0
    assert made(apply(SITE, site))
    until(lambda: phase(inside, "train") == "Running", LIMIT)
