"""Virtual machines as plain values: current, desired and imported ones. Light, as reading a site imports
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from bfinfra.model.records import dataclass

CONNECTED, ORPHANED = "connected", "orphaned"


@dataclass(frozen=True, slots=True)
class Attached:
    """A PCI device of a VM. `way`: static (a fixed address), dynamic (any of vendor/device) or vgpu (a
    profile); `grouped`: part of a device group, with which it comes and goes.
    """

    key: int
    way: str
    address: str = ""
    allowed: tuple[tuple[int, int], ...] = ()
    profile: str = ""
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Attach:
    """A PCI device to add to a VM: `address` on its host, or vendor/device, or a vGPU `profile`."""

    vendor: int = 0
    device: int = 0
    address: str = ""
    name: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Nic:
    """A network adapter. `network`: id of its network or port group; `grouped`: whether that is distributed;
    `rdma`: its protocol if it is paravirtual RDMA; `manual`: whether its MAC address was assigned by hand.
    """

    key: int
    label: str
    network: str
    mac: str
    grouped: bool = False
    rdma: str = ""
    manual: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """A virtual disk. `capacity` in bytes; `address`: scsi0:1, "" without a SCSI controller; `file`: its path
    on its datastore; `thin`: None if unknown.
    """

    key: int
    label: str
    capacity: int
    address: str = ""
    file: str = ""
    thin: bool | None = None
    linked: bool = False
    """Whether it only holds what differs from another file: a snapshot's, or that of a linked clone."""


@dataclass(frozen=True, slots=True)
class NewDisk:
    """An empty disk to add at `address` (scsi0:1), in bytes; `datastore`: an id, "" for the machine's own."""

    address: str
    capacity: int
    datastore: str = ""
    thin: bool = True


def own_name(name: str) -> str:
    """The name of a VM; where vCenter shows the path of a file that it can't read, the name of that file:
    `[local] db/db.vmx` → db.
    """
    by_path = name.endswith(".vmx") and name.startswith(("[", "/"))
    return PurePosixPath(name).stem if by_path else name


@dataclass(frozen=True, slots=True)
class Brief:
    """A VM in the survey. `mark`: the value of the requested extraConfig key; `folder`: its folder's id;
    `also`: the values of further keys.
    """

    moid: str
    name: str
    folder: str
    mark: str
    also: tuple[str, ...] = ()

    @property
    def own_name(self) -> str:
        """See `own_name`."""
        return own_name(self.name)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a VM. `template`: it can't run; `owner`: the vCenter extension that manages it, or "";
    `product`: name and version of its appliance, or ""; `labels` and `defaults` of its vApp properties, by
    full key; `passwords`: keys of the secret ones.
    """

    moid: str
    name: str
    template: bool = False
    owner: str = ""
    product: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    passwords: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Vm:
    """A VM in detail. Sizes in bytes; `extra`: the requested extraConfig keys; `properties`: the vApp
    properties by full key.
    """

    moid: str
    name: str
    folder: str
    pool: str
    datastores: frozenset[str]
    host: str
    on: bool
    connection: str
    """In vSphere's words: connected, disconnected, inaccessible, invalid, orphaned."""
    instance_uuid: str
    cpus: int
    memory: int
    reserved: bool
    firmware: str
    pci: tuple[Attached, ...]
    nics: tuple[Nic, ...]
    disks: tuple[Disk, ...]
    extra: Mapping[str, str]
    properties: Mapping[str, str] = field(repr=False)
    """Some servers return passwords too."""
    ip: str
    tools: bool
    tasks: tuple[Any, ...] = field(repr=False, compare=False, default=())
    version: str = field(repr=False, compare=False, default="")
    """Of its configuration."""

    @property
    def connected(self) -> bool:
        """Whether vCenter sees it now."""
        return self.connection == CONNECTED

    @property
    def unread(self) -> str:
        """Why vCenter doesn't know its configuration, so that no mark can be found in it; "" if it does."""
        if self.instance_uuid:
            return ""
        return (
            f"the VM {self.name} is {self.connection}: vCenter can't read its configuration and its mark; "
            "make its datastore accessible again, or take the VM out of vCenter's inventory"
        )

    @property
    def last_known(self) -> str:
        """Why it is as vCenter last saw it; "" if vCenter sees it."""
        if self.connected:
            return ""
        why = (
            "its host no longer has it" if self.connection == ORPHANED else "vCenter has no connection to it"
        )
        return f"the VM {self.name} is {self.connection}: {why}"


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """Desired hardware; only what is set is sent. Sizes in bytes; networks by id; `extra` "" removes a key;
    `properties` by full key.

    `nics`: adapter key → network; `macs`: adapter key → MAC address; `add_rdma`: port group → protocol
    (rocev1, rocev2) of an adapter for RDMA; `add_macs`: of `add_nics`, then of `add_rdma`, "" for vCenter's
    choice; `grow`: disk key → capacity; `add_disks`: with their controllers if missing; `drop`: device keys
    to remove; `destroy`: keys of disks to delete with their files.
    """

    name: str | None = None
    cpus: int | None = None
    memory: int | None = None
    reserve: bool | None = None
    firmware: str | None = None
    instance_uuid: str | None = None
    annotation: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    attach: tuple[Attach, ...] = ()
    drop: tuple[int, ...] = ()
    nics: Mapping[int, str] = field(default_factory=dict)
    macs: Mapping[int, str] = field(default_factory=dict)
    add_nics: tuple[str, ...] = ()
    add_rdma: Mapping[str, str] = field(default_factory=dict)
    add_macs: tuple[str, ...] = ()
    grow: Mapping[int, int] = field(default_factory=dict)
    add_disks: tuple[NewDisk, ...] = ()
    destroy: tuple[int, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values; some are secrets."""


@dataclass(frozen=True, kw_only=True)
class Clone:
    """The source and target of a clone: ids of VM or template, folder, pool and datastore, and of a host or
    "".
    """

    source: str
    name: str
    folder: str
    pool: str
    host: str
    datastore: str
    hardware: Hardware


@dataclass(frozen=True, kw_only=True)
class Relocation:
    """The target of a move: ids of pool, host and datastore; "" keeps the current one. `disks`: disk key → id
    of the datastore of a disk that doesn't go to `datastore`.
    """

    pool: str = ""
    host: str = ""
    datastore: str = ""
    disks: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """The source and target of a deployment from a library's item. `networks`: name in the OVF → id, {} for
    vCenter's choice; `host`: or ""; `extra`: its notes.
    """

    name: str
    folder: str
    pool: str
    host: str
    datastore: str
    extra: Mapping[str, str]
    networks: Mapping[str, str] = field(default_factory=dict)
    thin: bool = True


@dataclass(frozen=True, kw_only=True)
class Import:
    """The source and target of an import. Networks: name in the OVF → id; files: href → bytes; `open` returns
    a file's stream.
    """

    name: str
    descriptor: str = field(repr=False)
    networks: Mapping[str, str]
    properties: Mapping[str, str] = field(repr=False)
    folder: str
    pool: str
    host: str
    datastore: str
    hardware: Hardware
    files: Mapping[str, int]
    surplus: frozenset[int] = frozenset()
    """Positions of the OVF's network adapters that are left out."""
    macs: Mapping[int, str] = field(default_factory=dict)
    """MAC addresses of the OVF's network adapters, by their positions."""
    open: Callable[[str], BinaryIO] = field(repr=False)
    thin: bool = True


@dataclass(frozen=True, kw_only=True)
class Appliance:
    """An appliance in a library: `files`: name → bytes, the descriptor first; `digests`: name → (algorithm,
    hexadecimal digest).
    """

    digest: str
    title: str
    files: Mapping[str, int]
    digests: Mapping[str, tuple[str, str]]
    open: Callable[[str], BinaryIO] = field(repr=False)

    @property
    def name(self) -> str:
        """The item's name, which is different for other contents."""
        return f"bfinfra-{self.digest}"
