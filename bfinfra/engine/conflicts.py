"""What resources can't be together, by what was seen, before anything is written. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Malformed
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key, edges


def of_kinds(
    wanted: Specs, states: Specs, world: ObservedState, kinds: Kinds, unreadable: dict[Key | str, str]
) -> Iterator[Conflict]:
    """What each kind says of its own; one that trips over what a server said is added to `unreadable`.
    `states`: those of the site.
    """
    for name in dict.fromkeys(key.kind for key in (*wanted, *states)):
        if name in kinds and name not in unreadable:
            try:
                with provider_errors(name):
                    yield from tuple(kinds[name].conflicts(wanted, states, world.facts.get(name)))
            except Malformed as error:
                unreadable[name] = str(error)


def still_named(wanted: Specs, going: Collection[Key]) -> Iterator[Conflict]:
    """What would be deleted though a resource that stays names it: a name that the site need not describe is
    not missed by its file alone.
    """
    for key, spec in wanted.items() if going else ():
        for edge in edges(spec):
            if edge.optional and (other := next((each for each in edge.keys if each in going), None)):
                yield Conflict(
                    Spot(key, edge.field),
                    f"{other} would be deleted, and this names it",
                    why="it left the file",
                    next=f"take it out here as well, or write {other} again",
                )
