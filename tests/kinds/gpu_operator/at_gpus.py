"""A site with a GPU operator in a cluster whose nodes have GPUs, and looks at its nodes and pods."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from kinds.at_cluster import Site
from kinds.lifecycle import SPECS
from waiting import until

from bfinfra.kinds.cluster.gpu_operator.kind import GpuOperator
from bfinfra.sandbox.kubernetes.nvidia import Gpus

ADDRESS = "gpu_operator/gpus"
NVIDIA = "nvidia.com/v1"
A100 = Gpus(2, frozenset({""}), product="NVIDIA-A100-PCIE-40GB")
VGPU = Gpus(1, product="NVIDIA-H100-40C", vgpu=True, host_driver="580.95.02")
OURS = {"repository": "registry.example.com/nvaie"}
"""The driver of a registry of ours: NVIDIA's public one has none for vGPUs."""
LICENSED = {"token": {"file": "token.tok"}}
DRA_DRIVER = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors:
    - cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig.nvidia.com}
spec:
  selectors:
    - cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: dra-driver-nvidia-gpu-kubelet-plugin}
spec:
  selector: {matchLabels: {app: dra}}
  template:
    metadata: {labels: {app: dra}}
    spec:
      nodeSelector: {nvidia.com/gpu.present: "true"}
      initContainers: [{name: init-container, image: "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"}]
      containers:
        - name: gpus
          image: registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1
          command: [bash, -c]
          args: [gpu-kubelet-plugin -v $(LOG_VERBOSITY)]
"""
LAYOUT, STATE, NOTE = "nvidia.com/mig.config", "nvidia.com/mig.config.state", "bfinfra.io/mig"


def jwt(ends: float) -> str:
    parts = ({"alg": "RS256"}, {"exp": int(ends)}, {})
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts
    )


def made(api: Any, folder: Path, rendering: str = "gpu-operator", **fields: Any) -> Site:
    """A site with the operator, not yet applied."""
    shutil.copytree(SPECS / "manifests" / rendering, folder / "operator")
    (folder / "token.tok").write_text(jwt(time.time() + 3600))
    found = Site(folder, api, "poc")
    gpus = {"cluster": "k", "namespace": "default", "files": ["operator"], "driver": OURS, **fields}
    found.resources = {"gpu_operator": {"gpus": gpus}}
    return found


def with_dra_driver(site: Site, folder: Path) -> Site:
    """The site with NVIDIA's DRA driver and its device classes, as objects of its own."""
    (folder / "driver.yaml").write_text(DRA_DRIVER)
    own = {"cluster": "k", "namespace": "default", "files": ["driver.yaml"]}
    site.resources["manifests"] = {"driver": own}
    return site


def given(site: Site, **fields: Any) -> Site:
    """The site with other fields of its operator."""
    site.resources["gpu_operator"]["gpus"] |= fields
    return site


def policy(cluster: Any) -> Any:
    return cluster.get(NVIDIA, "ClusterPolicy", "cluster-policy")


def node(cluster: Any, name: str) -> Any:
    return cluster.get("v1", "Node", name)


def labels(cluster: Any, name: str) -> dict[str, str]:
    found: dict[str, str] = node(cluster, name)["metadata"]["labels"]
    return found


def cordoned(cluster: Any, name: str) -> bool:
    return bool(node(cluster, name)["spec"].get("unschedulable"))


def offered(cluster: Any, name: str) -> dict[str, str]:
    """The resources of NVIDIA's that a node offers."""
    every = node(cluster, name)["status"]["allocatable"]
    return {key: value for key, value in every.items() if key.startswith("nvidia.com/")}


def drivers(cluster: Any) -> dict[str, str]:
    """Node → pod of the driver."""
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["name"]
        for pod in cluster.list("v1", "Pod", "default")
        if pod["metadata"]["labels"].get("app.kubernetes.io/component") == "nvidia-driver"
    }


def work(cluster: Any, name: str, on: str, asks: str = "nvidia.com/gpu", **more: Any) -> None:
    """A pod that uses a GPU of a node, and runs."""
    container = {"name": "c", "image": "train:1", "resources": {"limits": {asks: "1"}}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": on}, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **more}, "spec": spec}
    cluster.create(pod)
    until(lambda: phase(cluster, name) == "Running")


def deployed(cluster: Any, name: str, on: str, replicas: int = 1) -> None:
    """A Deployment whose pods use GPUs of a node, and run."""
    container = {"name": "c", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": on}, "containers": [container]}
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
    }
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body})
    until(lambda: [p for p in pods_of(cluster, name) if p["status"].get("phase") == "Running"])


def pods_of(cluster: Any, app: str) -> list[Any]:
    return list(cluster.list("v1", "Pod", "default", f"app={app}"))


def phase(cluster: Any, name: str) -> str:
    found = cluster.get("v1", "Pod", name, "default")
    return str(found["status"].get("phase")) if found else ""


def names(steps: Iterable[Any]) -> list[str]:
    """The classes of steps."""
    return [type(step).__name__ for step in steps]


def killed(site: Site, monkeypatch: pytest.MonkeyPatch, at: int, *, ran: bool) -> list[str]:
    """The classes of the steps of an apply that is killed at one of them, before or after it `ran`."""

    class Killed(BaseException):
        pass

    steps: list[Any] = []
    run = GpuOperator.run

    def until_killed(kind: Any, step: Any, report: Any) -> None:
        steps.append(step)
        if ran or len(steps) < at:
            run(kind, step, report)
        if len(steps) == at:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(GpuOperator, "run", until_killed)
        site.apply()
    return names(steps)
