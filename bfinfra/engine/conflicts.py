"""Finds conflicts between resources that depend on the observed state, before anything is written. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Malformed
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key, edges


def of_kinds(
    wanted: Specs, states: Specs, observed: ObservedState, kinds: Kinds, unreadable: dict[Key | str, str]
) -> Iterator[Conflict]:
    """The conflicts that each kind finds. A kind that fails on a server's answer is added to `unreadable`.
    `states`: the states of the site's resources.
    """
    for name in dict.fromkeys(key.kind for key in (*wanted, *states)):
        if name in kinds and name not in unreadable:
            try:
                with provider_errors(name):
                    yield from tuple(kinds[name].conflicts(wanted, states, observed.facts.get(name)))
            except Malformed as error:
                unreadable[name] = str(error)


def still_named(wanted: Specs, going: Collection[Key]) -> Iterator[Conflict]:
    """The resources that would be deleted although another resource names them. Loading the file misses
    these: the reference may name a resource that the site does not describe.
    """
    for key, spec in wanted.items() if going else ():
        for edge in edges(spec):
            if edge.optional and (other := next((each for each in edge.keys if each in going), None)):
                yield Conflict(
                    Spot(key, edge.field),
                    f"{other} would be deleted, but this field names it",
                    why="it is no longer in the file",
                    next=f"remove it here as well, or add {other} to the file again",
                )
