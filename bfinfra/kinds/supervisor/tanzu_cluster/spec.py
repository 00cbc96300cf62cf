"""The desired state of a Tanzu Kubernetes cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bfinfra.kinds.cluster_locator import DnsLabel
from bfinfra.kinds.supervisor.base import in_namespace, networks
from bfinfra.kinds.supervisor.base.networks import Cidr
from bfinfra.kinds.supervisor.base.pools import NodeDemand, Pool, demands
from bfinfra.model import resource
from bfinfra.model.conflict import Conflict, Inner
from bfinfra.model.errors import FieldError
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key, Ref
from bfinfra.model.resource import Part
from bfinfra.model.sources import LocalFile
from bfinfra.model.units import Bytes

Version = Annotated[str, StringConstraints(pattern=r"^v\d+\.\d+(\.\d+([-+][0-9A-Za-z.+-]+)?)?$")]


def _odd(count: int) -> int:
    if count not in (1, 3):
        raise ValueError("a control plane has 1 or 3 nodes")
    return count


V1ALPHA1, V1ALPHA3, V1BETA1 = (
    "run.tanzu.vmware.com/v1alpha1",
    "run.tanzu.vmware.com/v1alpha3",
    "cluster.x-k8s.io/v1beta1",
)
CLUSTER_CLASS = "tanzukubernetescluster"


def _old(name: str) -> str:
    if "." in name:
        raise ValueError(f"{name} is a class of the vSphere Kubernetes Service: write a vks_cluster")
    if not re.fullmatch(DNS_LABEL, name):
        raise ValueError(f"{name} is not the name of a class: {DNS_LABEL_RULE}")
    return name


OldClass = Annotated[str, AfterValidator(_old)]


class Volume(Part):
    """A disk of its own for a folder of every node."""

    mount_path: Annotated[str, StringConstraints(pattern="^/")]
    """The folder, such as /var/lib/containerd."""
    capacity: Annotated[Bytes, Field(gt=0)]
    """The size, such as 50GiB."""


class Nodes(Part):
    """Nodes that are alike."""

    vm_class: DnsLabel
    """VM class; the supervisor namespace must offer it."""
    storage_class: str
    """Storage class of the nodes' disks; the supervisor namespace must offer it."""
    volumes: dict[DnsLabel, Volume] = Field(default_factory=dict)
    """Name → a disk of its own for a folder."""


class ControlPlane(Nodes):
    """The control plane's nodes."""

    count: Annotated[int, AfterValidator(_odd), Field(json_schema_extra={"enum": [1, 3]})]
    """Number of nodes: 1, or 3 for high availability."""


class Workers(Nodes):
    """One pool of workers."""

    count: Annotated[int, Field(ge=0, le=150)]
    """Number of nodes, 0 to 150."""


class Network(Part):
    """The cluster's own networks. The supervisor chooses what is left out. They can't change later."""

    cni: Literal["antrea", "calico", "antrea-nsx-routed"] | None = None
    """Network plug-in."""
    pods: tuple[Cidr, ...] = ()
    """Networks of the pods."""
    services: tuple[Cidr, ...] = ()
    """Networks of the services."""
    service_domain: str | None = None
    """DNS domain of the services."""


class FromRegistry(Part):
    """The authority of an embedded registry of this site, as vCenter reports it."""

    registry: Annotated[str, Ref("registry")]
    """The registry. The cluster is created once it runs. If it gets another authority, the cluster's nodes
    are replaced.
    """


class Spec(resource.Spec):
    """The desired state of one cluster. Only these fields are sent."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE
    awaits: ClassVar = {"trust": "get the certificate of that authority"}
    unnoted = frozenset(awaits)

    namespace: Annotated[str, Ref("supervisor_namespace")]
    """Supervisor namespace that it is in."""
    api: Literal[
        "run.tanzu.vmware.com/v1alpha1",
        "run.tanzu.vmware.com/v1alpha2",
        "run.tanzu.vmware.com/v1alpha3",
        "cluster.x-k8s.io/v1beta1",
    ] = "run.tanzu.vmware.com/v1alpha1"
    """API of its object: v1alpha1 for vSphere 7.0, v1alpha2 for 7.0 U3, v1alpha3 and the Cluster
    API for 8.0.
    """
    cluster_class: OldClass = CLUSTER_CLASS
    """ClusterClass of the cluster, for the Cluster API; the other APIs have none. It must have the variables
    of tanzukubernetescluster; for builtin-generic classes write a vks_cluster.
    """
    version: Version
    """Kubernetes version: v1.20, v1.20.2 or in full."""
    control_plane: ControlPlane
    """The control plane's nodes."""
    workers: dict[DnsLabel, Workers]
    """Pool → its nodes. At least one pool; v1alpha1 has exactly one."""
    network: Network = Field(default_factory=Network)
    """The cluster's own networks."""
    trust: dict[DnsLabel, FromRegistry | LocalFile] = Field(default_factory=dict)
    """Name → PEM file of a certificate authority that the nodes trust in addition, or `{registry: NAME}` for
    that of a registry of this site.
    """
    storage_classes: tuple[str, ...] = ()
    """Storage classes for its workloads; empty = all of the namespace."""
    default_storage_class: str | None = None
    """Storage class for claims that name none."""

    def files(self) -> dict[str, LocalFile]:
        """The authorities' files, by name."""
        return {name: source for name, source in self.trust.items() if isinstance(source, LocalFile)}

    @model_validator(mode="after")
    def _check(self) -> Spec:
        if not self.workers or (self.api == V1ALPHA1 and len(self.workers) != 1):
            raise FieldError(
                f"{self.api} has {'exactly' if self.api == V1ALPHA1 else 'at least'} one pool "
                f"of workers, not {len(self.workers)}",
                "workers",
            )
        if self.api != V1BETA1 and self.cluster_class != CLUSTER_CLASS:
            raise FieldError(f"{self.api} has none; {V1BETA1} has", "cluster_class")
        if self.api == V1BETA1 and (self.network.cni or self.trust):
            raise FieldError(
                f"{V1BETA1} doesn't set it in the cluster's object; leave it out",
                "network.cni" if self.network.cni else "trust",
            )
        if (
            self.storage_classes
            and self.default_storage_class
            and self.default_storage_class not in self.storage_classes
        ):
            raise FieldError(
                f"{self.default_storage_class} is not one of storage_classes", "default_storage_class"
            )
        return self

    def inside(self) -> Iterator[Inner]:
        """Its networks of pods and services, if they are written."""
        return networks.inside(self.network)

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """VM classes and storage classes that its namespace no longer offers, as the file has it: vSphere
        could create no node of them.
        """
        return in_namespace.conflicts(mine, site)

    @property
    def storage(self) -> dict[str, str]:
        """Dotted field → every storage class that the spec names."""
        found = {"control_plane.storage_class": self.control_plane.storage_class}
        found |= {
            f"workers.{pool}.storage_class": nodes.storage_class for pool, nodes in self.workers.items()
        }
        found |= {f"storage_classes.{index}": name for index, name in enumerate(self.storage_classes)}
        return found | (
            {"default_storage_class": self.default_storage_class} if self.default_storage_class else {}
        )

    @property
    def vm_classes(self) -> dict[str, str]:
        """Dotted field → every VM class that the spec names."""
        pools = {f"workers.{pool}.vm_class": nodes.vm_class for pool, nodes in self.workers.items()}
        return {"control_plane.vm_class": self.control_plane.vm_class, **pools}

    def pools(self) -> tuple[Pool, ...]:
        """Its nodes, the control plane's first."""
        found = {"control_plane": self.control_plane} | {
            f"workers.{name}": nodes for name, nodes in self.workers.items()
        }
        return tuple(
            Pool(
                role,
                nodes.count,
                nodes.vm_class,
                nodes.storage_class,
                sum(volume.capacity for volume in nodes.volumes.values()),
            )
            for role, nodes in found.items()
        )

    def needs(self, key: Key) -> Iterator[NodeDemand]:
        """Its nodes, as far as they may take vGPUs."""
        return demands(key, self.namespace, self.pools())

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The classes of its nodes, and the hosts that they can be on."""
        return in_namespace.requires(self, site)
