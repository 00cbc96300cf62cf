"""The desired state of a namespace on a supervisor."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.model import resource
from bfinfra.model.choice import one_of
from bfinfra.model.errors import FieldError
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.units import Limit, MegahertzLimit

Account = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+$")]
Cluster = Annotated[str, Ref("supervisor", optional=True)]
Policy = Annotated[str, Ref("storage_policy", optional=True)]


class Limits(Part):
    """The most that everything in the namespace may use together."""

    cpu: MegahertzLimit | None = None
    """CPU, such as 48GHz; at least 10MHz."""
    memory: Limit | None = None
    """Memory, such as 384GiB; vCenter keeps whole MiB."""
    storage: Limit | None = None
    """Storage of all policies together, such as 2TiB."""


class Access(Part):
    """A user or group and what it may do."""

    user: Account | None = None
    """A user, as `name@domain`."""
    group: Account | None = None
    """A group, as `name@domain`."""
    role: Literal["view", "edit", "owner"]
    """view: read; edit: create clusters and workloads; owner: also delete the namespace."""

    @property
    def account(self) -> str:
        """The user or the group."""
        return self.user or self.group or ""

    @model_validator(mode="after")
    def _one(self) -> Access:
        one_of(user=self.user, group=self.group)
        return self


class Spec(resource.Spec):
    """The desired state of one supervisor namespace."""

    cluster: Cluster
    """vSphere cluster whose supervisor holds the namespace, by name or path, of this site or existing."""
    description: str = ""
    """Free text. bfinfra writes its mark in a last line below it."""
    limits: Limits = Field(default_factory=Limits)
    """The most that everything in the namespace may use together."""
    storage: dict[Policy, Limit | None] = Field(default_factory=dict)
    """Storage policy, of this site or existing → the most that the namespace may use of it; empty
    = no limit.
    """
    access: tuple[Access, ...] = ()
    """Who may do what in the namespace."""
    vm_classes: tuple[Annotated[str, Ref("vm_class", optional=True)], ...] = ()
    """VM classes for its clusters, of this site or existing."""
    content_libraries: tuple[Annotated[str, Ref("content_library", optional=True)], ...] = ()
    """Content libraries with images for its VMs, of this site or existing."""
    zones: tuple[str, ...] = ()
    """vSphere zones of its supervisor where its VMs may run, from vSphere 9.0; empty: all of them."""
    reserved: dict[Annotated[str, Ref("vm_class", optional=True)], Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict
    )
    """VM class → how many of its VMs each of `zones` keeps free for this namespace, such as h100-40c: 4.
    vCenter takes such reservations and never tells them, so drift of them is not seen.
    """

    @model_validator(mode="after")
    def _of_zones(self) -> Spec:
        if self.reserved and not self.zones:
            raise FieldError("it needs zones: VMs are reserved in a zone", "reserved", "name the zones")
        unoffered = [name for name in self.reserved if name not in self.vm_classes]
        if unoffered:
            raise FieldError(
                f"{unoffered[0]} is not among its vm_classes",
                f"reserved.{unoffered[0]}",
                f"add {unoffered[0]} to vm_classes",
            )
        if len(set(self.zones)) != len(self.zones):
            raise FieldError("a zone is named twice", "zones")
        return self
