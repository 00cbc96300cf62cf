"""Sharing of hosts' GPUs: VMs with vGPUs need the type sharedDirect. (RDG for PVRDMA, "vGPU Deployment and
Configuration".)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field

from bfinfra.kinds import capabilities
from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.host_note import RIGHTS
from bfinfra.kinds.vcenter.base.host_setting import Place, State
from bfinfra.kinds.vcenter.gpu_host.spec import PciAddress
from bfinfra.model import resource
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.order import Capability, Specs
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds

GRAPHICS = (holds("hosts", "Host.Config.Settings"), *RIGHTS)


Type = Literal["shared", "sharedDirect"]


class Card(resource.Part):
    """One card, on each of the hosts."""

    type: Type | None = None
    """The card's own type, in vSphere's words; left out, it stays as it is."""
    mode: Literal["sameSize", "mixedSize"] | None = None
    """Whether VMs with vGPUs of different sizes may share the card, from vSphere 8.0.3; left out, it stays as
    it is.
    """


class Spec(host_setting.Spec):
    """The desired state of the graphics of hosts. A type takes effect when the host, or its X.Org service,
    restarts.
    """

    type: Type = "sharedDirect"
    """In vSphere's words: shared (vSGA) or sharedDirect (vGPU). Cards with a type of their own keep it."""
    placement: Literal["performance", "consolidation"] | None = None
    """How VMs with vGPUs are spread over a host's cards: performance (over as many as possible) or
    consolidation (fill a card before the next); left out, it stays as it is.
    """
    cards: dict[PciAddress, Card] = Field(default_factory=dict)
    """Cards with settings of their own, by PCI address, such as 0000:3b:00.0."""

    def _all(self) -> dict[str, str]:
        """The keys and values of all settings."""
        found: dict[str, str | None] = {"type": self.type, "placement": self.placement}
        for address, card in self.cards.items():
            found |= {f"type {address}": card.type, f"mode {address}": card.mode}
        return {key: value for key, value in found.items() if value}

    @property
    def settings(self) -> tuple[str, ...]:
        """The keys of the settings that the site gives."""
        return tuple(self._all())

    def wanted(self, place: Place, context: PlanContext) -> str:
        """The value, in vSphere's words."""
        return self._all()[place[1]]

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The drivers of hosts, which report what can be set."""
        yield capabilities.driver()

    def serves(self) -> tuple[str, ...]:
        """The capability that VMs with vGPUs need: with another type they don't start."""
        return (capabilities.GRAPHICS,) if self.type == "sharedDirect" else ()


@dataclass(frozen=True, kw_only=True)
class Set(host_setting.Set):
    """set the graphics {key} of {host} to {value}"""

    rights = GRAPHICS

    def title(self) -> str:
        """The title; for a type, with the restart that it needs."""
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
    prefix = ATTRIBUTES["host_graphics"]
    looked_for = ("type",)

    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """The values in vSphere's words, by host id and key; a host without such GPUs may have none."""
        return self._vcenter.host_settings.graphics(moids)

    def says(self, key: str, value: str) -> Mapping[str, object] | None:
        """The type that vGPUs need. Other types and settings are not described."""
        return {"type": value} if (key, value) == ("type", "sharedDirect") else None

    def write(self, moid: str, key: str, value: str) -> None:
        """Sets a value, in one call."""
        self._vcenter.host_settings.set_graphics(moid, key, value)
