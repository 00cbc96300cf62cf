"""GPUs of nodes: pods get them where NVIDIA's device plug-in found them, and the scheduler says why none
fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from kube_serving import http_of
from waiting import until

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change
from bfinfra.sandbox.linux.gpus import GRIDD, GRIDD_CONF
from bfinfra.sandbox.linux.machine import Machine, Node, Service
from bfinfra.sandbox.linux.node import gpus_of
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

HOME = "/api/v1/namespaces/default"
READY, BARE = Gpus(1, frozenset({""})), Gpus(1)


@pytest.fixture
def found() -> dict[str, Gpus]:
    """What nodes have."""
    return {"n1": READY}


@pytest.fixture
def guest(clock: Clock, found: dict[str, Gpus]) -> Iterator[RunningCluster]:
    running = RunningCluster("g", "v1.27.5", clock, Outside(gpus=lambda node: found.get(node, Gpus())))
    running.start()
    running.add_node("n0", cpus=4, memory=2**35, version="v1.27.5", roles=("control-plane",))
    running.add_node("n1", cpus=4, memory=2**35, version="v1.27.5")
    until(lambda: running.cluster.get("", "serviceaccounts", "default", "default"))
    yield running
    running.cluster.close()


@pytest.fixture
def http(guest: RunningCluster, listeners: Listeners, pki: Pki) -> Iterator[httpx2.Client]:
    with http_of(guest.cluster, listeners, pki) as client:
        yield client


def asking(name: str, count: int = 1, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": count}}}
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container], **more}}


def plugin(*env: tuple[str, str], **more: Any) -> dict[str, Any]:
    container = {
        "name": "ctr",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
        "env": [{"name": name, "value": value} for name, value in env],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pod = {"metadata": {"labels": {"app": "p"}}, "spec": {"containers": [container], **more}}
    return {"metadata": {"name": "p"}, "spec": {"selector": {"matchLabels": {"app": "p"}}, "template": pod}}


def made(http: httpx2.Client, path: str, body: Any) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == 201, answer.text


def runs(http: httpx2.Client, body: Any) -> None:
    made(http, "/apis/apps/v1/namespaces/kube-system/daemonsets", body)


def offered(http: httpx2.Client, node: str = "n1") -> str:
    return str(http.get(f"/api/v1/nodes/{node}").json()["status"]["allocatable"].get("nvidia.com/gpu", ""))


def phase(http: httpx2.Client, name: str) -> str:
    return str(http.get(f"{HOME}/pods/{name}").json()["status"]["phase"])


def plugins_pod(http: httpx2.Client) -> Any:
    """As soon as there is one."""
    (pod,) = until(
        lambda: http.get("/api/v1/namespaces/kube-system/pods?labelSelector=app%3Dp").json()["items"]
    )
    return pod


def unscheduled(http: httpx2.Client, name: str) -> str:
    conditions = http.get(f"{HOME}/pods/{name}").json()["status"].get("conditions") or [{}]
    return str(conditions[0].get("message", ""))


def test_without_a_plug_in_no_node_offers_its_gpus(http: httpx2.Client) -> None:
    made(http, f"{HOME}/pods", asking("train"))
    until(lambda: unscheduled(http, "train"))
    assert unscheduled(http, "train") == (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint "
        "{node-role.kubernetes.io/control-plane: }. "
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 "
        "Preemption is not helpful for scheduling."
    )
    assert (phase(http, "train"), offered(http)) == ("Pending", "")
    runs(http, plugin())
    until(lambda: phase(http, "train") == "Succeeded")
    assert offered(http) == "1"


def test_what_a_pod_holds_no_other_gets(http: httpx2.Client) -> None:
    runs(http, plugin())
    until(lambda: offered(http) == "1")
    made(http, f"{HOME}/pods", asking("first", restartPolicy="Always"))
    until(lambda: phase(http, "first") == "Running")
    made(http, f"{HOME}/pods", asking("second"))
    until(lambda: "1 Insufficient nvidia.com/gpu" in unscheduled(http, "second"))
    http.delete(f"{HOME}/pods/first?gracePeriodSeconds=0")
    until(lambda: phase(http, "second") == "Succeeded")


def test_a_plug_in_that_is_gone_takes_its_gpus_along(http: httpx2.Client) -> None:
    runs(http, plugin())
    until(lambda: offered(http) == "1")
    http.delete("/apis/apps/v1/namespaces/kube-system/daemonsets/p")
    until(lambda: offered(http) == "")


def test_where_the_runtime_hands_out_nothing_it_ends_with_its_words_and_comes_again_once_it_does(
    http: httpx2.Client, guest: RunningCluster, found: dict[str, Gpus]
) -> None:
    found["n1"] = BARE
    runs(http, plugin())
    until(
        lambda: plugins_pod(http)["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting")
    )
    status = plugins_pod(http)["status"]["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert "nvml init failed: ERROR_LIBRARY_NOT_FOUND" in status["lastState"]["terminated"]["message"]
    daemons = http.get("/apis/apps/v1/namespaces/kube-system/daemonsets/p").json()["status"]
    assert (daemons["desiredNumberScheduled"], daemons["numberReady"]) == (1, 0)
    assert offered(http) == ""
    found["n1"] = READY
    guest.loop.look_at_all()
    until(lambda: offered(http) == "1")


def test_one_that_goes_on_without_gpus_finds_none_later(
    http: httpx2.Client, guest: RunningCluster, clock: Clock, found: dict[str, Gpus]
) -> None:
    found["n1"] = BARE
    runs(http, plugin(("FAIL_ON_INIT_ERROR", "false")))
    until(lambda: plugins_pod(http)["status"]["phase"] == "Running")
    found["n1"] = READY
    clock.rest()
    guest.loop.look_at_all()
    clock.rest()
    assert offered(http) == ""
    http.delete(
        f"/api/v1/namespaces/kube-system/pods/{plugins_pod(http)['metadata']['name']}?gracePeriodSeconds=0"
    )
    until(lambda: offered(http) == "1")


def test_gpus_that_come_as_soon_as_it_runs_are_not_found(
    http: httpx2.Client, guest: RunningCluster, clock: Clock, found: dict[str, Gpus]
) -> None:
    found["n1"] = BARE

    def gpus_come(change: Change) -> None:
        if change.key == ("", "pods") and change.after.get("status", {}).get("phase") == "Running":
            found["n1"] = READY

    guest.cluster.store.listeners.append(gpus_come)
    runs(http, plugin(("FAIL_ON_INIT_ERROR", "false")))
    until(lambda: plugins_pod(http)["status"]["phase"] == "Running")
    clock.rest()
    assert (found["n1"], offered(http)) == (READY, "")


def test_a_runtime_class_is_as_good_as_a_default(http: httpx2.Client, found: dict[str, Gpus]) -> None:
    found["n1"] = Gpus(2, frozenset({"nvidia"}))
    runs(http, plugin(runtimeClassName="nvidia"))
    until(lambda: offered(http) == "2")


def test_training_on_a_vgpu_without_a_license_fails(http: httpx2.Client, found: dict[str, Gpus]) -> None:
    found["n1"] = Gpus(1, frozenset({""}), licensed=False)
    runs(http, plugin())
    until(lambda: offered(http) == "1")
    role = {"training.kubeflow.org/job-name": "j", "training.kubeflow.org/job-role": "worker"}
    worker, launcher = asking("w", restartPolicy="Always"), asking("l", 0)
    worker["metadata"]["labels"], launcher["metadata"]["labels"] = (
        role,
        {**role, "training.kubeflow.org/job-role": "launcher"},
    )
    launcher["spec"]["containers"][0] |= {
        "command": ["mpirun", "-np", "1", "python", "tf_cnn_benchmarks.py"],
        "resources": {},
    }
    made(http, f"{HOME}/pods", worker)
    until(lambda: phase(http, "w") == "Running")
    made(http, f"{HOME}/pods", launcher)
    until(lambda: phase(http, "l") == "Failed")
    assert "device doesn't have valid Grid license" in http.get(f"{HOME}/pods/l/log").text


def machine(*units: str, **files: str) -> Machine:
    made = Machine.fresh("m", ("ubuntu", "20.04"), (16384,), ("root",))
    made.services = {unit: Service(active=True, enabled=True) for unit in units}
    made.files |= {path: Node(text.encode()) for path, text in files.items()}
    return made


DOCKER, CONTAINERD = "/etc/docker/daemon.json", "/etc/containerd/config.toml"
TOML = (
    'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\ndefault_runtime_name = '
    '"nvidia"\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]\n'
)


@pytest.mark.parametrize(
    ("units", "files", "runtimes"),
    [
        (("docker.service",), {}, set()),
        (
            ("docker.service",),
            {DOCKER: '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}'},
            {"nvidia"},
        ),
        (
            ("docker.service",),
            {DOCKER: '{"runtimes": {"nvidia": {}}, "default-runtime": "nvidia"}'},
            {"", "nvidia"},
        ),
        ((), {DOCKER: '{"runtimes": {"nvidia": {}}, "default-runtime": "nvidia"}'}, set()),
        (("docker.service",), {DOCKER: "spoiled"}, set()),
        (("containerd.service",), {CONTAINERD: TOML}, {"", "nvidia"}),
        (("containerd.service",), {CONTAINERD: "version = 2\n"}, set()),
    ],
)
def test_a_machine_hands_gpus_to_containers_as_its_runtime_is_configured(
    units: tuple[str, ...], files: dict[str, str], runtimes: set[str]
) -> None:
    assert gpus_of(machine(*units, **files)) == Gpus(1, frozenset(runtimes))


def test_a_vgpu_is_licensed_where_its_service_runs_and_knows_a_server() -> None:
    assert not gpus_of(machine(GRIDD)).licensed
    assert gpus_of(machine(GRIDD, **{GRIDD_CONF: "ServerAddress=10.0.0.5\n"})).licensed
    assert gpus_of(machine()).licensed
