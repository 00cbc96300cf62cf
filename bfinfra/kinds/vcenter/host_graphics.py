"""How hosts share their GPUs: machines with vGPUs want it direct. (RDG for PVRDMA, "vGPU Deployment and
Configuration".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from bfinfra.kinds import capabilities
from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.host_note import RIGHTS
from bfinfra.kinds.vcenter.base.host_setting import Place, State, Steps
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds
from bfinfra.model.step import Step

GRAPHICS = (holds("hosts", "Host.Config.Settings"), *RIGHTS)


class Spec(host_setting.Spec):
    """What a user writes for the graphics type of hosts. It takes effect when the host, or its X.Org service,
    starts again.
    """

    type: Literal["shared", "sharedDirect"] = "sharedDirect"
    """In vSphere's words: shared (vSGA) or sharedDirect (vGPU). Cards that have a type of their own
    keep it.
    """

    @property
    def settings(self) -> tuple[str, ...]:
        """There is one."""
        return ("type",)

    def wanted(self, place: Place, context: PlanContext) -> str:
        """The type."""
        return self.type

    def serves(self) -> tuple[str, ...]:
        """Machines with vGPUs don't start with another type."""
        return (capabilities.GRAPHICS,) if self.type == "sharedDirect" else ()


@dataclass(frozen=True, kw_only=True)
class Set(host_setting.Set):
    """set the graphics type of {host} to {value}, for vGPUs that start once the host or its X.Org service has
    restarted
    """

    rights = GRAPHICS


@dataclass(frozen=True, kw_only=True)
class Seal(host_setting.Seal):
    """note on {host} what was applied of its graphics type"""

    rights = RIGHTS


@dataclass(frozen=True, kw_only=True)
class PutBack(host_setting.PutBack):
    """set the graphics type of {host} back to {value}"""

    rights = GRAPHICS


class HostGraphics(host_setting.HostSettings[Spec, State]):
    """The graphics type of hosts."""

    document = Document.PVRDMA
    step_types = (Set, Seal, PutBack)
    name = "host_graphics"
    prefix = "bfinfra.graphics."
    looked_for = ("type",)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """A step a host."""
        return host_setting.steps(spec, state, context, Steps(Set, Seal, PutBack))

    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """The type; a host without GPUs to share may tell none."""
        return {
            moid: {"type": value}
            for moid, value in self._vcenter.host_settings.graphics(moids).items()
            if value
        }

    def says(self, key: str, value: str) -> Mapping[str, object] | None:
        """The type that vGPUs want; any other is the host's own affair."""
        return {"type": value} if value == "sharedDirect" else None

    def write(self, moid: str, key: str, value: str) -> None:
        """One call."""
        self._vcenter.host_settings.set_graphics(moid, value)
