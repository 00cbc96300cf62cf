"""Order: who must be done before whom. Knows keys and references only."""

from __future__ import annotations

from collections.abc import Container, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key, edges, kinds_named


def resolve(value: Any, known: Container[Key]) -> dict[str, Key]:
    """Dotted field → key, for every reference of a spec or state; where nobody bears the name, the first kind it may name."""
    return {edge.field: next((key for key in edge.keys if key in known), edge.keys[0]) for edge in edges(value)}


def waits(wanted: Mapping[Key, Any], states: Mapping[Key, Any]) -> dict[Key, tuple[Key, ...]]:
    """For each key, what must be done first.

    What is wanted waits for what it refers to; what goes waits until everything that refers to it has let go.
    """
    everything = {**dict.fromkeys(states), **dict.fromkeys(wanted)}
    before = {key: dict.fromkeys(other for other in resolve(wanted.get(key), everything).values() if other in wanted) for key in everything}
    if going := everything.keys() - wanted.keys():
        for key in everything:
            for other in going.intersection(resolve(states.get(key), everything).values()):
                before[other][key] = None
    return {key: tuple(first) for key, first in before.items()}


def sort(before: Mapping[Key, tuple[Key, ...]]) -> tuple[Key, ...]:
    """The keys, each after those it waits for, otherwise in the order given. BfinfraError names a cycle."""
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise BfinfraError("these wait for each other: " + " → ".join(map(str, error.args[1]))) from None


def levels(kinds: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Kinds in the order in which they can be surveyed: those of one level look at what earlier levels saw only."""
    sorter = TopologicalSorter({
        name: {other for other in kinds_named(kind.Spec) | kinds_named(kind.State) if other in kinds and other != name and not kind.alone}
        for name, kind in kinds.items()
    })
    sorter.prepare()
    found = []
    while sorter.is_active():
        level = tuple(sorted(sorter.get_ready()))
        found.append(level)
        sorter.done(*level)
    return tuple(found)
