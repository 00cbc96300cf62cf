"""References between resources: do they lead somewhere, to the right kind, and not in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from bfinfra.model.errors import Problem
from bfinfra.model.refs import Edge, Key, edges
from bfinfra.model.suggest import nearest
from bfinfra.spec.merge import Block
from bfinfra.spec.places import place_in

Blocks = Mapping[Key, Block]


def check(specs: Mapping[Key, Any], blocks: Blocks) -> Iterator[Problem]:
    """`specs`: the valid ones; `blocks`: all that is written (a reference to an invalid resource is no second error)."""
    graph: dict[Key, dict[Key, Edge]] = {key: {} for key in specs}
    for key, spec in specs.items():
        for edge in edges(spec):
            there = [target for target in edge.keys if target in blocks]
            if len(there) == 1:
                graph[key][there[0]] = edge
            elif there or not edge.optional:
                yield _ambiguous(key, edge, there, blocks) if there else _dangling(key, edge, blocks)
    yield from _cycles(graph, blocks)


def _dangling(key: Key, edge: Edge, blocks: Blocks) -> Problem:
    at, wanted = place_in(blocks[key], edge.field), " or ".join(edge.kinds)
    if elsewhere := next((other for other in blocks if other.name == edge.name), None):
        return Problem(f"{key}: {edge.field} names {edge.name}, which is a {elsewhere.kind}", at, f"expected the name of a {wanted}",
                       nearest(edge.name, (k.name for k in blocks if k.kind in edge.kinds)))
    names = [other.name for other in blocks if other.kind in edge.kinds]
    return Problem(f"{key}: {edge.field} names {edge.name}, and there is no such {wanted}", at,
                   next=nearest(edge.name, names) or f"add {edge.kinds[0]}: {{{edge.name}: …}}")


def _ambiguous(key: Key, edge: Edge, there: list[Key], blocks: Blocks) -> Problem:
    return Problem(f"{key}: {edge.field} names {edge.name}, which could be {' or '.join(map(str, there))}", place_in(blocks[key], edge.field),
                   next="rename one of them")


def _cycles(graph: dict[Key, dict[Key, Edge]], blocks: Blocks) -> Iterator[Problem]:
    """Each circle once, by its path of names; taken apart at the reference that is reported."""
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            path: list[Key] = error.args[1][::-1]  # graphlib goes from the named to the naming
            edge = graph[path[0]].pop(path[1])
            yield Problem(f"{' → '.join(map(str, path))}: these name each other in a circle", place_in(blocks[path[0]], edge.field),
                          "none of them could be made first", "take one of the references out")
        else:
            return
