"""What a decision may look at besides its own spec and state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.model.compare import Unknown
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.siblings import Pair, Siblings


@dataclass(frozen=True)
class ResolvedRef:
    """What is known of a resource that a reference names."""

    key: Key
    spec: Any
    state: Any

    def get(self, name: str) -> Any:
        """The state's field, or Unknown where the resource doesn't stand yet or doesn't have it yet."""
        value = None if self.state is None else getattr(self.state, name)
        return Unknown(self.key, name) if value is None else value


@dataclass(frozen=True)
class PlanContext:
    """What a decision may look at besides its own spec and state; frozen.

    `mark`: the mark to write, pending. `needs`: by the dotted field that holds the reference (`cluster`,
    `tokens.0`). `siblings`: the same kind's others, wanted or standing, by name. `facts`: what `observe`
    brought along.
    """

    mark: Mark
    needs: Mapping[str, ResolvedRef] = field(default_factory=dict)
    siblings: Mapping[str, Pair] = field(default_factory=dict)
    facts: Any = None

    @property
    def name(self) -> str:
        """The name of the resource that is decided on."""
        return self.mark.name

    def sharing(self, field: str) -> dict[str, Pair]:
        """The siblings whose spec or state names in this field the same resource as one's own spec."""
        siblings = self.siblings if isinstance(self.siblings, Siblings) else Siblings(self.siblings)
        return siblings.naming(field, self.needs[field].key.name)
