"""The desired state of a distributed switch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import SETTINGS
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.names import VCENTER_NAME, VCENTER_NAME_RULE
from bfinfra.model.order import Capability, Specs

Nic = Annotated[str, StringConstraints(pattern=r"^vmnic\d+$")]


class Spec(resource.Spec):
    """The desired state of one switch; its name is the switch's name in vCenter."""

    name_pattern = VCENTER_NAME
    name_rule = VCENTER_NAME_RULE

    mtu: Annotated[int, Field(ge=1280, le=9000)] = 1500
    """Largest frame, in bytes."""
    uplinks: Annotated[int, Field(ge=1, le=32)] = 1
    """Uplinks per host; those that are there keep their names. PVRDMA needs exactly one: the RDMA adapter."""
    version: str | None = None
    """Version to create it with, such as 6.6.0; empty = the newest that vCenter has. An existing switch keeps
    its version.
    """
    hosts: dict[str, tuple[Nic, ...]] = Field(default_factory=dict)
    """Its hosts, by their names in vCenter, and the NICs that it uses on each; others leave it. Left out, its
    hosts stay.
    """

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        for host, nics in self.hosts.items():
            if len(nics) > self.uplinks:
                raise FieldError(
                    f"{len(nics)} NICs are more than its uplinks, {self.uplinks}", ("hosts", host)
                )
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """The NICs of its hosts, as a NIC can be on one switch only."""
        for host, nics in self.hosts.items():
            yield from (
                conflict.thing(f"hosts.{host}.{index}", f"{nic} of {host}", "NIC")
                for index, nic in enumerate(nics)
            )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The switch with its hosts on it."""
        return (Capability(SETTINGS, each) for each in self.hosts)
