"""How a supervisor is enabled: its networks, its load balancer and its storage."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bfinfra.model import conflict
from bfinfra.model.choice import one_of
from bfinfra.model.errors import FieldError
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


class Foundation(Part):
    """The load balancer that vSphere 9.0 and later runs itself, on machines in the management and the
    workload network. vCenter chooses what is left out.
    """

    size: Literal["small", "medium", "large", "x_large"] | None = None
    """Size of its machines; vCenter's own choice is small."""
    availability: Literal["active_passive", "single_node"] | None = None
    """Two machines or one; vCenter's own choice is two."""
    storage: Policy | None = None
    """Storage policy of its machines; vCenter's own choice is the control plane's."""


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
    """Addresses that the load balancer gives to services. HAProxy and Foundation need them; Avi has its
    own.
    """
    haproxy: HaProxy | None = None
    """HAProxy, or …"""
    avi: Avi | None = None
    """… Avi, or …"""
    foundation: Foundation | None = None
    """… the Foundation load balancer of vSphere 9.0 and later."""

    @model_validator(mode="after")
    def _one(self) -> Vds:
        one_of(haproxy=self.haproxy, avi=self.avi, foundation=self.foundation)
        if self.avi is None and self.services is None:
            name = "HAProxy" if self.haproxy is not None else "the Foundation load balancer"
            raise FieldError(f"give the addresses that {name} gives to services", "services")
        return self


class Vpc(Part):
    """Networking by virtual private clouds of NSX, from vSphere 9.0 on."""

    private: Annotated[tuple[Network, ...], Field(min_length=1)]
    """Networks from which private subnets of new namespaces come."""
    project: str | None = None
    """Path of the NSX project, such as /orgs/default/projects/gpu; empty = NSX's default project."""
    connectivity_profile: str | None = None
    """Path of the VPC connectivity profile, which names transit gateway and external addresses; empty = the
    project's default.
    """


class Enable(Part):
    """How to enable it. If it is enabled already, bfinfra changes storage policies, the Foundation load
    balancer and private networks of VPCs, and adds networks of NSX; all else must match, as far as vCenter
    tells it.
    """

    zones: tuple[str, ...] = ()
    """vSphere zones across which it runs, from vSphere 8.0 on: one, or three. The cluster is in one of them.
    Empty = on this cluster alone.
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
    """… a distributed switch, or …"""
    vpc: Vpc | None = None
    """… virtual private clouds of NSX."""

    @model_validator(mode="after")
    def _one(self) -> Enable:
        one_of(nsx=self.nsx, vds=self.vds, vpc=self.vpc)
        if self.zones and len(set(self.zones)) not in (1, 3):
            raise FieldError("name one zone or three; vCenter takes no other number", "zones")
        if self.zones and self.nsx is not None:
            raise FieldError("bfinfra enables zones with vds or vpc, not with nsx", "zones")
        return self

    def foundation(self) -> Foundation | None:
        """The Foundation load balancer, if it is to have one."""
        return self.vds.foundation if self.vds else None
