"""The order in which resources are created, changed and deleted. Knows keys, references, and what resources
provide and require.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from bfinfra.model.errors import BfinfraError
from bfinfra.model.order import Before, Specs, derived
from bfinfra.model.refs import Key, edges, kinds_named

T = TypeVar("T")


def resolve(value: object, known: Container[Key]) -> dict[str, Key]:
    """Dotted field → key, for every reference of a spec or state. Where no resource has the name, the key has
    the first kind that the field may name.
    """
    return {
        edge.field: next((key for key in edge.keys if key in known), edge.keys[0]) for edge in edges(value)
    }


def waits(wanted: Specs, states: Specs, existing: Specs | None = None) -> Before:
    """For each key, the keys that must be done first, and why.

    A resource of the site waits for what it refers to and for what provides what it requires. A resource to
    be deleted waits until all that needs it no longer does. `existing`: the specs that the existing resources
    were applied with, and the site's resources without a state (a token, a machine): a resource that needs
    one of those also needs what is behind it.
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
        return _letting_go(before, going, existing or {})
    return before


def _letting_go(before: dict[Key, dict[Key, str]], going: Container[Key], existing: Specs) -> Before:
    """The order, in which a resource to be deleted also waits for those that require it. Where that makes a
    cycle, `before` as it was: what exists may differ from what the file says, and it has to be deleted
    anyway.
    """
    more, required = {key: dict(first) for key, first in before.items()}, derived(existing)
    for key in before.keys() & existing.keys():
        for other, why in _needed(key, existing, required, before).items():
            if other in going:
                more[other].setdefault(key, why)
    try:
        TopologicalSorter(more).prepare()
    except CycleError:
        return before
    return more


def _needed(key: Key, existing: Specs, required: Before, known: Container[Key]) -> dict[Key, str]:
    """The keys that a resource requires, also through resources that are not in `known`, with the reason."""
    found, behind = dict(required.get(key, {})), [key]
    visited = set(behind)
    while behind:
        here = behind.pop()
        for other in (*resolve(existing[here], existing).values(), *required.get(here, ())):
            if other in known:
                if here != key:
                    found.setdefault(other, f"by {here}")
            elif other in existing and other not in visited:
                visited.add(other)
                behind.append(other)
    return found


def closure(first: Iterable[T], following: Callable[[T], Iterable[T]]) -> frozenset[T]:
    """These and all that `following` leads to from them, directly or not."""
    found, left = set[T](), [*first]
    while left:
        if (each := left.pop()) not in found:
            found.add(each)
            left += following(each)
    return frozenset(found)


def sort(before: Before) -> tuple[Key, ...]:
    """The keys, each after those it waits for, otherwise in the order given. Raises BfinfraError with the
    cycle.
    """
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise BfinfraError("these wait for each other: " + " → ".join(map(str, error.args[1]))) from None


def levels(kinds: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Kinds in the order in which they are surveyed. The kinds of a level need only the states of earlier
    levels.
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
