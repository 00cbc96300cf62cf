"""Checks the references between resources: that each leads to a resource of the right kind, and that neither
they nor the order that follows makes a cycle.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from bfinfra.model.errors import Problem
from bfinfra.model.order import AFTER, Specs, derived
from bfinfra.model.refs import Edge, Key, edges
from bfinfra.model.suggest import nearest
from bfinfra.spec.merge import Block
from bfinfra.spec.places import place_in

Blocks = Mapping[Key, Block]


def check(specs: Specs, blocks: Blocks) -> Iterator[Problem]:
    """The problems. `specs`: the valid resources; `blocks`: all that are written, so that a reference to an
    invalid resource is no second error.
    """
    graph: dict[Key, dict[Key, Edge]] = {key: {} for key in specs}
    for key, spec in specs.items():
        for edge in edges(spec):
            there = [target for target in edge.keys if target in blocks]
            if len(there) == 1:
                graph[key][there[0]] = edge
            elif there or not edge.optional:
                yield _ambiguous(key, edge, there, blocks) if there else _dangling(key, edge, blocks)
        for index, address in enumerate(spec.after):
            if (other := Key.parse(address)) not in blocks or other == key:
                yield _nowhere(key, f"{AFTER}.{index}", other, blocks)
    if circles := tuple(_cycles(graph, blocks)):
        yield from circles
    else:
        yield from _waiting_in_a_circle(specs, graph, blocks)


def _dangling(key: Key, edge: Edge, blocks: Blocks) -> Problem:
    at, wanted = place_in(blocks[key], edge.field), " or ".join(edge.kinds)
    if elsewhere := next((other for other in blocks if other.name == edge.name), None):
        return Problem(
            f"{key}: {edge.field} names {edge.name}, which is a {elsewhere.kind}",
            at,
            f"expected the name of a {wanted}",
            nearest(edge.name, (k.name for k in blocks if k.kind in edge.kinds)),
        )
    names = [other.name for other in blocks if other.kind in edge.kinds]
    kind, _, name = edge.name.partition("/")
    bare = f"write the name without its kind: {name}" if name and kind in edge.kinds else ""
    return Problem(
        f"{key}: {edge.field} names {edge.name}, and there is no such {wanted}",
        at,
        next=bare or nearest(edge.name, names) or f"add {edge.kinds[0]}: {{{edge.name}: …}}",
    )


def _ambiguous(key: Key, edge: Edge, there: list[Key], blocks: Blocks) -> Problem:
    return Problem(
        f"{key}: {edge.field} names {edge.name}, which could be {' or '.join(map(str, there))}",
        place_in(blocks[key], edge.field),
        next="rename one of them",
    )


def _nowhere(key: Key, field: str, other: Key, blocks: Blocks) -> Problem:
    at = place_in(blocks[key], field)
    if other == key:
        return Problem(f"{key}: {field} names itself", at, next="remove it")
    return Problem(
        f"{key}: {field} names {other}, and there is no such resource",
        at,
        next=nearest(str(other), map(str, blocks)),
    )


def _waiting_in_a_circle(
    specs: Specs, graph: Mapping[Key, Mapping[Key, Edge]], blocks: Blocks
) -> Iterator[Problem]:
    """A cycle in the whole order: references, requirements and `after`. One cycle at a time."""
    order = derived(specs)
    if not order:
        return
    waits = {
        key: {**order.get(key, {}), **{other: edge.field for other, edge in graph[key].items()}}
        for key in specs
    }
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        context: list[Key] = error.args[1][:0:-1]
        written = next(
            (n for n, key in enumerate(context) if waits[key][context[(n + 1) % len(context)]] == AFTER), 0
        )
        path = [*context[written:], *context[: written + 1]]
        pairs = list(itertools.pairwise(path))
        key, other = pairs[0]
        field = f"{AFTER}.{specs[key].after.index(str(other))}" if waits[key][other] == AFTER else ""
        why = "; ".join(f"{one} waits for {two} ({waits[one][two]})" for one, two in pairs)
        yield Problem(
            f"{' → '.join(map(str, path))}: these wait for each other in a cycle",
            place_in(blocks[key], field),
            why,
            f"remove {other} from {AFTER}" if field else "remove one of them",
        )


def _cycles(graph: dict[Key, dict[Key, Edge]], blocks: Blocks) -> Iterator[Problem]:
    """Each cycle once, as a path of names. The reported reference is removed to find the next one."""
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            path: list[Key] = error.args[1][
                ::-1
            ]  # graphlib's path goes from the referenced to the referring resource
            edge = graph[path[0]].pop(path[1])
            yield Problem(
                f"{' → '.join(map(str, path))}: these name each other in a cycle",
                place_in(blocks[path[0]], edge.field),
                "none of them could be created first",
                "remove one of the references",
            )
        else:
            return
