"""What a user writes for a Bitfusion server."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bfinfra.kinds.capabilities import GRAPHICS, SERVERS, library, server
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.trust import Fingerprint, Trust
from bfinfra.model.units import Bytes, MachineMemory

PORT = 56001  # where a server answers its clients


@functools.lru_cache(maxsize=1024)
def _interface(value: str) -> str:
    if "/" not in value:
        raise ValueError("expected an address with its prefix, such as 172.24.210.80/24")
    if why := conflict.unfit(value):
        raise ValueError(why)
    return str(ipaddress.ip_interface(value))


Interface = Annotated[str, AfterValidator(_interface)]
Address = Annotated[
    str, AfterValidator(functools.lru_cache(maxsize=1024)(lambda value: str(ipaddress.ip_address(value))))
]
Item = Literal["address", "netmask", "gateway", "dns"]


def _address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.strip("/"):
        raise ValueError(
            "expected an address such as https://downloads.example.com/bitfusion-server-3.0.0-11.ova"
        )
    if "@" in parts.netloc:
        raise ValueError("an account in an address would be shown and logged; no account is sent to anybody")
    return value


class Ova(Part):
    """The appliance: a file, or an address to read it from."""

    file: LocalFile | None = None
    """Path of the .ova, relative to the site file."""
    url: Annotated[str, AfterValidator(_address)] | None = None
    """Address of the .ova, https, or http with `sha256`. Its server must answer parts of it; nothing is kept
    on this machine.
    """
    trust: Trust = Field(default_factory=Trust)
    """Which certificate the server of `url` must show; the system's store where nothing is said."""
    sha256: Fingerprint | None = None
    """SHA-256 of the whole file, checked before anything is uploaded; its own manifest is checked in any
    case.
    """

    @property
    def text(self) -> str:
        """As written."""
        return self.file.text if self.file else self.url or ""

    @model_validator(mode="after")
    def _one(self) -> Ova:
        if (self.file is None) == (self.url is None):
            raise ValueError("give file or url")
        if self.file is not None and self.trust != Trust():
            raise ValueError("trust goes with url")
        if (self.url or "").startswith("http://") and self.sha256 is None:
            raise ValueError("http says nothing of who answers: give the file's sha256, or an https address")
        return self


class Library(Part):
    """A content library that keeps appliances by their digest: each is uploaded once, and only to vCenter
    itself.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    """Its name; made where there is none."""
    datastore: str
    """Where a new one lives."""


class Network(Part):
    """One network adapter."""

    network: Annotated[str, Ref("port_group", optional=True)]
    """Name of the network or distributed port group; one of this site is made first, and goes last."""
    address: Interface | None = None
    """Address with prefix, such as 172.24.210.80/24; without it the appliance asks DHCP."""
    gateway: Address | None = None
    """Default gateway."""
    dns: tuple[Address, ...] = ()
    """Name servers."""
    keys: dict[Item, str] = Field(default_factory=dict)
    """Which OVA property takes the address, netmask, gateway or dns, where its label doesn't tell."""

    @field_validator("gateway")
    @classmethod
    def _reached(cls, gateway: str | None, info: ValidationInfo) -> str | None:
        if (
            gateway
            and info.data.get("address")
            and (why := conflict.unreachable(gateway, info.data["address"]))
        ):
            raise ValueError(why)
        return gateway

    @property
    def ip(self) -> str:
        """The address without its prefix; "" where it is DHCP's to give."""
        return (self.address or "").partition("/")[0]


class Spec(resource.Spec):
    """What a user writes for one server."""

    awaits: ClassVar = {
        "ova.file": "download the appliance from the vendor's site (Bitfusion's server OVA)",
        "ova.trust.ca_file": (
            "get the certificate of the authority that signed the certificate of the server of ova.url"
        ),
        "properties": "write the secret into it, or fetch it from who keeps it",
    }
    digested = "properties"

    ova: Ova
    """The appliance."""
    library: Library | None = None
    """Deploy from a content library, which gets the appliance where it doesn't hold it yet."""
    host: Annotated[str, Ref("gpu_host")]
    """The host whose GPUs it serves."""
    first: Annotated[str, Ref("bitfusion_server")] | None = None
    """The first server of its group, which is made and ready before this one; a group is 1, 3 or more
    servers.
    """
    gpus: Annotated[int, Field(ge=0, le=16)]
    """How many; 0 for a server that only keeps the cluster's quorum."""
    attach: Literal["static", "dynamic", "vgpu"] = "static"
    """static: fixed cards; dynamic: any cards of the make (Dynamic DirectPath); vgpu: shares by a profile."""
    vgpu_profile: Annotated[str, StringConstraints(min_length=1)] | None = None
    """With attach: vgpu, such as grid_v100d-8q."""
    gpu_memory: Bytes | None = None
    """Memory of each GPU, where bfinfra can't know it."""
    cpus: Annotated[int, Field(ge=1, le=768)] | None = None
    """Virtual CPUs; default 4 for each GPU, at least 4."""
    memory: MachineMemory | None = None
    """Default 1.5 × the GPUs' memory. All of it is reserved: passthrough needs that."""
    mmio: Bytes | None = None
    """Size of the 64-bit MMIO window; default twice the next power of two that holds the GPUs' memory."""
    disk: Bytes | None = None
    """Size of the first disk, if larger than the OVA's."""
    disk_provisioning: Literal["thin", "thick"] = "thin"
    """How the disks take space."""
    datastore: str | None = None
    """Where the disks live; may be left out where the host reaches only one datastore."""
    folder: str = ""
    """Folder for VMs, such as gpu/bitfusion; default the datacenter's root."""
    resource_pool: Annotated[str, Ref("resource_pool", optional=True)] | None = None
    """Resource pool: one of this site's, or one that is there anyway; default the cluster's own."""
    networks: Annotated[dict[str, Network], Field(min_length=1, max_length=4)]
    """One to four adapters, by the names of the OVA's networks or any others, in the order of the
    adapters.
    """
    properties: dict[str, Secret | str] = Field(default_factory=dict)
    """The OVA's properties; see: bfinfra ova inspect. Passwords by reference only.

    vCenter's GUID, URL and thumbprint are filled in where they are left out, and refused where they are
    wrong.
    """
    readiness: Literal["tools", "port"] = "tools"
    """tools: VMware Tools run and report an address; port: the server's port takes connections."""
    port: Annotated[int, Field(ge=1, le=65535)] = PORT
    """The port for readiness: port."""

    @model_validator(mode="after")
    def _profile(self) -> Spec:
        if (self.attach == "vgpu") != (self.vgpu_profile is not None):
            raise ValueError("vgpu_profile goes with attach: vgpu, and only with it")
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its name among VMs, and the addresses of its adapters; the first is what everybody reaches it
        by.
        """
        yield conflict.thing("", f"the VM {name}", "VM", self.folder.strip("/"))
        for place, (label, each) in enumerate(self.networks.items()):
            yield from conflict.address(
                f"networks.{label}.address", each.address or "", on=(each.network, place > 0)
            )

    def answers_at(self) -> str:
        """Its first adapter's address, where that isn't DHCP's to give."""
        return next(iter(self.networks.values())).ip

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """A server, at its addresses."""
        yield SERVERS
        yield from (server(each.ip) for each in self.networks.values() if each.ip)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The library that it is deployed from, and what vGPUs want of its host."""
        if self.library is not None:
            yield library(self.library.name)
        if self.attach == "vgpu":
            yield Capability(GRAPHICS, self.host)
