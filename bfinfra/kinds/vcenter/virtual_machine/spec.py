"""What a user writes for a virtual machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import GRAPHICS, PVRDMA, host, hosts, template
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import Problem
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.units import Bytes, MachineMemory, bytes_text

SIZES = {"control_plane": (4, 16 << 30), "worker": (4, 24 << 30)}
"""What the document asks of a node of a cluster of up to 50: CPUs, and memory in bytes."""
Extra = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,80}$")]
Address = Annotated[str, StringConstraints(pattern=r"^scsi[0-3]:([0-6]|[89]|1[0-5])$")]
"""SCSI controller and unit, as a machine's own file calls them; 7 is the controller itself."""


class Adapter(Part):
    """One network adapter."""

    network: Annotated[str, Ref("port_group", optional=True)]
    """Network, or distributed port group: one of this site's, or one that is there anyway."""
    type: Literal["vmxnet3", "pvrdma"] = "vmxnet3"
    """pvrdma: paravirtual RDMA, on a distributed port group only, one of a machine, all memory reserved."""
    protocol: Literal["rocev1", "rocev2"] = "rocev2"
    """Of PVRDMA."""

    @property
    def rdma(self) -> str:
        """Its protocol where it is PVRDMA, else ""."""
        return self.protocol if self.type == "pvrdma" else ""


class FurtherDisk(Part):
    """One disk beside the first. It grows with its size; it never shrinks, and is never moved."""

    size: Bytes
    """Capacity, in whole MiB."""
    datastore: str | None = None
    """Datastore that it is made on; empty = the machine's."""
    thin: bool = True
    """Whether it takes room only as it fills; said when it is made."""

    @model_validator(mode="after")
    def _whole(self) -> FurtherDisk:
        if self.size < 1 << 20 or self.size % (1 << 20):
            raise ValueError("size: must be a multiple of 1 MiB")
        return self


class CloudInit(Part):
    """What cloud-init finds in guestinfo. vCenter shows it, encoded, to whoever may read the machine: put no
    secrets in.
    """

    user_data: LocalFile | None = None
    """File with the user data."""
    meta_data: LocalFile | None = None
    """File with the meta data: host name, addresses."""


class Library(Part):
    """An item of a content library."""

    name: Annotated[str, Ref("content_library", optional=True)]
    """The library: one of this site's, or one that is there anyway."""
    item: str
    """The item: a VM template, or an OVF, whose licences are accepted."""


class Spec(resource.Spec):
    """What a user writes for one machine; its name is the machine's name in vCenter."""

    awaits: ClassVar = {
        "cloud_init.user_data": "write it, or fetch it from who does",
        "cloud_init.meta_data": "write it, or fetch it from who does",
        "properties": "write the secret into it, or fetch it from who keeps it",
    }
    digested = "properties"
    unnoted = frozenset({"cloud_init.user_data", "cloud_init.meta_data"})

    template: str | None = None
    """Template or machine that it is cloned from."""
    library: Library | None = None
    """What it is deployed from, instead of `template`."""
    properties: dict[str, Secret | str] = Field(default_factory=dict)
    """Properties of an OVF item; those that stand here no more keep what they have. Passwords by reference
    only.
    """
    cluster: str
    """Cluster whose resource pool it runs in."""
    host: str | None = None
    """Host that it runs on; empty = vCenter chooses. A machine with vGPUs is best told."""
    datastore: str
    """Datastore for its disks."""
    folder: str = ""
    """Folder for machines that it is in; empty = the datacenter's own."""
    cpus: Annotated[int, Field(ge=1, le=768)]
    """Virtual CPUs."""
    memory: MachineMemory
    """Memory."""
    reserve: bool = False
    """Reserve all memory; so it is anyway with PVRDMA or vGPUs, which want it."""
    adapters: tuple[Adapter, ...] = ()
    """Its network adapters, in their order; the template's own go."""
    disk: Bytes | None = None
    """Size of the first disk, where the template's is to grow; no disk shrinks."""
    disks: dict[Address, FurtherDisk] = Field(default_factory=dict)
    """Further disks by their places, such as scsi0:1: empty ones where none is, else those that are there.
    One that leaves the file is deleted with what is on it, which wants --allow-delete.
    """
    vgpus: tuple[str, ...] = ()
    """vGPU profiles, such as grid_v100d-16c."""
    cloud_init: CloudInit = CloudInit()
    """Customisation at its first start."""
    extra: dict[Extra, str] = Field(default_factory=dict)
    """Further options, as extraConfig has them."""
    power: Literal["on", "off"] = "on"
    """Whether it runs."""
    role: Literal["control_plane", "worker"] | None = None
    """What node it is to be: fewer CPUs or less memory than the document says is warned of."""

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        if (self.template is None) == (self.library is None):
            raise ValueError("give template or library")
        if self.properties and self.library is None:
            raise ValueError("properties: only an OVF item of a library has some")
        if sum(each.type == "pvrdma" for each in self.adapters) > 1:
            raise ValueError("adapters: a machine has at most one PVRDMA adapter")
        return self

    def files(self) -> dict[str, LocalFile]:
        """cloud-init's files, by dotted field."""
        named = {
            "cloud_init.user_data": self.cloud_init.user_data,
            "cloud_init.meta_data": self.cloud_init.meta_data,
        }
        return {field: file for field, file in named.items() if file}

    def takes(self, name: str) -> Iterator[Taken]:
        """Its name among VMs."""
        yield conflict.thing("", f"the VM {name}", "VM", self.folder.strip("/"))

    @property
    def reserved(self) -> bool:
        """Whether all memory is to be reserved."""
        return self.reserve or bool(self.vgpus) or any(each.type == "pvrdma" for each in self.adapters)

    def warnings(self) -> Iterable[tuple[str, Problem]]:
        """Nodes that are smaller than the document's."""
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
        """Itself, to clone from."""
        yield template(name)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """What it is cloned from, a host that needs no restart, and what its devices want of that."""
        if self.template is not None:
            yield template(self.template)
        yield host(self.host) if self.host is not None else hosts(self.cluster)
        if self.vgpus:
            yield Capability(GRAPHICS, self.host or "")
        if any(each.type == "pvrdma" for each in self.adapters):
            yield Capability(PVRDMA, self.host or "")
