"""The desired state of a virtual machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import GRAPHICS, PVRDMA, host, hosts, template
from bfinfra.kinds.vcenter.base.machine import mac
from bfinfra.kinds.vcenter.base.machine.mac import Mac
from bfinfra.model import conflict, resource
from bfinfra.model.choice import one_of
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError, Problem
from bfinfra.model.names import VCENTER_NAME, VCENTER_NAME_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.units import Bytes, MachineMemory, bytes_text

SIZES = {"control_plane": (4, 16 << 30), "worker": (4, 24 << 30)}
"""What the document recommends for a node of a cluster of up to 50: CPUs, and memory in bytes."""
Extra = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,80}$")]
Address = Annotated[str, StringConstraints(pattern=r"^scsi[0-3]:([0-6]|[89]|1[0-5])$")]
"""SCSI controller and unit, as in a .vmx file; 7 is the controller itself."""


class Adapter(Part):
    """One network adapter."""

    network: Annotated[str, Ref("port_group", optional=True)]
    """Network or distributed port group, of this site or existing."""
    type: Literal["vmxnet3", "pvrdma"] = "vmxnet3"
    """pvrdma: paravirtual RDMA. It needs a distributed port group and reserves all memory; a VM has at most
    one.
    """
    protocol: Literal["rocev1", "rocev2"] = "rocev2"
    """The protocol of PVRDMA."""
    mac: Mac | None = None
    """MAC address, such as 00:50:56:12:34:56; default vCenter's choice. A DHCP reservation needs one: from
    00:50:56:00:00:00 to 00:50:56:3f:ff:ff, VMware's range for fixed addresses, or from a range of your own.
    The VM must be off to change it. One that leaves the file stays as it is.
    """

    @property
    def rdma(self) -> str:
        """The protocol of PVRDMA; "" for another type."""
        return self.protocol if self.type == "pvrdma" else ""


class FurtherDisk(Part):
    """One disk beside the first. It grows with its size, and never shrinks."""

    size: Bytes
    """Capacity, in whole MiB."""
    datastore: str | None = None
    """Its datastore; empty = the VM's."""
    thin: bool = True
    """Whether it takes space only as it fills; decided at its creation."""

    @model_validator(mode="after")
    def _whole(self) -> FurtherDisk:
        if self.size < 1 << 20 or self.size % (1 << 20):
            raise FieldError("it must be a multiple of 1 MiB", "size")
        return self


class CloudInit(Part):
    """The texts that cloud-init reads from guestinfo. vCenter shows them, encoded, to every user who may read
    the VM: put no secrets in.
    """

    user_data: LocalFile | None = None
    """File with the user data."""
    meta_data: LocalFile | None = None
    """File with the meta data: host name, addresses."""


class Library(Part):
    """An item of a content library."""

    name: Annotated[str, Ref("content_library", optional=True)]
    """The library, of this site or existing."""
    item: str
    """The item: a VM template, or an OVF. bfinfra accepts its licences."""


class Spec(resource.Spec):
    """The desired state of one machine; its name is the machine's name in vCenter."""

    name_pattern = VCENTER_NAME
    name_rule = VCENTER_NAME_RULE

    awaits: ClassVar = {
        "cloud_init.user_data": "write it, or get it from whoever does",
        "cloud_init.meta_data": "write it, or get it from whoever does",
        "properties": "write the secret into it, or get it from whoever keeps it",
    }
    digested = "properties"
    unnoted = frozenset({"cloud_init.user_data", "cloud_init.meta_data"})

    template: str | None = None
    """Template or VM to clone it from, by name or path. With another one the VM is deleted and made anew,
    which needs --allow-delete; not if the one before is no longer there, or if the VM was adopted.
    """
    library: Library | None = None
    """What to deploy it from, instead of `template`. So is a VM with another item."""
    properties: dict[str, Secret | str] = Field(default_factory=dict)
    """Properties of an OVF item. One that leaves the file keeps its value. Passwords by reference only."""
    cluster: str
    """Cluster that it runs in."""
    host: str | None = None
    """Host that it runs on; empty = vCenter chooses. Give one to a VM with vGPUs."""
    resource_pool: Annotated[str, Ref("resource_pool", optional=True)] | None = None
    """Resource pool, of this site or existing; default the cluster's root pool."""
    datastore: str
    """Datastore for its disks. A VM with a new one, or a new host or cluster, is relocated: while it runs,
    unless it has a vGPU or PVRDMA.
    """
    folder: str = ""
    """Folder for VMs; empty = the datacenter's root."""
    cpus: Annotated[int, Field(ge=1, le=768)]
    """Virtual CPUs."""
    memory: MachineMemory
    """Memory."""
    reserve: bool = False
    """Reserve all memory. PVRDMA and vGPUs always do."""
    adapters: tuple[Adapter, ...] = ()
    """Its network adapters, in their order. They replace the template's."""
    disk: Bytes | None = None
    """Size of the first disk, to grow the template's; no disk shrinks."""
    disks: dict[Address, FurtherDisk] = Field(default_factory=dict)
    """Further disks by their places, such as scsi0:1. A disk that doesn't exist is created empty. One that
    leaves the file is deleted with its data, which needs --allow-delete.
    """
    vgpus: tuple[str, ...] = ()
    """vGPU profiles, such as grid_v100d-16c."""
    cloud_init: CloudInit = Field(default_factory=CloudInit)
    """What cloud-init sets up at its first start."""
    extra: dict[Extra, str] = Field(default_factory=dict)
    """Further options of the VM (extraConfig)."""
    power: Literal["on", "off"] = "on"
    """Whether it runs."""
    role: Literal["control_plane", "worker"] | None = None
    """The Kubernetes node that it becomes: bfinfra warns if it has fewer CPUs or less memory than the
    document recommends.
    """

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        one_of(template=self.template, library=self.library)
        if self.properties and self.library is None:
            raise FieldError("only an OVF item of a library has properties", "properties")
        if sum(each.type == "pvrdma" for each in self.adapters) > 1:
            raise FieldError("a machine has at most one PVRDMA adapter", "adapters")
        return self

    def files(self) -> dict[str, LocalFile]:
        """cloud-init's files, by dotted field."""
        named = {
            "cloud_init.user_data": self.cloud_init.user_data,
            "cloud_init.meta_data": self.cloud_init.meta_data,
        }
        return {field: file for field, file in named.items() if file}

    def takes(self, name: str) -> Iterator[Taken]:
        """Its name among VMs, and the MAC addresses of its adapters."""
        yield conflict.thing("", f"the VM {name}", "VM", self.folder.strip("/"))
        for index, each in enumerate(self.adapters):
            yield from mac.taken(f"adapters.{index}.mac", each.mac)

    @property
    def reserved(self) -> bool:
        """True if all memory is reserved."""
        return self.reserve or bool(self.vgpus) or any(each.type == "pvrdma" for each in self.adapters)

    def warnings(self) -> Iterable[tuple[str, Problem]]:
        """Nodes that are smaller than the document recommends."""
        cpus, memory = SIZES[self.role] if self.role else (0, 0)
        if self.cpus < cpus:
            yield (
                "cpus",
                Problem(
                    f"{self.cpus} CPUs are few for a {self.role} node", next=f"the guide starts at {cpus}"
                ),
            )
        if self.memory < memory:
            yield (
                "memory",
                Problem(
                    f"{bytes_text(self.memory)} are little for a {self.role} node",
                    next=f"the guide starts at {bytes_text(memory)}",
                ),
            )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The VM, to clone others from."""
        yield template(name)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """What it is cloned from, a host that needs no restart, and the host's settings that its devices
        need.
        """
        if self.template is not None:
            yield template(self.template)
        yield host(self.host) if self.host is not None else hosts(self.cluster)
        if self.vgpus:
            yield Capability(GRAPHICS, self.host or "")
        if any(each.type == "pvrdma" for each in self.adapters):
            yield Capability(PVRDMA, self.host or "")
