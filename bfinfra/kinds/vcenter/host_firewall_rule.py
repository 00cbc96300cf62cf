"""A rule set of the firewall on hosts, such as PVRDMA's. (RDG for PVRDMA, "Network and Security
Configuration": port 28250.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import StringConstraints

from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.capabilities import PVRDMA
from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.host_note import RIGHTS
from bfinfra.kinds.vcenter.base.host_setting import Place, State
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds

RULE = (holds("hosts", "Host.Config.NetService"), *RIGHTS)
WORDS = {True: "on", False: "off"}


class Spec(host_setting.Spec):
    """The desired state of one rule set on hosts."""

    ruleset: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,60}$")]
    """The rule set's name, such as pvrdma."""
    enabled: bool = True
    """Whether the rule set lets its traffic pass."""

    @property
    def settings(self) -> tuple[str, ...]:
        """The rule set."""
        return (self.ruleset,)

    def wanted(self, place: Place, context: PlanContext) -> str:
        """`on` or `off`."""
        return WORDS[self.enabled]

    def serves(self) -> tuple[str, ...]:
        """The capability that PVRDMA needs, for its own rule set."""
        return (PVRDMA,) if self.ruleset == "pvrdma" else ()


@dataclass(frozen=True, kw_only=True)
class Set(host_setting.Set):
    """switch the rule set {key} on {host} {value}"""

    rights = RULE


@dataclass(frozen=True, kw_only=True)
class Commit(host_setting.Commit):
    """note on {host} what was applied of the rule set {key}"""

    rights = RIGHTS


@dataclass(frozen=True, kw_only=True)
class PutBack(host_setting.PutBack):
    """switch the rule set {key} on {host} back {value}"""

    rights = RULE


class HostFirewallRule(host_setting.HostSettings[Spec, State]):
    """A rule set of the firewall on hosts, enabled or disabled."""

    document = Document.PVRDMA
    step_types = (Set, Commit, PutBack)
    name = "host_firewall_rule"
    prefix = ATTRIBUTES["host_firewall_rule"]
    looked_for = ("pvrdma",)

    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """`on` or `off`, by host id and rule set."""
        found = self._vcenter.host_settings.rulesets(moids, keys)
        return {moid: {key: WORDS[on] for key, on in each.items()} for moid, each in found.items()}

    def says(self, key: str, value: str) -> Mapping[str, object] | None:
        """The rule set, if it is on."""
        return {"ruleset": key} if value == WORDS[True] else None

    def write(self, moid: str, key: str, value: str) -> None:
        """Switches the rule set, in one call."""
        self._vcenter.host_settings.set_ruleset(moid, key, on=value == "on")
