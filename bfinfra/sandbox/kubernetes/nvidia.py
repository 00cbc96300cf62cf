"""NVIDIA's device plug-in on a node: what it finds there, offers to the kubelet, or prints before it ends."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any

import yaml

from bfinfra.sandbox.kubernetes.objects import Object, dig

IMAGE, RESOURCE, PART = "k8s-device-plugin", "nvidia.com/gpu", "nvidia.com/mig-"
SOCKETS = "/var/lib/kubelet/device-plugins"
CODE = 1
DRIVER, PUBLIC = "nvidia-driver-ctr", "nvcr.io/nvidia/driver:"
"""The container of the operator's driver; where its drivers for whole cards are."""


@dataclass(frozen=True)
class Gpus:
    """Of a node: how many GPUs its driver sees; `runtimes`: container runtimes that give them to containers,
    "" for the default one; `licensed`: CUDA runs on them. `product`: as the driver names it; `vgpu`: they are
    vGPUs; `parts`: the resources that each is divided into, and how many of each; () for none; `profiles`:
    the same by MIG profile, such as 1g.5gb. `driver`: the driver's version, "" = none is in the machine's
    image; `host_driver`: that of the host's vGPU driver, "" = not known; `memory`: MiB of each.
    """

    count: int = 0
    runtimes: frozenset[str] = frozenset()
    licensed: bool = True
    product: str = ""
    vgpu: bool = False
    parts: tuple[tuple[str, int], ...] = ()
    profiles: tuple[tuple[str, int], ...] = ()
    driver: str = "550.54.15"
    host_driver: str = ""
    memory: int = 16384

    @property
    def divisible(self) -> bool:
        """Whether they can be divided (MIG)."""
        known = any(each in self.product.lower() for each in ("a100", "a30", "h100"))
        return known and not self.vgpu


def is_plugin(container: Object) -> bool:
    """Return whether the image is NVIDIA's device plug-in."""
    return str(container.get("image", "")).partition("@")[0].rpartition("/")[2].partition(":")[0] == IMAGE


def offered(pod: Object, container: Object, gpus: Gpus) -> dict[str, str]:
    """Return the resources that it registers at the kubelet: none where it sees no GPU."""
    if not gpus.count or not _sees(pod, gpus):
        return {}
    if gpus.parts:
        return {name: str(gpus.count * number) for name, number in gpus.parts}
    return {RESOURCE: str(gpus.count * _replicas(pod, container))}


def owned(resource: str) -> bool:
    """Return whether it is a resource that the plug-in registers."""
    return resource == RESOURCE or resource.startswith(PART)


def uses(pod: Object) -> bool:
    """Return whether a pod holds GPUs, or parts of them, of its node."""
    asked = [
        name
        for each in dig(pod, "spec", "containers", default=[])
        for what in ("limits", "requests")
        for name in dig(each, "resources", what, default={})
    ]
    ended = dig(pod, "status", "phase") in ("Succeeded", "Failed")
    return not ended and any(owned(name) for name in asked)


def last_words(pod: Object, container: Object, gpus: Gpus) -> list[str]:
    """The last lines of one that ends; none if it keeps running."""
    variables = {each["name"]: str(each.get("value", "")) for each in container.get("env") or []}
    args = [str(each) for each in container.get("args") or []]
    if (
        (gpus.count and _sees(pod, gpus))
        or variables.get("FAIL_ON_INIT_ERROR") == "false"
        or "--fail-on-init-error=false" in args
    ):
        return []
    return [
        "Starting Plugins.",
        "Loading configuration.",
        "Retrieving plugins.",
        "Failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND.",
        "If this is a GPU node, did you set the docker default runtime to `nvidia`?",
        "You can check the prerequisites at: https://github.com/NVIDIA/k8s-device-plugin#prerequisites",
        (
            "If this is not a GPU node, you should set up a toleration or nodeSelector to only deploy this "
            "plugin on GPU nodes"
        ),
        (
            "error starting plugins: error getting plugins: unable to create plugins: failed to construct "
            "resource managers: nvml init failed: ERROR_LIBRARY_NOT_FOUND"
        ),
    ]


def driver_words(container: Object, gpus: Gpus) -> list[str]:
    """The last lines of a container of the operator's driver that can't drive the node's GPUs; none if it
    runs. vGPUs take a guest driver, which NVIDIA's public registry doesn't have, no newer than the host's.
    """
    if container.get("name") != DRIVER or not gpus.vgpu:
        return []
    image = str(container.get("image", ""))
    version = image.rpartition(":")[2].partition("-")[0]
    words = [f"Installing NVIDIA driver version {version}", "Loading NVIDIA driver kernel modules..."]
    if image.startswith(PUBLIC):
        return [*words, "modprobe: ERROR: could not insert 'nvidia': No such device"]
    if gpus.host_driver and _branch(version) > _branch(gpus.host_driver):
        return [
            *words,
            "NVRM: vGPU: guest driver is incompatible with the host driver",
            "No devices were found",
        ]
    return []


def _branch(version: str) -> int:
    """580.95.05 → 580; 0 for a version that is no number."""
    first = version.partition(".")[0]
    return int(first) if first.isdigit() else 0


def _sees(pod: Object, gpus: Gpus) -> bool:
    """The runtime that its pod runs under gives it the driver's libraries."""
    return str(dig(pod, "spec", "runtimeClassName", default="")) in gpus.runtimes


def _replicas(pod: Object, container: Object) -> int:
    """Return how many times each GPU is offered, by the configuration that the pod mounts from its
    annotation.
    """
    mounted = {each.get("name") for each in container.get("volumeMounts") or []}
    for volume in dig(pod, "spec", "volumes", default=[]):
        for item in dig(volume, "downwardAPI", "items", default=[]) if volume.get("name") in mounted else ():
            name = str(dig(item, "fieldRef", "fieldPath", default="")).partition("['")[2].rstrip("']")
            config = yaml.safe_load((pod["metadata"].get("annotations") or {}).get(name, "{}"))
            shared = dig(config, "sharing", "timeSlicing", "resources", default=[])
            return next((int(each["replicas"]) for each in shared if each.get("name") == RESOURCE), 1)
    return 1


def hands_out(docker: bytes | None, containerd: bytes | None) -> frozenset[str]:
    """The runtimes that give containers the GPUs, by the configuration of docker or containerd; "" where it
    is the default one.
    """
    found = set()
    if docker is not None:
        config = _json(docker)
        found |= {name for name in config.get("runtimes", {}) if name == "nvidia"} | (
            {""} if config.get("default-runtime") == "nvidia" else set()
        )
    if containerd is not None:
        for plugin in tomllib.loads(containerd.decode(errors="replace")).get("plugins", {}).values():
            own = plugin.get("containerd", {}) if isinstance(plugin, dict) else {}
            found |= {name for name in own.get("runtimes", {}) if name == "nvidia"} | (
                {""} if own.get("default_runtime_name") == "nvidia" else set()
            )
    return frozenset(found)


def _json(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
