"""How hosts share their GPUs: machines with vGPUs want it direct. (RDG for PVRDMA, "vGPU Deployment and
Configuration".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from bfinfra.kinds import capabilities
from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.host_note import RIGHTS
from bfinfra.kinds.vcenter.base.host_setting import Place, State, Steps
from bfinfra.kinds.vcenter.gpu_host.spec import PciAddress
from bfinfra.model import resource
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds
from bfinfra.model.step import Step

GRAPHICS = (holds("hosts", "Host.Config.Settings"), *RIGHTS)


Type = Literal["shared", "sharedDirect"]


class Card(resource.Part):
    """One card, on each of the hosts."""

    type: Type | None = None
    """Its own type, in vSphere's words; left out, it keeps the one it has."""
    mode: Literal["sameSize", "mixedSize"] | None = None
    """Whether machines with vGPUs of several sizes share it, from vSphere 8.0.3; left out, it stays as it
    is.
    """


class Spec(host_setting.Spec):
    """What a user writes for the graphics of hosts. A type takes effect when the host, or its X.Org service,
    starts again.
    """

    type: Type = "sharedDirect"
    """In vSphere's words: shared (vSGA) or sharedDirect (vGPU). Cards that have a type of their own
    keep it.
    """
    placement: Literal["performance", "consolidation"] | None = None
    """How machines with vGPUs are spread over a host's cards: performance (as widely as can be) or
    consolidation (a card is filled before the next); left out, it stays as it is.
    """
    cards: dict[PciAddress, Card] = Field(default_factory=dict)
    """Cards that are set in a way of their own, by their PCI address, such as 0000:3b:00.0."""

    def _all(self) -> dict[str, str]:
        """Every value that is set, by its key."""
        found: dict[str, str | None] = {"type": self.type, "placement": self.placement}
        for address, card in self.cards.items():
            found |= {f"type {address}": card.type, f"mode {address}": card.mode}
        return {key: value for key, value in found.items() if value}

    @property
    def settings(self) -> tuple[str, ...]:
        """Those that are written."""
        return tuple(self._all())

    def wanted(self, place: Place, context: PlanContext) -> str:
        """In vSphere's words."""
        return self._all()[place[1]]

    def serves(self) -> tuple[str, ...]:
        """Machines with vGPUs don't start with another type."""
        return (capabilities.GRAPHICS,) if self.type == "sharedDirect" else ()


@dataclass(frozen=True, kw_only=True)
class Set(host_setting.Set):
    """set the graphics {key} of {host} to {value}"""

    rights = GRAPHICS

    def title(self) -> str:
        """A type waits for a restart."""
        late = ", for vGPUs that start once the host or its X.Org service has restarted"
        return f"{super().title()}{late if self.key.startswith('type') else ''}"


@dataclass(frozen=True, kw_only=True)
class Commit(host_setting.Commit):
    """note on {host} what was applied of its graphics {key}"""

    rights = RIGHTS


@dataclass(frozen=True, kw_only=True)
class PutBack(host_setting.PutBack):
    """set the graphics {key} of {host} back to {value}"""

    rights = GRAPHICS


class HostGraphics(host_setting.HostSettings[Spec, State]):
    """How hosts share their GPUs."""

    document = Document.PVRDMA
    step_types = (Set, Commit, PutBack)
    name = "host_graphics"
    prefix = "bfinfra.graphics."
    looked_for = ("type",)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """A step a host."""
        return host_setting.steps(spec, state, context, Steps(Set, Commit, PutBack))

    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """In vSphere's words; a host without GPUs to share may tell none."""
        return self._vcenter.host_settings.graphics(moids)

    def says(self, key: str, value: str) -> Mapping[str, object] | None:
        """The type that vGPUs want; any other, and how a host shares its cards, is the host's own affair."""
        return {"type": value} if (key, value) == ("type", "sharedDirect") else None

    def write(self, moid: str, key: str, value: str) -> None:
        """One call."""
        self._vcenter.host_settings.set_graphics(moid, key, value)
