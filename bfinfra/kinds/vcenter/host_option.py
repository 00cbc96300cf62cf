"""An advanced option of hosts, such as the VMkernel adapter that PVRDMA uses. (RDG for PVRDMA, "How-to
Configure PVRDMA".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import StringConstraints, model_validator

from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.capabilities import PVRDMA
from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.host_note import RIGHTS
from bfinfra.kinds.vcenter.base.host_setting import Place
from bfinfra.model.choice import one_of
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref
from bfinfra.model.rights import holds

OPTION = (holds("hosts", "Host.Config.AdvancedConfig"), *RIGHTS)


class Spec(host_setting.Spec):
    """The desired state of one option on hosts."""

    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.]{1,60}$")]
    """The option, such as Net.PVRDMAVmknic."""
    value: str | None = None
    """The value; numbers and booleans (True, False) as text."""
    adapter: Annotated[str, Ref("vmkernel_adapter")] | None = None
    """Instead of a value: the vmkernel_adapter whose device name, on each host its own, is the value."""

    @model_validator(mode="after")
    def _one(self) -> Spec:
        one_of(value=self.value, adapter=self.adapter)
        return self

    @property
    def settings(self) -> tuple[str, ...]:
        """The option."""
        return (self.key,)

    def wanted(self, place: Place, context: PlanContext) -> str | Unknown:
        """The value, or the adapter's device name on this host."""
        if self.value is not None:
            return self.value
        need = context.needs["adapter"]
        devices: Mapping[str, str] = need.state.devices if need.state else {}
        return devices.get(place[0]) or Unknown(need.key, f"device on {place[0]}")

    def serves(self) -> tuple[str, ...]:
        """The capability that PVRDMA needs, for the option that names its adapter."""
        return (PVRDMA,) if self.key == "Net.PVRDMAVmknic" else ()


@dataclass(frozen=True, kw_only=True)
class State(host_setting.State):
    """The options as they are on the hosts."""

    adapter: Annotated[str, Ref("vmkernel_adapter")] | None = None


@dataclass(frozen=True, kw_only=True)
class Set(host_setting.Set):
    """set {key} on {host} to {value}"""

    rights = OPTION


@dataclass(frozen=True, kw_only=True)
class Commit(host_setting.Commit):
    """note on {host} what was applied of {key}"""

    rights = RIGHTS


@dataclass(frozen=True, kw_only=True)
class PutBack(host_setting.PutBack):
    """put {key} on {host} back to {value}"""

    rights = OPTION


class HostOption(host_setting.HostSettings[Spec, State]):
    """An advanced option of hosts."""

    document = Document.PVRDMA
    step_types = (Set, Commit, PutBack)
    name = "host_option"
    prefix = ATTRIBUTES["host_option"]
    looked_for = ("Net.PVRDMAVmknic",)

    def refers(self, applied: Mapping[str, object]) -> Mapping[str, Any]:
        """The adapter, which is deleted after the option that names it."""
        return {"adapter": applied.get("adapter")}

    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """The options as text, by host id and key."""
        found = self._vcenter.host_settings.options(moids, keys)
        return {moid: {key: str(value) for key, value in each.items()} for moid, each in found.items()}

    def says(self, key: str, value: str) -> Mapping[str, object] | None:
        """The option, if it has a value."""
        return {"key": key, "value": value} if value else None

    def write(self, moid: str, key: str, value: str) -> None:
        """Sets an option, in one call."""
        self._vcenter.host_settings.set_option(moid, key, value)
