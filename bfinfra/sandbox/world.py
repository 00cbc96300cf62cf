"""The world file: what the sandbox's vCenter, supervisors and hosts are at the start."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bfinfra.sandbox.kubernetes.vks.offered import Vks
from bfinfra.sandbox.reading import BadWorld, Bytes

PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
NOTHING, MEMORY = Bytes(0), Bytes(768 * 2**30)
ROLES = ("admin", "readonly")


@dataclass(frozen=True)
class VCenter:
    """`version`: API version, four numbers; `port`: its HTTPS port."""

    host: str
    version: str = "8.0.3.0"
    instance_uuid: str = "6f0b9c2e-8f7d-4c39-9d6a-1f0e2d3c4b5a"
    port: int = 443

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+\.\d+\.\d+\.\d+", self.version):
            raise BadWorld(f"version {self.version!r} is not of the form 8.0.3.0")
        try:
            uuid.UUID(self.instance_uuid)
        except ValueError:
            raise BadWorld(f"instance_uuid {self.instance_uuid!r} is no UUID") from None


@dataclass(frozen=True)
class User:
    """`role`: admin, readonly or a list of privilege ids; `password`: text or {env: NAME}, resolved after
    loading.
    """

    name: str
    password: Any = field(repr=False)
    groups: tuple[str, ...] = ()
    role: Any = "readonly"

    def __post_init__(self) -> None:
        if "@" not in self.name:
            raise BadWorld(f"user {self.name!r} is not of the form name@domain")
        listed = isinstance(self.role, list | tuple) and all(isinstance(each, str) for each in self.role)
        if not listed and self.role not in ROLES:
            raise BadWorld(f"role of {self.name} is neither {', '.join(ROLES)} nor a list of privileges")


@dataclass(frozen=True)
class PciDevice:
    """`id`: "0000:3b:00.0"; `memory`: of a GPU, bytes; `sriov`: whether it has virtual functions, as the T4
    and the A100 have; `profiles`: the vGPUs that it can be shared as.
    """

    id: str
    vendor: int
    device: int
    name: str
    class_: int = 0x0302
    memory: Bytes = NOTHING
    sriov: bool = False
    profiles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not PCI_ADDRESS.fullmatch(self.id):
            raise BadWorld(f"id {self.id!r} is no PCI address such as 0000:3b:00.0")
        if any(not 0 <= number <= 0xFFFF for number in (self.vendor, self.device, self.class_)):
            raise BadWorld(f"{self.id}: vendor, device and class are 16 bits")


@dataclass(frozen=True)
class Host:
    """An ESXi host. `memory` in bytes; `graphics`: as the API has it, shared, sharedDirect and others;
    `vibs`: name → version; `vgpu_driver`: the VIB without which it offers no vGPUs, "" = none;
    `device_groups`: name of a vendor's group → the profile of each of its devices.
    """

    cores: int = 40
    mhz: int = 2500
    memory: Bytes = MEMORY
    pci: tuple[PciDevice, ...] = ()
    ntp: tuple[str, ...] = ("pool.ntp.org",)
    graphics: str = "shared"
    firmware: str = "2.19.1"
    vibs: Mapping[str, str] = field(
        default_factory=lambda: {
            "esx-base": "8.0.3-0.0.24022510",
            "nmlx5-core": "4.23.6.2-15vmw.803.0.0.24022510",
        }
    )
    vgpu_driver: str = ""
    device_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.cores <= 0 or self.mhz <= 0 or self.memory <= 0:
            raise BadWorld("cores, mhz and memory are more than 0")
        if len({device.id for device in self.pci}) != len(self.pci):
            raise BadWorld("two PCI devices have the same id")


@dataclass(frozen=True)
class Supervisor:
    """vSphere with Tanzu on a cluster. `guests`: first and last address for guest clusters; `registry`:
    embedded Harbor, "" = none; `zones`: none given = one of the cluster's id.
    """

    address: str
    version: str = "v1.27.5+vmware.wcp.1"
    guests: tuple[str, ...] = ("172.24.206.10", "172.24.206.60")
    network_provider: str = "NSXT_CONTAINER_PLUGIN"
    service_cidr: str = "10.96.0.0/24"
    pod_cidr: str = "10.244.0.0/20"
    registry: str = ""
    zones: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            first, last = map(ipaddress.ip_address, self.guests)
        except ValueError:
            raise BadWorld("guests holds the first and the last address for guest clusters") from None
        if int(first) > int(last):
            raise BadWorld("the first address of guests is above the last")

    def guest_addresses(self) -> list[str]:
        """The addresses that guest clusters may get, in order."""
        first, last = map(ipaddress.ip_address, self.guests)
        return [str(first + n) for n in range(int(last) - int(first) + 1)]


@dataclass(frozen=True)
class Cluster:
    """A compute cluster. `content`: names of the content libraries its supervisor uses; `image`: the
    components of its vLCM image besides the base image, None = it has no image; `zone`: the vSphere zone it
    belongs to, "" = none.
    """

    hosts: Mapping[str, Host]
    supervisor: Supervisor | None = None
    content: tuple[str, ...] = ()
    image: Mapping[str, str] | None = None
    zone: str = ""


@dataclass(frozen=True)
class Datastore:
    """`capacity` in bytes; mounted by the hosts and clusters named, by all where none is."""

    capacity: Bytes
    hosts: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoragePolicy:
    """A storage policy and the datastores that comply with it."""

    datastores: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class VmClass:
    """A virtual machine class. `memory` in bytes, reservations in per cent; `gpus`: vGPU profile names."""

    cpus: int
    memory: Bytes
    cpu_reservation: int | None = None
    memory_reservation: int | None = None
    description: str = ""
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContentLibrary:
    """`url`: of a subscribed library, "" for a local one."""

    datastore: str
    url: str = ""
    description: str = ""


@dataclass(frozen=True)
class Registry:
    """An image registry that asks for credentials."""

    username: str
    password: Any = field(repr=False)


@dataclass(frozen=True)
class Template:
    """A template for machines, off, with one network adapter and no disks. `cluster`, `datastore`: its
    places; `guest`: vSphere's id of its system.
    """

    cluster: str
    datastore: str
    guest: str = "centos7_64Guest"


@dataclass(frozen=True)
class KubernetesCluster:
    """A cluster outside of supervisors. `address`: "host:port" of its API; `nodes`: how many, with `gpus`
    each; `token`: its administrator's, resolved after loading.

    `gpus`: what each node has, driver and container runtime ready; pods get them where a device plug-in runs.
    `gpu_product`: as the driver names them; those of A30, A100 and H100 can be divided.
    `kubeadm`: the Linux machine on which `kubeadm init` starts it; its nodes are then the machines that join,
    with the GPUs that those have. `machines`: the Linux machines that are its nodes, of a cluster that runs
    already; none given: `nodes` of its own. `kubelet_folders`: node or glob → the folder of its kubelet,
    where that is not /var/lib/kubelet.
    """

    address: str
    version: str = "v1.27.3"
    nodes: int = 1
    gpus: int = 0
    gpu_product: str = ""
    token: Any = field(default_factory=lambda: {"generate": "password"}, repr=False)
    kubeadm: str = ""
    machines: tuple[str, ...] = ()
    kubelet_folders: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[^:/\s]+:\d{1,5}", self.address):
            raise BadWorld(f"address {self.address!r} is not of the form host:port")
        if not re.fullmatch(r"v1\.\d+\.\d+.*", self.version):
            raise BadWorld(f"version {self.version!r} is not of the form v1.27.3")
        if self.nodes < 1:
            raise BadWorld("nodes is less than 1")


@dataclass(frozen=True)
class LinuxMachine:
    """A machine by SSH, which `users` enter with the key of the maker `ssh_key`, or with `password` where
    there is one. `os`: as os-release names it; `gpus`: bytes of each.

    `services`: units that come with the machine and run, such as docker.service.
    """

    address: str
    port: int = 22
    os: str = "ubuntu"
    version: str = "20.04"
    users: tuple[str, ...] = ("root",)
    password: Any = field(default=None, repr=False)
    gpus: tuple[Bytes, ...] = ()
    services: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """The behaviour of a container whose image matches. `output`: what it prints, None for what this type of
    image prints by default.
    """

    output: str | None = None
    seconds: float | None = None
    exit_code: int = 0


@dataclass(frozen=True)
class File:
    """A file that the demo needs. `make`: the name of its factory; `options`: the factory's arguments."""

    make: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    """The whole world file. `env` values and passwords are resolved. `guest_network`: the CIDR whose DHCP
    serves machines, "" = none; `tags`: category → tag → datastores; `published`: URL of a lib.json → the OVF
    items that a library which follows it gets → the TCP ports that a machine of one listens on;
    `depots`: URL of an offline depot → component → its versions.
    """

    vcenter: VCenter
    users: tuple[User, ...]
    clusters: Mapping[str, Cluster]
    datastores: Mapping[str, Datastore]
    networks: tuple[str, ...]
    templates: Mapping[str, Template] = field(default_factory=dict)
    datacenter: str = "Datacenter"
    pace: float = 1.0
    durations: Mapping[str, float] = field(default_factory=dict)
    storage_policies: Mapping[str, StoragePolicy] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    vm_classes: Mapping[str, VmClass] = field(default_factory=dict)
    content_libraries: Mapping[str, ContentLibrary] = field(default_factory=dict)
    published: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    tanzu_releases: tuple[str, ...] = ()
    vks: Vks | None = None
    groups: tuple[str, ...] = ()
    depots: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    guest_network: str = ""
    env: Mapping[str, Any] = field(default_factory=dict, repr=False)
    files: Mapping[str, File] = field(default_factory=dict)
    registries: Mapping[str, Registry] = field(default_factory=dict)
    images: Mapping[str, Workload] = field(default_factory=dict)
    kubernetes_clusters: Mapping[str, KubernetesCluster] = field(default_factory=dict)
    linux_machines: Mapping[str, LinuxMachine] = field(default_factory=dict)

    @property
    def hosts(self) -> dict[str, Host]:
        """All hosts by name."""
        return {name: host for cluster in self.clusters.values() for name, host in cluster.hosts.items()}
