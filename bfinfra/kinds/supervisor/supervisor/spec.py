"""The desired state of a supervisor."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bfinfra.kinds.capabilities import hosts
from bfinfra.model import conflict, resource
from bfinfra.model.choice import one_of
from bfinfra.model.conflict import Inner, Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile


def _address(text: str) -> str:
    return str(ipaddress.IPv4Address(text))


def _network(text: str) -> str:
    return str(ipaddress.IPv4Network(text))


def _gateway(text: str) -> str:
    if "/" not in text:
        raise ValueError("expected the gateway with the prefix of its network, such as 172.16.7.1/24")
    return str(ipaddress.IPv4Interface(text))


Address = Annotated[str, AfterValidator(_address)]
Network = Annotated[str, AfterValidator(_network)]
Gateway = Annotated[str, AfterValidator(_gateway)]
Group = Annotated[str, Ref("port_group", optional=True)]
Policy = Annotated[str, Ref("storage_policy", optional=True)]
HostPort = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.-]+:\d{1,5}$")]


class Addresses(Part):
    """Consecutive addresses."""

    first: Address
    """The first address."""
    count: Annotated[int, Field(ge=1)]
    """How many there are."""


def _beside(gateway: str | None, addresses: Addresses | None) -> str | None:
    """The gateway. Raises ValueError if it is not in one network with the addresses, or is one of them."""
    if gateway is None or addresses is None:
        return gateway
    plain, _, prefix = gateway.partition("/")
    last = str(ipaddress.IPv4Address(addresses.first) + addresses.count - 1)
    for end in (addresses.first, last):
        if why := conflict.unreachable(
            plain, f"{end}/{prefix}", count=addresses.count if end == addresses.first else 1
        ):
            raise ValueError(why)
    return gateway


class Management(Part):
    """The network between its control plane and vCenter."""

    network: Group
    """Network or port group."""
    addresses: Addresses | None = None
    """Five addresses, as VMware's document asks; empty = DHCP."""
    gateway: Gateway | None = None
    """With addresses: the gateway and the network's prefix, such as 172.16.7.1/24."""

    @model_validator(mode="after")
    def _both(self) -> Management:
        if (self.addresses is None) != (self.gateway is None):
            given, other = ("addresses", "gateway") if self.gateway is None else ("gateway", "addresses")
            raise FieldError(f"it needs {other}", given)
        return self

    @field_validator("gateway")
    @classmethod
    def _reached(cls, gateway: str | None, info: ValidationInfo) -> str | None:
        return _beside(gateway, info.data.get("addresses"))


class Storage(Part):
    """Storage policies."""

    control_plane: Policy
    """Policy of the control plane's disks."""
    ephemeral: Policy
    """Policy of the ephemeral disks of pods."""
    images: Policy
    """Policy of container images."""


class Nsx(Part):
    """Networking by NSX, which pods on ESXi and the embedded registry need."""

    switch: Annotated[str, Ref("distributed_switch", optional=True)]
    """Distributed switch of the hosts' overlay."""
    edge_cluster: str
    """Id of the edge cluster in NSX."""
    pods: Annotated[tuple[Network, ...], Field(min_length=1)]
    """Networks of pods."""
    ingress: Annotated[tuple[Network, ...], Field(min_length=1)]
    """Networks of the services that are reachable from outside."""
    egress: Annotated[tuple[Network, ...], Field(min_length=1)]
    """Networks from whose addresses pods reach the outside."""
    tier0: str | None = None
    """Id of the tier-0 gateway; empty = the only one."""


class Balancer(Part):
    """A load balancer's account."""

    username: str
    """Name of the account."""
    password: Secret
    """Reference to the password."""
    authority: LocalFile
    """File with the authority that signed its certificate (PEM)."""


class HaProxy(Balancer):
    """VMware's HAProxy appliance."""

    servers: Annotated[tuple[HostPort, ...], Field(min_length=1)]
    """Address of its data plane API, such as 172.16.7.30:5556."""


class Avi(Balancer):
    """NSX Advanced Load Balancer."""

    server: HostPort
    """Address of its controller, such as avi.example.com:443."""
    cloud: str | None = None
    """Name of its cloud; empty = Default-Cloud."""


class Vds(Part):
    """Networking by a distributed switch and a load balancer."""

    port_group: Group
    """Port group of the primary workload network."""
    addresses: Addresses
    """Addresses in the workload network."""
    gateway: Gateway
    """Gateway of the workload network, with its prefix."""

    @field_validator("gateway")
    @classmethod
    def _reached(cls, gateway: str | None, info: ValidationInfo) -> str | None:
        return _beside(gateway, info.data.get("addresses"))

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "primary"
    """The supervisor's name for the network, and for its load balancer."""
    services: Addresses | None = None
    """Addresses that the load balancer gives to services. HAProxy needs them; Avi has its own."""
    haproxy: HaProxy | None = None
    """HAProxy, or …"""
    avi: Avi | None = None
    """… Avi."""

    @model_validator(mode="after")
    def _one(self) -> Vds:
        one_of(haproxy=self.haproxy, avi=self.avi)
        if self.haproxy is not None and self.services is None:
            raise FieldError("give the addresses that HAProxy gives to services", "services")
        return self


class Enable(Part):
    """How to enable it. If it is enabled already, bfinfra changes storage policies and adds networks of NSX;
    all else must match, as far as vCenter tells it.
    """

    management: Management
    """The network between its control plane and vCenter."""
    storage: Storage
    """Storage policies."""
    services: Network = "10.96.0.0/23"
    """Network of services inside the supervisor."""
    nsx: Nsx | None = None
    """NSX, or …"""
    vds: Vds | None = None
    """… a distributed switch."""

    @model_validator(mode="after")
    def _one(self) -> Enable:
        one_of(nsx=self.nsx, vds=self.vds)
        return self


class Dns(Part):
    """Name servers."""

    control_plane: tuple[Address, ...] | None = None
    """Name servers of its control plane."""
    workloads: tuple[Address, ...] | None = None
    """Name servers of pods and clusters."""
    search: tuple[str, ...] | None = None
    """Domains in which the control plane looks up names."""


class Spec(resource.Spec):
    """The desired state of one supervisor; its name is the vSphere cluster's. Fields that are left out stay
    as they are.
    """

    awaits: ClassVar = {
        **dict.fromkeys(
            ("enable.vds.haproxy.authority", "enable.vds.avi.authority"),
            "get the certificate of the authority that signed the load balancer's",
        ),
        **dict.fromkeys(
            ("enable.vds.haproxy.password", "enable.vds.avi.password"),
            "get it from whoever runs the load balancer",
        ),
    }

    enable: Enable | None = None
    """How to enable it; empty: it must be enabled already."""
    size: Literal["tiny", "small", "medium", "large"] | None = None
    """Size of its control plane; default small when bfinfra enables it."""
    dns: Dns = Dns()
    """Name servers."""
    ntp: tuple[str, ...] | None = None
    """Time servers of its control plane."""
    content_library: Annotated[str, Ref("content_library", optional=True)] | None = None
    """Library of the Kubernetes releases, of this site or existing."""
    login_banner: str | None = None
    """Text to show before a login."""
    disable: bool = False
    """Whether destroy disables it, with every namespace on it. If not, it stays, whoever enabled it."""

    def takes(self, name: str) -> Iterator[Taken]:
        """The addresses of its control plane, of the workload network and of its load balancer."""
        if self.enable is None:
            return
        management, vds, nsx = self.enable.management, self.enable.vds, self.enable.nsx
        rows = [("management.addresses", management.addresses, management.network)]
        rows += (
            [("vds.addresses", vds.addresses, vds.port_group), ("vds.services", vds.services, "")]
            if vds
            else []
        )
        for field, each, network in rows:
            if each is not None:
                yield from conflict.address(
                    f"enable.{field}", each.first, count=each.count, on=(network, False)
                )
        for field, gateway in (("management", management.gateway), ("vds", vds and vds.gateway)):
            if gateway:
                yield from conflict.address(
                    f"enable.{field}.gateway", gateway, owner=("gateway", gateway.partition("/")[0])
                )
        for field in ("ingress", "egress") if nsx else ():
            for index, cidr in enumerate(getattr(nsx, field)):
                yield from conflict.network(f"enable.nsx.{field}.{index}", cidr)

    def inside(self) -> Iterator[Inner]:
        """The network of services and, with NSX, those of pods."""
        if self.enable:
            yield Inner("enable.services", self.enable.services)
            yield from (
                Inner(f"enable.nsx.pods.{index}", cidr)
                for index, cidr in enumerate(self.enable.nsx.pods if self.enable.nsx else ())
            )

    def entrances(self) -> dict[str, LocalFile | Secret | None]:
        """The authority and the password of its load balancer, by dotted field."""
        vds = self.enable.vds if self.enable else None
        chosen = {"haproxy": vds.haproxy, "avi": vds.avi} if vds else {}
        return {
            f"enable.vds.{name}.{field}": getattr(each, field)
            for name, each in chosen.items()
            if each
            for field in ("authority", "password")
        }

    def policies(self) -> Iterator[tuple[str, str]]:
        """Field and name of every storage policy that it names."""
        for name in Storage.model_fields if self.enable else ():
            yield f"enable.storage.{name}", getattr(self.enable.storage, name)  # type: ignore[union-attr]  # the line above looks

    def networks(self) -> Iterator[tuple[str, str]]:
        """Field and name of every network that it names."""
        if self.enable:
            yield "enable.management.network", self.enable.management.network
            if self.enable.vds:
                yield "enable.vds.port_group", self.enable.vds.port_group

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The hosts of its cluster, which must not restart while it is enabled."""
        yield hosts(name)
