"""The desired state of the image of a cluster's hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds import capabilities
from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.host_setting import Place
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,59}$")]
Version = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,79}$")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s@]+$")]


class Depot(resource.Part):
    """An offline depot, a ZIP file of a vendor."""

    url: Url
    """Where vCenter itself fetches it, such as https://repo.example.com/vgpu-host.zip."""


class Spec(host_setting.SettingSpec):
    """The desired state of components of one cluster's image. The image itself must exist."""

    thing: ClassVar[str] = "cluster"

    cluster: str
    """The vSphere cluster, which must have an image."""
    components: Annotated[dict[Name, Version], Field(min_length=1)]
    """Component → version, as the depot names them. Other components of the image stay."""
    depot: Depot | None = None
    """Where the components come from, if vCenter doesn't have them."""
    remediate: Literal["never", "if_needed"] = "never"
    """never: change the image only; if_needed: also install it on hosts that differ. They enter maintenance
    mode and may restart.
    """
    at_once: Annotated[int, Field(ge=1)] = 1
    """How many hosts one remediation includes. vCenter takes them one after the other, unless the cluster's
    own policy says otherwise.
    """
    accept_eula: bool = False
    """Whether you accept VMware's End User License Agreement, without which vCenter remediates nothing."""

    @property
    def on(self) -> tuple[str, ...]:
        """The cluster."""
        return (self.cluster,)

    @property
    def settings(self) -> tuple[str, ...]:
        """The components."""
        return tuple(self.components)

    @model_validator(mode="after")
    def _accepted(self) -> Spec:
        if self.remediate == "if_needed" and not self.accept_eula:
            raise FieldError(
                "vCenter remediates no host without it",
                "accept_eula",
                "read VMware's End User License Agreement, then write accept_eula: true",
            )
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Each component of the cluster's image, which two resources can't both set."""
        for each in self.components:
            yield conflict.thing(f"components.{each}", f"{each} of {self.cluster}", "host_image")

    def wanted(self, place: Place, context: PlanContext) -> str:
        """The version."""
        return self.components[place[1]]

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The hosts of the cluster with their drivers."""
        yield capabilities.hosts(self.cluster)
        yield capabilities.driver()
