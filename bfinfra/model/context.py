"""The context of a decision: all it may read besides the resource's own spec and state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.model.compare import Unknown
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.siblings import Pair, Siblings


@dataclass(frozen=True)
class ResolvedRef:
    """A resource that a reference names: its key, spec and state, as far as they are known."""

    key: Key
    spec: Any
    state: Any

    def get(self, name: str) -> Any:
        """The state's field; Unknown if the resource or the field does not exist yet."""
        value = None if self.state is None else getattr(self.state, name)
        return Unknown(self.key, name) if value is None else value


@dataclass(frozen=True)
class PlanContext:
    """The context of a decision: all it may read besides the resource's own spec and state; frozen.

    `mark`: the mark to write, pending. `needs`: dotted field of a reference (`cluster`, `tokens.0`) → its
    resource. `siblings`: the other resources of the kind, desired or existing, by name. `facts`: what
    `observe` returned beside the states. `wanted`: every resource of the site, for what kinds share.
    """

    mark: Mark
    needs: Mapping[str, ResolvedRef] = field(default_factory=dict)
    siblings: Mapping[str, Pair] = field(default_factory=dict)
    facts: Any = None
    wanted: Specs = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the resource."""
        return self.mark.name

    def sharing(self, field: str) -> dict[str, Pair]:
        """The siblings whose spec or state has the same value in this field as `spec`."""
        siblings = self.siblings if isinstance(self.siblings, Siblings) else Siblings(self.siblings)
        return siblings.naming(field, self.needs[field].key.name)
