"""The operands of NVIDIA's GPU operator: a DaemonSet each, and the layouts that its MIG manager knows."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass

import yaml

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.objects import Object, condition, dig, name_of, owned_by, stamp

COMPONENT, DRIVER = "app.kubernetes.io/component", "nvidia-driver"
"""The label of the driver's pods, and its value."""
OPERATOR = "gpu-operator"
APPLIED = "nvidia.com/last-applied-hash"
LAYOUTS = "default-mig-parted-config"
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
SIZES = {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1, "1g.10gb": 7, "3g.40gb": 2, "7g.80gb": 1}
"""Parts that a GPU can be divided into → how many of them."""


@dataclass(frozen=True)
class Operand:
    """One DaemonSet. `part`: of a ClusterPolicy; `state`: as the operator names it; `deploy`: the end of the
    label of the nodes that have it.
    """

    part: str
    name: str
    state: str
    deploy: str

    @property
    def label(self) -> str:
        """The label of the nodes that have it."""
        return f"nvidia.com/gpu.deploy.{self.deploy}"


DRIVERS = Operand("driver", "nvidia-driver-daemonset", "state-driver", "driver")
MANAGER = Operand("migManager", "nvidia-mig-manager", "state-mig-manager", "mig-manager")
TOOLKIT = Operand(
    "toolkit", "nvidia-container-toolkit-daemonset", "state-container-toolkit", "container-toolkit"
)
OPERANDS = (
    DRIVERS,
    TOOLKIT,
    Operand("devicePlugin", "nvidia-device-plugin-daemonset", "state-device-plugin", "device-plugin"),
    Operand("dcgmExporter", "nvidia-dcgm-exporter", "state-dcgm-exporter", "dcgm-exporter"),
    MANAGER,
)
GPU_CLUSTER = "gpu-cluster"
"""The name that a GPUCluster must have."""
DRA_DRIVER = Operand("draDriver", "nvidia-dra-driver-kubelet-plugin", "state-dra-driver", "dra-driver")
VALIDATOR = Operand("draValidator", "nvidia-dra-validator", "state-dra-validation", "dra-validator")
DCGM = Operand("dcgm", "nvidia-dcgm-dra", "state-dcgm", "dcgm-dra")
EXPORTER = Operand("dcgmExporter", "nvidia-dcgm-exporter-dra", "state-dcgm-exporter", "dcgm-exporter-dra")
BY_CLAIMS = (DRA_DRIVER, DCGM, EXPORTER, VALIDATOR)
"""The operands of a GPUCluster."""
CLAIMED: dict[Operand, tuple[str, str, Object]] = {
    VALIDATOR: ("nvidia-dra-validator-gpu", "validation-gpu", {"allocationMode": "ExactCount", "count": 1}),
    DCGM: ("nvidia-dcgm-admin", "admin-gpus", {"allocationMode": "All"}),
    EXPORTER: ("nvidia-dcgm-exporter-admin", "admin-gpus", {"allocationMode": "All"}),
}
"""Operands → the template of their claims, its request, and how many GPUs that asks for."""
CLIENTS = ("device-plugin", "dcgm-exporter")
"""Operands that hold GPUs, and are taken off a node while its driver or its layout changes."""
HOLDERS = tuple(each.name for each in OPERANDS if each.deploy in CLIENTS)
"""The names of their DaemonSets."""


def enabled(policy: Object, operand: Operand) -> bool:
    """Return whether a ClusterPolicy has the operand; each is on unless it is switched off."""
    if operand is DRIVERS and dig(policy, "spec", "driver", "useNvidiaDriverCRD"):
        return False
    return bool(dig(policy, "spec", operand.part, "enabled", default=True))


def daemon_set(policy: Object, operand: Operand, namespace: str) -> Object:
    """The operand's DaemonSet."""
    if operand is DRIVERS:
        return driver_set(policy, dig(policy, "spec", "driver", default={}), operand.name, namespace)
    container: Object = {"name": operand.name, "image": f"operands/{operand.name}"}
    if operand.part == "devicePlugin":
        container["image"] = "nvcr.io/nvidia/k8s-device-plugin:v0.19.0"
    return set_of(policy, operand.name, namespace, operand.label, {"containers": [container]})


def driver_set(owner: Object, settings: Object, name: str, namespace: str) -> Object:
    """The driver's DaemonSet, of a ClusterPolicy or of an NVIDIADriver."""
    repository = settings.get("repository") or "nvcr.io/nvidia"
    image = f"{repository}/{settings.get('image') or 'driver'}:{settings.get('version') or '580.95.05'}"
    container: Object = {"name": "nvidia-driver-ctr", "image": f"{image}-ubuntu24.04"}
    pod: Object = {
        "initContainers": [{"name": "k8s-driver-manager", "image": "operands/k8s-driver-manager"}],
        "containers": [container],
        "nodeSelector": dict(settings.get("nodeSelector") or {}),
    }
    if secret := dig(settings, "licensingConfig", "secretName"):
        path = "/drivers/ClientConfigToken/client_configuration_token.tok"
        container["volumeMounts"] = [
            {"name": "licensing-config", "mountPath": path, "subPath": path.rpartition("/")[2]}
        ]
        pod["volumes"] = [{"name": "licensing-config", "secret": {"secretName": secret}}]
    if settings.get("imagePullSecrets"):
        pod["imagePullSecrets"] = [{"name": each} for each in settings["imagePullSecrets"]]
    found = set_of(owner, name, namespace, DRIVERS.label, pod)
    found["spec"]["updateStrategy"] = {"type": "OnDelete"}
    found["spec"]["template"]["metadata"]["labels"][COMPONENT] = DRIVER
    return found


def layouts(policy: Object, namespace: str) -> Object:
    """The ConfigMap with the layouts that can be asked for by label."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": LAYOUTS, "namespace": namespace, "ownerReferences": [owned_by(policy)]},
        "data": {"config.yaml": _default_layouts()},
    }


@functools.cache
def _default_layouts() -> str:
    known: Object = {"all-disabled": [{"devices": "all", "mig-enabled": False}]}
    for size, number in SIZES.items():
        known[f"all-{size}"] = [{"devices": "all", "mig-enabled": True, "mig-devices": {size: number}}]
    mixed = {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
    known["all-balanced"] = [{"devices": "all", "mig-enabled": True, "mig-devices": mixed}]
    return str(yaml.safe_dump({"version": "v1", "mig-configs": known}))


@functools.lru_cache(maxsize=8)
def _loaded(text: str) -> Object:
    """What is in a ConfigMap with layouts, which its manager reads for each node."""
    return yaml.safe_load(text) or {}


def profiles(config: Object | None, layout: str) -> tuple[tuple[str, int], ...] | None:
    """The parts that a GPU has in a layout, and how many of each; () for one that is not divided; None for a
    layout that the ConfigMap doesn't have.
    """
    found = dig(_loaded(dig(config, "data", "config.yaml", default="{}")), "mig-configs", layout)
    if found is None:
        return None
    devices = dig(found, 0, "mig-devices", default={}) if dig(found, 0, "mig-enabled") else {}
    return tuple(devices.items())


def parts(divided: tuple[tuple[str, int], ...], strategy: str) -> tuple[tuple[str, int], ...]:
    """The resources that a divided GPU offers, and how many of each; () for one that is not divided."""
    if strategy == "mixed" or not divided:
        return tuple((f"nvidia.com/mig-{size}", number) for size, number in divided)
    return (("nvidia.com/gpu", sum(number for _, number in divided)),)


def dra_set(owner: Object, namespace: str, *, domains: bool) -> Object:
    """The DaemonSet of NVIDIA's DRA driver. `domains`: with the driver of compute domains."""
    spec = dig(owner, "spec", "draDriver", default={})
    repository, image = (
        spec.get("repository") or "nvcr.io/nvidia",
        spec.get("image") or "dra-driver-nvidia-gpu",
    )
    pod: Object = {
        "initContainers": [{"name": "driver-validation", "image": "operands/gpu-operator"}],
        "containers": [
            {
                "name": name,
                "image": f"{repository}/{image}:{spec.get('version') or 'v0.5.0'}",
                "command": ["bash", "-c"],
                "args": [f"exec {program} -v 4"],
            }
            for name, program in (
                ("gpus", "gpu-kubelet-plugin"),
                ("compute-domains", "compute-domain-kubelet-plugin"),
            )
            if name == "gpus" or domains
        ],
    }
    if spec.get("imagePullSecrets"):
        pod["imagePullSecrets"] = [{"name": each} for each in spec["imagePullSecrets"]]
    return set_of(owner, DRA_DRIVER.name, namespace, DRA_DRIVER.label, pod)


def digest(thing: Object) -> str:
    """The digest of what the operator wants of an object."""
    return hashlib.sha256(json.dumps(thing["spec"], sort_keys=True).encode()).hexdigest()[:10]


def set_of(owner: Object, name: str, namespace: str, label: str, pod: Object) -> Object:
    """A DaemonSet of the operator's on the nodes with a label."""
    labels = {"app": name}
    spec = {**pod, "tolerations": TOLERATED, "nodeSelector": {**pod.get("nodeSelector", {}), label: "true"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owned_by(owner)]},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": dict(labels)}, "spec": spec},
        },
    }


def conditions(now: float, *, ready: bool, reason: str, message: str) -> list[Object]:
    """The two conditions in which the operator says how an object of its own is."""
    when = stamp(now)
    good, bad = (reason, message) if ready else ("Error", ""), ("Ready", "") if ready else (reason, message)
    return [
        # with an empty message too, which the definitions require
        {**condition("Ready", status=ready, when=when, reason=good[0]), "message": good[1]},
        {**condition("Error", status=not ready, when=when, reason=bad[0]), "message": bad[1]},
    ]


def say(cluster: Cluster, thing: Object, status: Object) -> None:
    """Write a status, unless it says the same already, at another time."""
    if _timeless(thing.get("status") or {}) != _timeless(status):
        cluster.set_status(thing, status, OPERATOR)


def _timeless(status: Object) -> Object:
    found = [
        {name: value for name, value in each.items() if name != "lastTransitionTime"}
        for each in status.get("conditions") or []
    ]
    return {**status, "conditions": found}


def is_driver(pod: Object) -> bool:
    """Return whether it is a pod of the driver."""
    return bool(dig(pod, "metadata", "labels", COMPONENT) == DRIVER)


def version_of(pod: Object) -> str:
    """The version of a driver, from its pod's image: …/driver:580.95.05-ubuntu24.04."""
    image = str(dig(pod, "spec", "containers", 0, "image", default=""))
    return image.rpartition(":")[2].partition("-")[0]


def on(pod: Object) -> str:
    """The node of a pod."""
    return str(dig(pod, "spec", "nodeName", default=""))


def older(policies: list[Object]) -> list[Object]:
    """ClusterPolicies, that which the operator follows first."""
    return sorted(policies, key=lambda each: (each["metadata"]["creationTimestamp"], name_of(each)))
