"""The desired state of a cluster of the vSphere Kubernetes Service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, model_validator

from bfinfra.kinds.class_gpus import told_by_file
from bfinfra.kinds.cluster_locator import DnsLabel
from bfinfra.kinds.supervisor.base import in_namespace, networks
from bfinfra.kinds.supervisor.base.networks import Cidr
from bfinfra.kinds.supervisor.base.pools import NodeDemand, Pool, demands, surge_of
from bfinfra.model import resource
from bfinfra.model.conflict import Conflict, Inner, Spot
from bfinfra.model.errors import FieldError
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key, Ref
from bfinfra.model.resource import Part
from bfinfra.model.units import Bytes

PUBLIC = "vmware-system-vks-public"
OWN_FIELDS = {"vmClass": "vm_class", "storageClass": "storage_class", "volumes": "volumes"}
"""Variables of classes that have fields of their own here."""
OS = re.compile(r"([a-z]+)(?:-(\d+(?:\.\d+)*))?")
TAINT = r"^[A-Za-z0-9./_-]+(=[A-Za-z0-9._-]*)?:(NoSchedule|PreferNoSchedule|NoExecute)$"

ClassName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", max_length=253)]
Version = Annotated[str, StringConstraints(pattern=r"^v\d+\.\d+(\.\d+([-+][0-9A-Za-z.+-]+)?)?$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Taint = Annotated[str, StringConstraints(pattern=TAINT)]
Nodes0 = Annotated[int, Field(ge=0, le=1000)]
Variables = dict[str, JsonValue]


def _odd(count: int) -> int:
    if count not in (1, 3, 5):
        raise ValueError("a control plane has 1, 3 or 5 nodes")
    return count


def _os(text: str) -> str:
    if "=" not in text and not OS.fullmatch(text):
        raise ValueError(
            f"{text} is not an operating system such as ubuntu-24.04, photon-5 or os-name=ubuntu"
        )
    return text


def _share(value: int | str) -> int | str:
    if isinstance(value, str) and value.isdigit():
        return int(value)
    if isinstance(value, str) and not re.fullmatch(r"\d{1,3}%", value):
        raise ValueError(f"{value} is neither a number of nodes nor a share of them such as 25%")
    return value


def _not_own(variables: Variables) -> Variables:
    for name, field in OWN_FIELDS.items():
        if name in variables:
            raise ValueError(f"{name} is a field of its own: write {field}")
    return variables


Os = Annotated[str, AfterValidator(_os)]
Share = Annotated[int | str, AfterValidator(_share)]
Others = Annotated[Variables, AfterValidator(_not_own)]


class Volume(Part):
    """A disk of its own for a folder of every node."""

    mount_path: Annotated[str, StringConstraints(pattern="^/")]
    """The folder, such as /var/lib/containerd."""
    capacity: Annotated[Bytes, Field(gt=0)]
    """The size, such as 200GiB."""


class Nodes(Part):
    """Settings of some nodes that differ from the cluster's."""

    vm_class: DnsLabel | None = None
    """VM class, instead of the cluster's; the supervisor namespace must offer it."""
    storage_class: Text | None = None
    """Storage class, instead of the cluster's."""
    volumes: dict[DnsLabel, Volume] | None = None
    """Disks, instead of the cluster's; `{}`: none."""
    os: Os | None = None
    """Operating system, instead of the cluster's."""
    variables: Others = Field(default_factory=dict)
    """Values of the class's variables, instead of the cluster's."""


class ControlPlane(Nodes):
    """The control plane's nodes."""

    count: Annotated[int, AfterValidator(_odd), Field(json_schema_extra={"enum": [1, 3, 5]})]
    """Number of nodes: 1, or 3 or 5 for high availability."""


class Autoscale(Part):
    """The limits for the cluster's autoscaler."""

    min: Nodes0
    """The fewest nodes; 0 if a pool may be empty."""
    max: Annotated[int, Field(ge=1, le=1000)]
    """The most nodes."""
    gpus: Annotated[int, Field(ge=1, le=64)] | None = None
    """GPUs of each node (nvidia.com/gpu). Without it the autoscaler starts no node of an empty pool for pods
    that ask for GPUs. The nodes get the label cluster-api/accelerator: it waits for their GPUs.
    """

    @model_validator(mode="after")
    def _check(self) -> Autoscale:
        if self.min > self.max:
            raise FieldError(f"{self.min} is more than max, {self.max}", "min", "write no more than max")
        return self


class Rollout(Part):
    """How nodes are replaced."""

    max_surge: Share = 1
    """How many new nodes may exist before old ones are deleted: a number, or a share such as 25%; 0 if no GPU
    is spare.
    """
    max_unavailable: Share = 0
    """How many nodes may be missing meanwhile: a number, or a share such as 25%."""

    @model_validator(mode="after")
    def _check(self) -> Rollout:
        if all(value in (0, "0%") for value in (self.max_surge, self.max_unavailable)):
            raise FieldError(
                "with max_surge 0 it must be at least 1, or no node is ever replaced",
                "max_unavailable",
                "write max_unavailable: 1",
            )
        return self


class Workers(Nodes):
    """One pool of workers: either `count` or `autoscale`."""

    count: Nodes0 | None = None
    """Number of nodes."""
    autoscale: Autoscale | None = None
    """Let the autoscaler choose the number of nodes, which is then never drift."""
    worker_class: DnsLabel = "node-pool"
    """The cluster class's name for such nodes."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of its nodes, in addition to those in the variable `node`."""
    taints: tuple[Taint, ...] = ()
    """Taints of its nodes, such as nvidia.com/gpu:NoSchedule or team=a:NoExecute."""
    zone: Text | None = None
    """vSphere zone of its nodes."""
    rollout: Rollout | None = None
    """How its nodes are replaced; default the supervisor's way: one new node before an old one is deleted."""

    @model_validator(mode="after")
    def _check(self) -> Workers:
        if self.count is not None and self.autoscale is not None:
            raise FieldError(
                "the pool has autoscale, too; the autoscaler would undo the count",
                "count",
                "write only one of them",
            )
        if self.count is None and self.autoscale is None:
            raise ValueError("write how many nodes, or autoscale: {min: …, max: …}")
        return self

    @property
    def most(self) -> int:
        """The most nodes that it can have."""
        return self.autoscale.max if self.autoscale else self.count or 0

    @property
    def least(self) -> int:
        """The fewest nodes that it must have."""
        return self.autoscale.min if self.autoscale else self.count or 0


class Network(Part):
    """The cluster's own networks. The supervisor chooses what is left out. They can't change later."""

    pods: tuple[Cidr, ...] = ()
    """Networks of the pods; each node takes a /24 of it."""
    services: tuple[Cidr, ...] = ()
    """Networks of the services."""
    service_domain: str | None = None
    """DNS domain of the services."""


class Spec(resource.Spec):
    """The desired state of one cluster."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE

    namespace: Annotated[str, Ref("supervisor_namespace")]
    """Supervisor namespace that it is in."""
    cluster_class: ClassName
    """ClusterClass, such as builtin-generic-v3.7.0. If a supervisor replaces it by the newest that fits,
    bfinfra notes that; it is no drift.
    """
    class_namespace: DnsLabel = PUBLIC
    """Namespace of its class; before VKS 3.4 it was the supervisor namespace itself."""
    version: Version
    """Kubernetes version: v1.34, v1.34.2 or in full. The full version that it gets is noted, and
    is no drift.
    """
    os: Os | None = None
    """Operating system of the nodes: ubuntu-24.04, photon-5, or labels of the image: os-name=ubuntu,
    os-arch=amd64.
    """
    vm_class: DnsLabel
    """VM class of the nodes; the supervisor namespace must offer it."""
    storage_class: Text
    """Storage class of the nodes' disks; the supervisor namespace must offer it."""
    volumes: dict[DnsLabel, Volume] = Field(default_factory=dict)
    """Name → a disk of its own for a folder."""
    variables: Others = Field(default_factory=dict)
    """The class's other variables, which bfinfra checks against the class's schema. No secrets: they would be
    readable in the object.
    """
    network: Network = Field(default_factory=Network)
    """The cluster's own networks."""
    control_plane: ControlPlane
    """The control plane's nodes."""
    workers: dict[DnsLabel, Workers] = Field(default_factory=dict)
    """Pool → its nodes."""

    def inside(self) -> Iterator[Inner]:
        """Its networks of pods and services, if they are written."""
        return networks.inside(self.network)

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """VM classes and storage classes that its namespace no longer offers, as the file has it; and what
        the autoscaler is told of GPUs.
        """
        yield from in_namespace.conflicts(mine, site)
        for key, spec in mine.items():
            if isinstance(spec, Spec):
                yield from untold_gpus(key, spec, lambda name: told_by_file(name, site))

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The classes of its nodes, and the hosts that they can be on."""
        return in_namespace.requires(self, site)

    def needs(self, key: Key) -> Iterator[NodeDemand]:
        """Its nodes, as far as they may take vGPUs."""
        yield from demands(key, self.namespace, self.pools()[:1])
        for name, nodes in self.workers.items():
            yield NodeDemand(
                Spot(key, f"workers.{name}.vm_class"),
                self.namespace,
                nodes.vm_class or self.vm_class,
                nodes.most,
                nodes.least,
                surge_of(nodes.rollout.max_surge if nodes.rollout else 1, nodes.most),
            )

    def roles(self) -> dict[str, Nodes]:
        """Dotted field → the nodes there, the control plane's first."""
        return {"control_plane": self.control_plane} | {
            f"workers.{name}": nodes for name, nodes in self.workers.items()
        }

    @property
    def storage(self) -> dict[str, str]:
        """Dotted field → every storage class that the spec names."""
        found = {f"{role}.storage_class": nodes.storage_class for role, nodes in self.roles().items()}
        return {"storage_class": self.storage_class, **{at: name for at, name in found.items() if name}}

    @property
    def vm_classes(self) -> dict[str, str]:
        """Dotted field → every VM class that the spec names."""
        found = {f"{role}.vm_class": nodes.vm_class for role, nodes in self.roles().items()}
        return {"vm_class": self.vm_class, **{at: name for at, name in found.items() if name}}

    @property
    def systems(self) -> dict[str, str]:
        """Dotted field → every operating system that the spec names."""
        found = {"os": self.os} | {f"{role}.os": nodes.os for role, nodes in self.roles().items()}
        return {at: name for at, name in found.items() if name}

    def pools(self) -> tuple[Pool, ...]:
        """Its nodes, the control plane's first; an autoscaled pool counts with its most nodes."""
        counts = {
            "control_plane": self.control_plane.count,
            **{f"workers.{name}": nodes.most for name, nodes in self.workers.items()},
        }
        return tuple(
            Pool(
                role,
                counts[role],
                nodes.vm_class or self.vm_class,
                nodes.storage_class or self.storage_class,
                sum(
                    volume.capacity
                    for volume in (self.volumes if nodes.volumes is None else nodes.volumes).values()
                ),
            )
            for role, nodes in self.roles().items()
        )


def untold_gpus(key: Key, spec: Spec, gpus: Callable[[str], int | None]) -> Iterator[Conflict]:
    """Autoscaled pools with another number of GPUs than their VM class has, and empty ones without one.
    `gpus`: how many a VM class has, None if that isn't known.
    """
    for name, nodes in spec.workers.items():
        own = Key("vm_class", nodes.vm_class or spec.vm_class)
        scale, has = nodes.autoscale, gpus(own.name)
        if scale is None or has is None or has == (scale.gpus or 0):
            continue
        at = f"workers.{name}.autoscale"
        if scale.gpus is not None:
            what = f"each node has {has} GPUs, not {scale.gpus}"
            yield Conflict(Spot(key, f"{at}.gpus"), what, (Spot(own),), next=f"write {has}" if has else "")
        elif scale.min == 0:
            yield Conflict(
                Spot(key, at),
                "the autoscaler starts no node of the empty pool for pods that ask for GPUs",
                (Spot(own),),
                why="an empty pool tells it nothing of GPUs",
                next=f"write gpus: {has}",
                stops=False,
            )


def selector(os: str) -> str:
    """`ubuntu-24.04` → `os-name=ubuntu,os-version=24.04`, the labels of an image."""
    if "=" in os:
        return ",".join(part.strip() for part in os.split(","))
    found = OS.fullmatch(os)
    assert found is not None
    return f"os-name={found[1]}" + (f",os-version={found[2]}" if found[2] else "")


def system(selector_text: str) -> str:
    """The labels of an image as a site writes them: the reverse of `selector`."""
    labels = dict(part.strip().partition("=")[::2] for part in selector_text.split(",") if part.strip())
    if set(labels) <= {"os-name", "os-version"} and "os-name" in labels:
        short = "-".join(filter(None, (labels["os-name"], labels.get("os-version"))))
        if selector(short) == ",".join(f"{name}={value}" for name, value in labels.items()):
            return short
    return selector_text
