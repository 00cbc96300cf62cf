"""NVIDIA's DRA driver on a node: the devices that its plug-ins publish, after deviceinfo.go and mig.go of the
driver's 0.5.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from bfinfra.sandbox.kubernetes.mig_profiles import Profile, placed
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.nvidia_smi import cuda
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, uid_of

GPU, COMPUTE_DOMAIN = "gpu.nvidia.com", "compute-domain.nvidia.com"
PROGRAMS = {"gpu-kubelet-plugin": GPU, "compute-domain-kubelet-plugin": COMPUTE_DOMAIN}
"""The programs of its containers → the driver that each is."""
FAMILIES = {
    "V100": ("Volta", "7.0.0"),
    "T4": ("Turing", "7.5.0"),
    "A100": ("Ampere", "8.0.0"),
    "A30": ("Ampere", "8.0.0"),
    "A10": ("Ampere", "8.6.0"),
    "A40": ("Ampere", "8.6.0"),
    "L4": ("Ada", "8.9.0"),
    "L40": ("Ada", "8.9.0"),
    "L40S": ("Ada", "8.9.0"),
    "H100": ("Hopper", "9.0.0"),
    "H200": ("Hopper", "9.0.0"),
    "B200": ("Blackwell", "10.0.0"),
}
"""Cards → architecture and compute capability."""


def drivers_of(pod: Object) -> set[str]:
    """The DRA drivers that a pod's containers are."""
    words = [
        str(each)
        for container in dig(pod, "spec", "containers", default=[])
        for part in ("command", "args")
        for each in container.get(part) or ()
    ]
    return {
        driver
        for program, driver in PROGRAMS.items()
        if any(program in each and program in each.split() for each in words)
    }


def gpu_uuid(node: str, number: int) -> str:
    """The UUID of a GPU of a node."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{node} {number}')}"


def devices(driver: str, node: str, gpus: Gpus) -> list[Object]:
    """What a driver publishes of a node: each GPU, or in its place the parts into which it is divided."""
    if driver == COMPUTE_DOMAIN:
        return [
            {"name": f"{kind}-0", "attributes": {"type": {"string": kind}, "id": {"int": 0}}}
            for kind in ("channel", "daemon")
        ]
    found = []
    for number in range(gpus.count):
        parts = placed(gpus.product, dict(gpus.profiles)) or []
        found += [_part(node, number, gpus, each) for each in parts] or [_gpu(node, number, gpus)]
    return found


def _gpu(node: str, number: int, gpus: Gpus) -> Object:
    own = {"type": {"string": "gpu"}, "uuid": {"string": gpu_uuid(node, number)}}
    return {
        "name": f"gpu-{number}",
        "attributes": {**own, **_card(number, gpus)},
        "capacity": {"memory": {"value": _memory(gpus.memory)}},
    }


def _part(node: str, number: int, gpus: Gpus, part: tuple[Profile, int]) -> Object:
    """A part that is there before anybody claims it (static MIG)."""
    profile, start = part
    card = gpu_uuid(node, number)
    text = {
        "type": "mig",
        "parentUUID": card,
        "profile": profile.name,
        "uuid": f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{card} {profile.name} {start}')}",
    }
    counts = {
        "multiprocessors": profile.multiprocessors,
        "copyEngines": profile.copy_engines,
        "decoders": profile.decoders,
        "encoders": 0,
        "jpegEngines": profile.jpeg,
        "ofaEngines": profile.ofa,
        **{f"memorySlice{slot}": 1 for slot in range(start, start + profile.size)},
    }
    short = profile.name.replace(".", "").replace("+", "-")
    return {
        "name": f"gpu-{number}-mig-{short}-{profile.number}-{start}",
        "attributes": {**{name: {"string": value} for name, value in text.items()}, **_card(number, gpus)},
        "capacity": {
            **{name: {"value": str(count)} for name, count in counts.items()},
            "memory": {"value": _memory(profile.memory)},
        },
    }


def _card(number: int, gpus: Gpus) -> Object:
    """The attributes of a card, which its parts have too."""
    card = gpus.product.replace("-", " ").replace("NVIDIA ", "", 1).replace("Tesla ", "").split(" ")[0]
    architecture, capability = FAMILIES.get(card, ("Unknown", "0.0.0"))
    text: Mapping[str, str] = {
        "productName": gpus.product.replace("-", " ", 1),
        "brand": "Nvidia",
        "architecture": architecture,
        "resource.kubernetes.io/pciBusID": f"0000:{number + 2:02x}:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
    }
    versions = {
        "cudaComputeCapability": capability,
        "driverVersion": _semantic(gpus.driver),
        "cudaDriverVersion": _semantic(cuda(gpus.driver)),
    }
    return {
        **{name: {"string": value} for name, value in text.items()},
        **{name: {"version": value} for name, value in versions.items()},
    }


def _memory(mib: int) -> str:
    gib, rest = divmod(mib, 1024)
    return f"{mib}Mi" if rest else f"{gib}Gi"


def _semantic(version: str) -> str:
    """580.95.05 → 580.95.5"""
    numbers = [int(each) if each.isdigit() else 0 for each in version.split(".")]
    return ".".join(map(str, [*numbers, 0, 0][:3]))


def resource_slice(driver: str, node: Object, found: list[Object]) -> Object:
    """The slice that a driver publishes of a node's devices."""
    name = name_of(node)
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(node), "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": f"00000-{driver}-{name}-", "ownerReferences": [owner]},
        "spec": {
            "driver": driver,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": found,
        },
    }
