"""A world outside of vCenter: Linux machines, Kubernetes clusters, registries, images and files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bfinfra.sandbox.reading import BadWorld, Bytes


@dataclass(frozen=True)
class Registry:
    """An image registry that asks for credentials."""

    username: str
    """The user that may pull images."""
    password: Any = field(repr=False)
    """This user's password: a text, {env: NAME} or {generate: password}."""


@dataclass(frozen=True)
class KubernetesCluster:
    """A cluster outside of supervisors."""

    address: str
    """host:port of its API."""
    version: str = "v1.27.3"
    """Its Kubernetes version."""
    nodes: int = 1
    """Number of its nodes, where neither kubeadm nor machines is given."""
    gpus: int = 0
    """GPUs of each node. Driver and runtime are ready; pods get GPUs where a device plug-in runs."""
    gpu_product: str = ""
    """The GPUs' name as their driver writes it, such as NVIDIA A100-PCIE-40GB. A30, A100 and H100 can be
    divided (MIG).
    """
    token: Any = field(default_factory=lambda: {"generate": "password"}, repr=False)
    """Its administrator's token: a text, {env: NAME} or {generate: password}."""
    kubeadm: str = ""
    """The Linux machine on which `kubeadm init` starts the cluster. Its nodes are the machines that join,
    with the GPUs that they have.
    """
    machines: tuple[str, ...] = ()
    """The Linux machines that are its nodes, for a cluster that runs already."""
    kubelet_folders: Mapping[str, str] = field(default_factory=dict)
    """The folder of the kubelet, where that is not /var/lib/kubelet: name of a node, or a pattern such as
    gpu-*, → folder.
    """

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[^:/\s]+:\d{1,5}", self.address):
            raise BadWorld(f"address {self.address!r} is not of the form host:port")
        if not re.fullmatch(r"v1\.\d+\.\d+.*", self.version):
            raise BadWorld(f"version {self.version!r} is not of the form v1.27.3")
        if self.nodes < 1:
            raise BadWorld("nodes is less than 1")


@dataclass(frozen=True)
class LinuxMachine:
    """A Linux machine with SSH."""

    address: str
    """Its host name or IP address."""
    port: int = 22
    """Port of SSH."""
    os: str = "ubuntu"
    """Its distribution, as ID in /etc/os-release."""
    version: str = "20.04"
    """Version of the distribution, as VERSION_ID in /etc/os-release."""
    users: tuple[str, ...] = ("root",)
    """Users that may log in, with the key that a file with `make: ssh_key` holds."""
    password: Any = field(default=None, repr=False)
    """A password for its users besides the key: a text, {env: NAME} or {generate: password}."""
    gpus: tuple[Bytes, ...] = ()
    """The memory of each of its GPUs, such as [16GiB]."""
    services: tuple[str, ...] = ()
    """systemd units that run on it from the start, such as docker.service."""


@dataclass(frozen=True)
class Workload:
    """The behaviour of the containers of an image."""

    output: str | None = None
    """What a container prints. Without it, what this type of image prints."""
    seconds: float | None = None
    """Seconds that a container runs. Without it, the duration `workload`."""
    exit_code: int = 0
    """Its exit code."""


@dataclass(frozen=True)
class File:
    """A file that the site names, made by the sandbox."""

    make: str
    """What makes the file, see Files."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the maker needs to know, see Files."""
