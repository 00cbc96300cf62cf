"""What a user writes for a namespace on a supervisor."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.model import resource
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.units import Limit, Megahertz

Account = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+$")]
Cluster = Annotated[str, Ref("supervisor", optional=True)]
Policy = Annotated[str, Ref("storage_policy", optional=True)]


class Limits(Part):
    """What all that runs in the namespace may use together."""

    cpu: Megahertz | None = None
    """Such as 48GHz."""
    memory: Limit | None = None
    """Such as 384GiB."""
    storage: Limit | None = None
    """Over all storage policies, such as 2TiB."""


class Access(Part):
    """One user or group and what they may do."""

    user: Account | None = None
    """`name@domain`."""
    group: Account | None = None
    """`name@domain`."""
    role: Literal["view", "edit", "owner"]
    """view: look; edit: make clusters and workloads; owner: also delete the namespace."""

    @property
    def account(self) -> str:
        """The user's or the group's."""
        return self.user or self.group or ""

    @model_validator(mode="after")
    def _one(self) -> Access:
        if (self.user is None) == (self.group is None):
            raise ValueError("give either user or group")
        return self


class Spec(resource.Spec):
    """What a user writes for one supervisor namespace."""

    cluster: Cluster
    """Name of the vSphere cluster whose supervisor holds the namespace: one that this site enables, or that
    is there anyway.
    """
    description: str = ""
    """Free text; bfinfra keeps its mark in the last line under it."""
    limits: Limits = Limits()
    """What all that runs in the namespace may use together."""
    storage: dict[Policy, Limit | None] = Field(default_factory=dict)
    """Storage policy → the most that may be claimed of it; empty = no limit of its own. Policies of this
    site, or there anyway.
    """
    access: tuple[Access, ...] = ()
    """Who may do what in the namespace."""
    vm_classes: tuple[Annotated[str, Ref("vm_class", optional=True)], ...] = ()
    """VM classes that clusters in the namespace may use: of this site, or there anyway."""
    content_libraries: tuple[Annotated[str, Ref("content_library", optional=True)], ...] = ()
    """Content libraries whose images VMs in the namespace may use: of this site, or there anyway."""
