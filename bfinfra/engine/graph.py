"""Order: who must be done before whom. Knows keys, references, and what is provided and required."""

from __future__ import annotations

from collections.abc import Container, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from bfinfra.model.errors import BfinfraError
from bfinfra.model.order import Before, Specs, derived
from bfinfra.model.refs import Key, edges, kinds_named


def resolve(value: Any, known: Container[Key]) -> dict[str, Key]:
    """Dotted field → key, for every reference of a spec or state; where nobody bears the name, the first kind
    it may name.
    """
    return {
        edge.field: next((key for key in edge.keys if key in known), edge.keys[0]) for edge in edges(value)
    }


def waits(wanted: Specs, states: Specs, standing: Specs | None = None) -> Before:
    """For each key, what must be done first, and why.

    What is wanted waits for what it refers to and for what provides what it requires; what goes waits until
    all that needs it has let go. `standing`: as which specs the states were applied, and of the file what has
    no state (a token, a machine): what needs that needs what stands behind it.
    """
    everything = {**dict.fromkeys(states), **dict.fromkeys(wanted)}
    before = {
        key: dict.fromkeys(
            (other for other in resolve(wanted.get(key), everything).values() if other in wanted), ""
        )
        for key in everything
    }
    for key, others in derived(wanted).items():
        before[key] = others | before[key]
    if going := everything.keys() - wanted.keys():
        for key in everything:
            for other in going.intersection(resolve(states.get(key), everything).values()):
                before[other][key] = ""
        return _letting_go(before, going, standing or {})
    return before


def _letting_go(before: dict[Key, dict[Key, str]], going: Container[Key], standing: Specs) -> Before:
    """With what goes after what requires it; unless that makes a circle, as what stands may differ from what
    the file says: it has to go anyhow.
    """
    more, required = {key: dict(first) for key, first in before.items()}, derived(standing)
    for key in before.keys() & standing.keys():
        for other, why in _needed(key, standing, required, before).items():
            if other in going:
                more[other].setdefault(key, why)
    try:
        TopologicalSorter(more).prepare()
    except CycleError:
        return before
    return more


def _needed(key: Key, standing: Specs, required: Before, known: Container[Key]) -> dict[Key, str]:
    """What a resource requires, and what stands behind that of it which is not `known`."""
    found, behind = dict(required.get(key, {})), [key]
    seen = set(behind)
    while behind:
        here = behind.pop()
        for other in (*resolve(standing[here], standing).values(), *required.get(here, ())):
            if other in known:
                if here != key:
                    found.setdefault(other, f"by {here}")
            elif other in standing and other not in seen:
                seen.add(other)
                behind.append(other)
    return found


def sort(before: Before) -> tuple[Key, ...]:
    """The keys, each after those it waits for, otherwise in the order given. BfinfraError names a cycle."""
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise BfinfraError("these wait for each other: " + " → ".join(map(str, error.args[1]))) from None


def levels(kinds: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Kinds in the order in which they can be surveyed: those of one level look at what earlier levels saw
    only.
    """
    sorter = TopologicalSorter(
        {
            name: {
                other
                for other in kinds_named(kind.Spec) | kinds_named(kind.State)
                if other in kinds and other != name and not kind.alone
            }
            for name, kind in kinds.items()
        }
    )
    sorter.prepare()
    found = []
    while sorter.is_active():
        level = tuple(sorted(sorter.get_ready()))
        found.append(level)
        sorter.done(*level)
    return tuple(found)
