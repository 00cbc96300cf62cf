"""The desired state of a cluster made by kubeadm."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import TOOLKIT
from bfinfra.model import conflict, resource
from bfinfra.model.choice import each_once
from bfinfra.model.conflict import Conflict, Inner, Spot, Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key, Ref
from bfinfra.model.sources import LocalFile

API = 6443  # port of a control plane


def _cidr(value: str) -> str:
    return str(ipaddress.ip_network(value))


Cidr = Annotated[str, AfterValidator(_cidr)]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class Spec(resource.Spec):
    """The desired state of one cluster."""

    awaits: ClassVar = {
        "packages": (
            "download kubeadm, kubelet and kubectl, and what they need, from Kubernetes' package "
            "repository, or from your mirror"
        ),
        "cni": "download the manifest of the pod network",
    }

    control_plane: Annotated[str, Ref("linux_host")]
    """The machine of its control plane: one, as in the guide."""
    workers: tuple[Annotated[str, Ref("linux_host")], ...] = ()
    """The machines of its workers. All machines need a container runtime."""
    version: Annotated[str, StringConstraints(pattern=r"^v1\.\d{1,2}\.\d{1,3}$")]
    """Version of Kubernetes, such as v1.20.15; that of the packages."""
    endpoint: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,252}:\d{1,5}$")] | None
    ) = None
    """Address of its API for clients, host:port; empty = the control plane's address."""
    pod_cidr: Cidr = "10.244.0.0/16"
    """Addresses of pods, as in the manifest of cni."""
    service_cidr: Cidr = "10.96.0.0/12"
    """Addresses of services."""
    cni: LocalFile
    """Manifest of the pod network, such as Calico's or Flannel's."""
    packages: tuple[LocalFile, ...] = ()
    """The .deb or .rpm files of kubeadm, kubelet and kubectl with everything that they need; empty = they are
    installed already.
    """
    cri_socket: Annotated[str, StringConstraints(pattern=r"^(unix://)?/[A-Za-z0-9._/-]+$")] | None = None
    """The container runtime's socket, if a machine has several runtimes."""
    swap: Literal["off", "leave"] = "off"
    """Switch swap off, now and in /etc/fstab, as kubelets require."""
    modules: tuple[Word, ...] = ("overlay", "br_netfilter")
    """Kernel modules to load, now and at each start."""
    sysctl: dict[Word, Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 ._-]{1,100}$")]] = Field(
        default_factory=lambda: {
            "net.bridge.bridge-nf-call-iptables": "1",
            "net.bridge.bridge-nf-call-ip6tables": "1",
            "net.ipv4.ip_forward": "1",
        }
    )
    """Settings of the kernel."""
    ignore_preflight: tuple[Word, ...] = ()
    """Preflight checks of kubeadm that may fail, such as NumCPU."""
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (10250,)
    """TCP ports of a node that other nodes must reach, for `bfinfra doctor`. Calico needs 179 in addition."""
    drain: Annotated[int, Field(ge=1, le=86400)] = 300
    """Seconds that the pods of a worker may take to end when it leaves."""

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        each_once("hosts", self.hosts)
        if ipaddress.ip_network(self.pod_cidr).overlaps(ipaddress.ip_network(self.service_cidr)):
            written = "service_cidr" if "service_cidr" in self.model_fields_set else "pod_cidr"
            raise FieldError("pod_cidr and service_cidr overlap", written)
        if {PurePath(each.text).suffix for each in self.packages} - {".deb"} and {
            PurePath(each.text).suffix for each in self.packages
        } - {".rpm"}:
            raise FieldError("packages are all .deb or all .rpm", "packages")
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its machines, each of which is a node of one cluster."""
        places = ("control_plane", *(f"workers.{index}" for index in range(len(self.workers))))
        yield from (
            conflict.thing(place, f"the node {host}", "node")
            for place, host in zip(places, self.hosts, strict=True)
        )

    def ways(self, addresses: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, int]]]:
        """The connections from its workers to its API, and between its nodes."""
        host, _, port = (self.endpoint or f"{addresses.get(self.control_plane, '')}:{API}").rpartition(":")
        for each in self.hosts:
            if each != self.control_plane:
                yield each, (host, int(port))
            for other in self.hosts:
                if other != each and other in addresses:
                    yield from ((each, (addresses[other], number)) for number in self.ports)

    def inside(self) -> Iterator[Inner]:
        """Networks of pods and services."""
        yield from (Inner(field, getattr(self, field), nodes=True) for field in ("pod_cidr", "service_cidr"))

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """A machine that the cluster has under two names."""
        for key, spec in mine.items():
            first_at: dict[tuple[str, int], str] = {}
            for index, host in enumerate(spec.hosts):
                machine = site.get(Key("linux_host", host))
                if (
                    machine is not None
                    and (first := first_at.setdefault((machine.address, machine.port), host)) != host
                ):
                    yield Conflict(
                        Spot(key, f"workers.{index - 1}"),
                        f"{host} and {first} are the same machine",
                        (Spot(Key("linux_host", host), "address"), Spot(Key("linux_host", first), "address")),
                        next="leave one of them out",
                    )

    @property
    def hosts(self) -> tuple[str, ...]:
        """All its machines, the control plane's first."""
        return (self.control_plane, *self.workers)

    @property
    def form(self) -> str:
        """`deb` or `rpm`; "" without packages."""
        return PurePath(self.packages[0].text).suffix.removeprefix(".") if self.packages else ""

    def sysctl_text(self) -> str:
        """The text of its file with kernel settings."""
        return "".join(f"{name} = {value}\n" for name, value in self.sysctl.items())

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Container runtimes that no other resource restarts later."""
        return (Capability(TOOLKIT, f"linux_host/{each}") for each in self.hosts)
