"""The world file: what the sandbox's vCenter, supervisors and hosts are at the start."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bfinfra.sandbox.kubernetes.vks.offered import Vks
from bfinfra.sandbox.reading import BadWorld, Bytes
from bfinfra.sandbox.world_hosts import Cluster, Host
from bfinfra.sandbox.world_outside import File, KubernetesCluster, LinuxMachine, Registry, Workload

ROLES = ("admin", "readonly")


@dataclass(frozen=True)
class VCenter:
    """The vCenter."""

    host: str
    """Its host name, as the site has it in vcenter.server."""
    version: str = "8.0.3.0"
    """Its API version, four numbers."""
    instance_uuid: str = "6f0b9c2e-8f7d-4c39-9d6a-1f0e2d3c4b5a"
    """Its instance UUID."""
    port: int = 443
    """Its HTTPS port."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+\.\d+\.\d+\.\d+", self.version):
            raise BadWorld(f"version {self.version!r} is not of the form 8.0.3.0")
        try:
            uuid.UUID(self.instance_uuid)
        except ValueError:
            raise BadWorld(f"instance_uuid {self.instance_uuid!r} is no UUID") from None


@dataclass(frozen=True)
class User:
    """A user of vCenter and its supervisors."""

    name: str
    """Its name, as name@domain."""
    password: Any = field(repr=False)
    """Its password: a text, {env: NAME} or {generate: password}."""
    groups: tuple[str, ...] = ()
    """Its groups, each one of the world's groups."""
    role: Any = "readonly"
    """What it may do: admin, readonly or a list of privilege ids such as System.Read."""

    def __post_init__(self) -> None:
        if "@" not in self.name:
            raise BadWorld(f"user {self.name!r} is not of the form name@domain")
        listed = isinstance(self.role, list | tuple) and all(isinstance(each, str) for each in self.role)
        if not listed and self.role not in ROLES:
            raise BadWorld(f"role of {self.name} is neither {', '.join(ROLES)} nor a list of privileges")


@dataclass(frozen=True)
class Datastore:
    """A datastore. All hosts mount it where neither hosts nor clusters are given."""

    capacity: Bytes
    """Its size, such as 4TiB."""
    hosts: tuple[str, ...] = ()
    """Hosts that mount it."""
    clusters: tuple[str, ...] = ()
    """Clusters whose hosts mount it."""


@dataclass(frozen=True)
class StoragePolicy:
    """A storage policy."""

    datastores: tuple[str, ...] = ()
    """Datastores that comply with it."""
    description: str = ""
    """Free text."""


@dataclass(frozen=True)
class VmClass:
    """A virtual machine class."""

    cpus: int
    """Virtual CPUs."""
    memory: Bytes
    """Memory, such as 64GiB."""
    cpu_reservation: int | None = None
    """How much of its CPUs is guaranteed, in per cent."""
    memory_reservation: int | None = None
    """How much of its memory is guaranteed, in per cent."""
    description: str = ""
    """Free text."""
    gpus: tuple[str, ...] = ()
    """vGPU profiles, one per virtual GPU, such as grid_v100d-16c."""


@dataclass(frozen=True)
class ContentLibrary:
    """A content library."""

    datastore: str
    """The datastore that holds its items."""
    url: str = ""
    """The lib.json that it subscribes to. Without it, the library is local."""
    description: str = ""
    """Free text."""


@dataclass(frozen=True)
class Template:
    """A template for virtual machines, with one network adapter and no disks."""

    cluster: str
    """The cluster where it is."""
    datastore: str
    """The datastore where it is."""
    guest: str = "centos7_64Guest"
    """vSphere's id of its operating system."""


@dataclass(frozen=True)
class Beside:
    """What other teams have in the same vCenter, under names that the site's objects may have, too."""

    datacenter: str
    """The path of its datacenter, such as abroad/elsewhere. The world's own may be named, too."""
    folder: str = ""
    """The folder for its clusters and templates, in the datacenter's folders for them."""
    clusters: Mapping[str, Mapping[str, Host]] = field(default_factory=dict)
    """vSphere clusters: name → ESXi hosts, by name. Names of hosts occur once in a world."""
    datastores: Mapping[str, Datastore] = field(default_factory=dict)
    """Datastores: name → datastore. Names of datastores occur once in a datacenter."""
    networks: tuple[str, ...] = ()
    """Names of the networks of its hosts."""
    templates: Mapping[str, Template] = field(default_factory=dict)
    """Templates for virtual machines: name → template."""


@dataclass(frozen=True)
class World:
    """The whole world file."""

    vcenter: VCenter
    """The vCenter."""
    users: tuple[User, ...]
    """Users of vCenter and its supervisors; one of them with the role admin."""
    clusters: Mapping[str, Cluster]
    """vSphere clusters: name → cluster."""
    datastores: Mapping[str, Datastore]
    """Datastores: name → datastore."""
    networks: tuple[str, ...]
    """Names of the networks. Every host has them all."""
    templates: Mapping[str, Template] = field(default_factory=dict)
    """Templates for virtual machines: name → template."""
    datacenter: str = "Datacenter"
    """Name of the datacenter, or its path below the root folder, such as prod/dc."""
    beside: tuple[Beside, ...] = ()
    """What other teams have in this vCenter."""
    pace: float = 1.0
    """Factor of all durations. With 0 nothing takes time, with 0.1 a tenth of it."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Seconds that something takes, before `pace`: task, boot, reboot, shutdown, lease, supervisor,
    namespace, control_plane, worker, delete, pod, workload, volume and definition. Each has a default.
    """
    storage_policies: Mapping[str, StoragePolicy] = field(default_factory=dict)
    """Storage policies: name → policy."""
    tags: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Tags of datastores: category → tag → names of datastores."""
    vm_classes: Mapping[str, VmClass] = field(default_factory=dict)
    """Virtual machine classes: name → class."""
    content_libraries: Mapping[str, ContentLibrary] = field(default_factory=dict)
    """Content libraries: name → library."""
    published: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    """What libraries of others publish: URL of a lib.json → name of an OVF item → the TCP ports on which a
    machine of this item listens.
    """
    tanzu_releases: tuple[str, ...] = ()
    """Tanzu Kubernetes releases that the supervisors offer."""
    vks: Vks | None = None
    """vSphere Kubernetes Service. Without it, the supervisors don't have it."""
    groups: tuple[str, ...] = ()
    """Groups of users, as name@domain."""
    depots: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Offline depots of vLCM: URL of a depot → component → its versions."""
    guest_network: str = ""
    """CIDR from which DHCP serves virtual machines. Without it, there is no DHCP."""
    env: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Values that the site's {env: NAME} refer to: NAME → a text or {generate: password}."""
    files: Mapping[str, File] = field(default_factory=dict)
    """Files that the site names and the sandbox makes: path relative to the site → file."""
    registries: Mapping[str, Registry] = field(default_factory=dict)
    """Image registries that ask for credentials: host → registry."""
    images: Mapping[str, Workload] = field(default_factory=dict)
    """Behaviour of containers: image, or a pattern such as *tensorflow*, → behaviour. The first that fits
    counts.
    """
    kubernetes_clusters: Mapping[str, KubernetesCluster] = field(default_factory=dict)
    """Kubernetes clusters outside of supervisors: name → cluster."""
    linux_machines: Mapping[str, LinuxMachine] = field(default_factory=dict)
    """Linux machines: name → machine."""

    @property
    def hosts(self) -> dict[str, Host]:
        """All hosts by name."""
        return {name: host for cluster in self.clusters.values() for name, host in cluster.hosts.items()}
