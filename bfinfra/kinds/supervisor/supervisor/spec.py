"""The desired state of a supervisor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bfinfra.kinds.capabilities import hosts
from bfinfra.kinds.supervisor.supervisor.networking import Address, Enable, Storage
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Inner, Taken
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile


class Dns(Part):
    """Name servers."""

    control_plane: tuple[Address, ...] | None = None
    """Name servers of its control plane."""
    workloads: tuple[Address, ...] | None = None
    """Name servers of pods and clusters."""
    search: tuple[str, ...] | None = None
    """Domains in which the control plane looks up names."""


class Spec(resource.Spec):
    """The desired state of one supervisor; its name is the vSphere cluster's name or path. Fields that are
    left out stay as they are.
    """

    name_pattern = r"[^\s]{1,253}"
    name_rule = "no blanks, at most 253 characters"

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
    dns: Dns = Field(default_factory=Dns)
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
        """The network of services and, with NSX, those of pods or of private subnets."""
        if self.enable:
            yield Inner("enable.services", self.enable.services)
            yield from (
                Inner(f"enable.nsx.pods.{index}", cidr)
                for index, cidr in enumerate(self.enable.nsx.pods if self.enable.nsx else ())
            )
            yield from (
                Inner(f"enable.vpc.private.{index}", cidr)
                for index, cidr in enumerate(self.enable.vpc.private if self.enable.vpc else ())
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
        if self.enable is None:
            return
        for name in Storage.model_fields:
            yield f"enable.storage.{name}", getattr(self.enable.storage, name)
        if (own := self.enable.foundation()) and own.storage:
            yield "enable.vds.foundation.storage", own.storage

    def networks(self) -> Iterator[tuple[str, str]]:
        """Field and name of every network that it names."""
        if self.enable:
            yield "enable.management.network", self.enable.management.network
            if self.enable.vds:
                yield "enable.vds.port_group", self.enable.vds.port_group

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The hosts of its cluster, which must not restart while it is enabled."""
        yield hosts(name)
