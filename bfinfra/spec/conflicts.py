"""Finds conflicts between the resources of a site, from the file alone."""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.model.conflict import Conflict, covered, twice
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key


def check(specs: Specs) -> Iterator[Conflict]:
    """The conflicts: what two resources both need for themselves, overlapping addresses, and those that a
    kind finds.
    """
    taken = [(key, each) for key, spec in specs.items() for each in spec.takes(key.name)]
    yield from twice(taken)
    yield from covered(((key, each) for key, spec in specs.items() for each in spec.inside()), taken)
    kinds: dict[str, list[Key]] = {}
    for key in specs:
        kinds.setdefault(key.kind, []).append(key)
    for keys in kinds.values():
        yield from specs[keys[0]].conflicts({key: specs[key] for key in keys}, specs)
