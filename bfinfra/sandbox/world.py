"""The world file: what the sandbox's vCenter, supervisors and hosts are at the start."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.reading import BadWorld, Bytes, read

DURATIONS = {  # seconds, stretched by `pace`
    "task": 1.0,
    "boot": 8.0,
    "reboot": 20.0,
    "shutdown": 3.0,
    "lease": 300.0,
    "supervisor": 10.0,
    "namespace": 4.0,
    "control_plane": 6.0,
    "worker": 4.0,
    "delete": 3.0,
    "pod": 2.0,
    "workload": 3.0,
    "volume": 1.0,
}
LARGEST, DEEPEST = 64 << 20, 64  # bytes of a world file; collections within collections
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
    and the A100 have.
    """

    id: str
    vendor: int
    device: int
    name: str
    class_: int = 0x0302
    memory: Bytes = NOTHING
    sriov: bool = False

    def __post_init__(self) -> None:
        if not PCI_ADDRESS.fullmatch(self.id):
            raise BadWorld(f"id {self.id!r} is no PCI address such as 0000:3b:00.0")
        if any(not 0 <= number <= 0xFFFF for number in (self.vendor, self.device, self.class_)):
            raise BadWorld(f"{self.id}: vendor, device and class are 16 bits")


@dataclass(frozen=True)
class Host:
    """An ESXi host. `memory` in bytes; `graphics`: as the API has it, shared, sharedDirect and others;
    `vibs`: name → version.
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

    def __post_init__(self) -> None:
        if self.cores <= 0 or self.mhz <= 0 or self.memory <= 0:
            raise BadWorld("cores, mhz and memory are more than 0")
        if len({device.id for device in self.pci}) != len(self.pci):
            raise BadWorld("two PCI devices have the same id")


@dataclass(frozen=True)
class Supervisor:
    """vSphere with Tanzu on a cluster. `guests`: first and last address for guest clusters; `registry`:
    embedded Harbor, "" = none.
    """

    address: str
    version: str = "v1.27.5+vmware.wcp.1"
    guests: tuple[str, ...] = ("172.24.206.10", "172.24.206.60")
    network_provider: str = "NSXT_CONTAINER_PLUGIN"
    service_cidr: str = "10.96.0.0/24"
    pod_cidr: str = "10.244.0.0/20"
    registry: str = ""

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
    """A compute cluster. `content`: names of the content libraries its supervisor uses."""

    hosts: Mapping[str, Host]
    supervisor: Supervisor | None = None
    content: tuple[str, ...] = ()


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
    """A template for machines, off, with one network adapter and no disks. `cluster`, `datastore`: where it
    lies; `guest`: vSphere's id of its system.
    """

    cluster: str
    datastore: str
    guest: str = "centos7_64Guest"


@dataclass(frozen=True)
class KubernetesCluster:
    """A cluster that no supervisor made. `address`: "host:port" of its API; `nodes`: how many, with `gpus`
    each; `token`: its administrator's, resolved after loading.

    `gpus`: what each node has, driver and container runtime ready; pods get them where a device plug-in runs.
    `kubeadm`: the Linux machine on which `kubeadm init` starts it; its nodes are then the machines that join,
    with the GPUs that those have. `machines`: the Linux machines that are its nodes, of a cluster that stands
    already; none given: `nodes` of its own. `kubelet_folders`: node or glob → the folder of its kubelet,
    where that is not /var/lib/kubelet.
    """

    address: str
    version: str = "v1.27.3"
    nodes: int = 1
    gpus: int = 0
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
    """What a container of a matching image does. `output`: what it prints, None for what the kind of image
    prints by default.
    """

    output: str | None = None
    seconds: float | None = None
    exit_code: int = 0


@dataclass(frozen=True)
class File:
    """A file that the demo needs. `make`: which maker; `options`: what that maker takes."""

    make: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    """The whole world file. `env` values and passwords are resolved. `guest_network`: the CIDR whose DHCP
    serves machines, "" = none; `tags`: category → tag → datastores.
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
    tanzu_releases: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
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


def load(path: Path, passwords: Passwords) -> World:
    """The world of a file. BadWorld names the file and the field; OSError where it can't be read."""
    try:
        with path.open("rb") as stream:
            text = stream.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise BadWorld(f"{path}: larger than {LARGEST >> 20} MiB")
        _check(text)
        data = LOADER(text).get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise (
            error
            if isinstance(error, BadWorld)
            else BadWorld(f"{path}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
        ) from None
    return parse(data, passwords, str(path))


def _check(text: bytes) -> None:
    """BadWorld where it is nested deeper than any parser bears; it holds no aliases, which could stand for
    more than there is room for.
    """
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 0
            deep = f"more than {DEEPEST} collections within each other"
            raise BadWorld(f"line {line}: {deep if depth > DEEPEST else 'an alias, and a world has none'}")


def parse(data: Any, passwords: Passwords, at: str = "world") -> World:
    """The world of YAML values."""
    world: World = read(World, data, at)
    if problems := list(_problems(world)):
        raise BadWorld("\n".join(f"{at}: {problem}" for problem in problems))
    try:
        env = {name: passwords.of(value, name, {}) for name, value in world.env.items()}
        users = tuple(
            replace(user, password=passwords.of(user.password, user.name, env)) for user in world.users
        )
        registries = {
            host: replace(each, password=passwords.of(each.password, host, env))
            for host, each in world.registries.items()
        }
        others = {
            name: replace(each, token=passwords.of(each.token, f"administrator of {name}", env))
            for name, each in world.kubernetes_clusters.items()
        }
        machines = {
            name: replace(each, password=each.password and passwords.of(each.password, name, env))
            for name, each in world.linux_machines.items()
        }
    except BadWorld as error:
        raise BadWorld(f"{at}: {error}") from None
    durations = {**DURATIONS, **world.durations}
    return replace(
        world,
        env=env,
        users=users,
        registries=registries,
        kubernetes_clusters=others,
        linux_machines=machines,
        durations=durations,
    )


def _problems(world: World) -> list[str]:
    hosts = world.hosts
    named = [  # what names what, and what is there
        *(("durations", name, DURATIONS) for name in world.durations),
        *(
            (f"users {user.name}: groups", group, world.groups)
            for user in world.users
            for group in user.groups
        ),
        *(
            (f"datastores {name}: hosts", host, hosts)
            for name, each in world.datastores.items()
            for host in each.hosts
        ),
        *(
            (f"datastores {name}: clusters", cluster, world.clusters)
            for name, each in world.datastores.items()
            for cluster in each.clusters
        ),
        *(
            (f"storage_policies {name}: datastores", store, world.datastores)
            for name, each in world.storage_policies.items()
            for store in each.datastores
        ),
        *(
            (f"kubernetes_clusters {name}: kubeadm", each.kubeadm, world.linux_machines)
            for name, each in world.kubernetes_clusters.items()
            if each.kubeadm
        ),
        *(
            (f"kubernetes_clusters {name}: machines", machine, world.linux_machines)
            for name, each in world.kubernetes_clusters.items()
            for machine in each.machines
        ),
        *(
            (f"content_libraries {name}: datastore", each.datastore, world.datastores)
            for name, each in world.content_libraries.items()
        ),
        *(
            (f"clusters {name}: content", library, world.content_libraries)
            for name, each in world.clusters.items()
            for library in each.content
        ),
    ]
    problems = [f"{what}: there is no {name}" for what, name, there in named if name not in there]
    if sum(len(cluster.hosts) for cluster in world.clusters.values()) != len(hosts):
        problems.append("clusters: a host stands in two clusters")
    taken = [*(each.address for each in world.kubernetes_clusters.values()), *_addresses(world)]
    problems += [
        f"kubernetes_clusters {name}: address {each.address} is taken"
        for name, each in world.kubernetes_clusters.items()
        if taken.count(each.address) > 1
    ]
    try:
        ipaddress.ip_network(world.guest_network or "0.0.0.0/0")
    except ValueError as error:
        problems.append(f"guest_network: {error}")
    if world.pace < 0:
        problems.append("pace: less than 0")
    return problems


def _addresses(world: World) -> list[str]:
    """What vCenter, hosts, supervisors and their guests listen on."""
    supervisors = [each.supervisor for each in world.clusters.values() if each.supervisor]
    kubernetes = [address for each in supervisors for address in (each.address, *each.guest_addresses())]
    return [
        f"{world.vcenter.host}:{world.vcenter.port}",
        *(f"{host}:443" for host in world.hosts),
        *(f"{address}:{port}" for address in kubernetes for port in (443, 6443)),
    ]
