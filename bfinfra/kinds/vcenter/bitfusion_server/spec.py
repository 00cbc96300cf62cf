"""The desired state of a Bitfusion server."""

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
from bfinfra.kinds.vcenter.base.machine import mac
from bfinfra.kinds.vcenter.base.machine.mac import Mac
from bfinfra.model import conflict, resource
from bfinfra.model.choice import one_of
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.names import VCENTER_NAME, VCENTER_NAME_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.trust import Fingerprint, Trust
from bfinfra.model.units import Bytes, MachineMemory

PORT = 56001  # the port on which a server answers its clients


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
        raise ValueError("an account in an address would be shown and logged, and bfinfra sends none")
    return value


class Ova(Part):
    """The appliance: a file, or a URL to read it from."""

    file: LocalFile | None = None
    """Path of the .ova, relative to the site file."""
    url: Annotated[str, AfterValidator(_address)] | None = None
    """URL of the .ova: https, or http with `sha256`. Its server must support range requests. bfinfra keeps no
    copy on this machine.
    """
    trust: Trust = Field(default_factory=Trust)
    """The certificate that the server of `url` must show; by default one that this system trusts."""
    sha256: Fingerprint | None = None
    """SHA-256 of the whole file, checked before anything is uploaded. The OVA's own manifest is always
    checked.
    """

    @property
    def text(self) -> str:
        """The path or URL as written."""
        return self.file.text if self.file else self.url or ""

    @model_validator(mode="after")
    def _one(self) -> Ova:
        one_of(file=self.file, url=self.url)
        if self.file is not None and self.trust != Trust():
            raise FieldError("it goes with url", "trust")
        if (self.url or "").startswith("http://") and self.sha256 is None:
            raise FieldError(
                "http doesn't prove which server answers: give the file's sha256, or an https address", "url"
            )
        return self


class Library(Part):
    """A content library that keeps appliances by their digest. Each is uploaded once, to vCenter only."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    """Its name; created if it doesn't exist."""
    datastore: str
    """The datastore of a library that is created."""


class Network(Part):
    """One network adapter."""

    network: Annotated[str, Ref("port_group", optional=True)]
    """Name of the network or distributed port group. If this site makes it, it is made before the server and
    deleted after it.
    """
    address: Interface | None = None
    """Address with prefix, such as 172.24.210.80/24; without it the appliance uses DHCP."""
    gateway: Address | None = None
    """Default gateway."""
    dns: tuple[Address, ...] = ()
    """Name servers."""
    mac: Mac | None = None
    """MAC address, such as 00:50:56:12:34:56; default vCenter's choice. A DHCP reservation needs one: from
    00:50:56:00:00:00 to 00:50:56:3f:ff:ff, VMware's range for fixed addresses, or from a range of your own.
    The VM must be off to change it. One that leaves the file stays as it is.
    """
    keys: dict[Item, str] = Field(default_factory=dict)
    """The OVA property that takes the address, netmask, gateway or dns, if its label doesn't tell."""

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
        """The address without its prefix; "" for DHCP."""
        return (self.address or "").partition("/")[0]


class Spec(resource.Spec):
    """The desired state of one server."""

    name_pattern = VCENTER_NAME
    name_rule = VCENTER_NAME_RULE

    awaits: ClassVar = {
        "ova.file": "download the appliance from the vendor's site (Bitfusion's server OVA)",
        "ova.trust.ca_file": (
            "get the certificate of the authority that signed the certificate of the server of ova.url"
        ),
        "properties": "write the secret into it, or get it from whoever keeps it",
    }
    digested = "properties"

    ova: Ova
    """The appliance."""
    library: Library | None = None
    """Deploy from a content library. bfinfra uploads the appliance if the library doesn't have it."""
    host: Annotated[str, Ref("gpu_host")]
    """The host whose GPUs it serves."""
    first: Annotated[str, Ref("bitfusion_server")] | None = None
    """The first server of its group, which must be ready before this one is created. A group has 1, 3 or more
    servers.
    """
    gpus: Annotated[int, Field(ge=0, le=16)]
    """Number of GPUs; 0 for a server that only keeps the cluster's quorum."""
    attach: Literal["static", "dynamic", "vgpu"] = "static"
    """static: fixed cards; dynamic: any cards of one model (Dynamic DirectPath); vgpu: virtual GPUs of a
    profile.
    """
    vgpu_profile: Annotated[str, StringConstraints(min_length=1)] | None = None
    """With attach: vgpu, such as grid_v100d-8q."""
    gpu_memory: Bytes | None = None
    """Memory of each GPU, for a model that bfinfra doesn't know."""
    cpus: Annotated[int, Field(ge=1, le=768)] | None = None
    """Virtual CPUs; default 4 per GPU, at least 4."""
    memory: MachineMemory | None = None
    """Default 1.5 × the GPUs' memory. All of it is reserved: passthrough needs that."""
    mmio: Bytes | None = None
    """Size of the 64-bit MMIO window; default twice the next power of two that holds the GPUs' memory."""
    disk: Bytes | None = None
    """Size of the first disk, if larger than in the OVA."""
    disk_provisioning: Literal["thin", "thick"] = "thin"
    """How the disks take space on the datastore."""
    datastore: str | None = None
    """Datastore of the disks; may be left out if the host has only one. Another one moves the disks, with the
    VM off if it has GPUs. Another host makes the VM anew, as its cards are there.
    """
    folder: str = ""
    """Folder for VMs, such as gpu/bitfusion; default the datacenter's root."""
    resource_pool: Annotated[str, Ref("resource_pool", optional=True)] | None = None
    """Resource pool, of this site or existing; default the cluster's root pool."""
    networks: Annotated[dict[str, Network], Field(min_length=1, max_length=4)]
    """One to four adapters, in their order. Each is named as one of the OVA's networks, or freely."""
    properties: dict[str, Secret | str] = Field(default_factory=dict)
    """The OVA's properties; see: bfinfra ova inspect. Passwords by reference only. bfinfra fills in vCenter's
    GUID, URL and thumbprint if they are left out, and refuses wrong ones.
    """
    readiness: Literal["tools", "port"] = "tools"
    """tools: VMware Tools run and report an address; port: the server's port takes connections."""
    port: Annotated[int, Field(ge=1, le=65535)] = PORT
    """The port for readiness: port."""

    @model_validator(mode="after")
    def _profile(self) -> Spec:
        if (self.attach == "vgpu") != (self.vgpu_profile is not None):
            if self.vgpu_profile is None:
                raise FieldError("vgpu needs vgpu_profile", "attach")
            raise FieldError("it goes with attach: vgpu only", "vgpu_profile")
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its name among VMs, and the IP and MAC addresses of its adapters. Clients reach it by the first."""
        yield conflict.thing("", f"the VM {name}", "VM", self.folder.strip("/"))
        for place, (label, each) in enumerate(self.networks.items()):
            yield from conflict.address(
                f"networks.{label}.address", each.address or "", on=(each.network, place > 0)
            )
            yield from mac.taken(f"networks.{label}.mac", each.mac)

    def answers_at(self) -> str:
        """The address of its first adapter; "" for DHCP."""
        return next(iter(self.networks.values())).ip

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """A Bitfusion server at its addresses."""
        yield SERVERS
        yield from (server(each.ip) for each in self.networks.values() if each.ip)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The library that it is deployed from, and the host's settings that vGPUs need."""
        if self.library is not None:
            yield library(self.library.name)
        if self.attach == "vgpu":
            yield Capability(GRAPHICS, self.host)
