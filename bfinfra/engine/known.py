"""The desired and the observed state as decisions read it. Each context is made when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.engine import graph
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.siblings import Everyone, Siblings


@dataclass(frozen=True)
class Known:
    """For several decisions on an unchanged state."""

    site: str
    wanted: Specs
    states: Specs
    facts: Mapping[Key | str, Any]
    _kinds: dict[str, Siblings] = field(default_factory=dict)

    def __contains__(self, key: object) -> bool:
        return key in self.wanted or key in self.states

    def context(self, key: Key, spec: object) -> PlanContext:
        """Return the context of a decision on this resource: all it may read besides `spec` (None: to be
        deleted) and its state.
        """
        fields = graph.resolve(spec if spec is not None else self.states.get(key), self)
        needs = {
            name: ResolvedRef(other, self.wanted.get(other), self.states.get(other))
            for name, other in fields.items()
        }
        if key.kind not in self._kinds:
            self._kinds[key.kind] = Siblings(Everyone(key.kind, self.wanted, self.states))
        return PlanContext(
            Mark(self.site, str(key)),
            needs,
            self._kinds[key.kind].but(key.name),
            self.facts.get(key, self.facts.get(key.kind)),
            self.wanted,
        )
