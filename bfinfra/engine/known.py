"""What is wanted and what was seen, put in order once for all the decisions that look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bfinfra.engine import graph
from bfinfra.model.kind import Around, Need
from bfinfra.model.mark import Mark
from bfinfra.model.peers import Pair, Peers
from bfinfra.model.refs import Key

Things = Mapping[Key, Any]


@dataclass(frozen=True)
class Known:
    """Of one moment: it doesn't follow what changes later. `all`: spec or, where none, state; `kinds`: kind → everyone of it."""

    site: str
    wanted: Things
    states: Things
    facts: Mapping[Key | str, Any]
    all: Things
    kinds: Mapping[str, Peers]

    @classmethod
    def of(cls, site: str, wanted: Things, states: Things, facts: Mapping[Key | str, Any]) -> Known:
        """In one pass over everything."""
        everything = {**states, **wanted}
        kinds: dict[str, dict[str, Pair]] = {}
        for key in everything:
            kinds.setdefault(key.kind, {})[key.name] = (wanted.get(key), states.get(key))
        return cls(site, wanted, states, facts, everything, {kind: Peers(everyone) for kind, everyone in kinds.items()})

    def around(self, key: Key, spec: Any) -> Around:
        """What a decision on this spec of a resource, or None, may look at besides its own spec and state."""
        state = self.states.get(key)
        fields = graph.resolve(spec if spec is not None else state, self.all)
        needs = {name: Need(other, self.wanted.get(other), self.states.get(other)) for name, other in fields.items()}
        return Around(Mark(self.site, str(key)), needs, self.kinds.get(key.kind, Peers({})).but(key.name), self.facts.get(key, self.facts.get(key.kind)))
