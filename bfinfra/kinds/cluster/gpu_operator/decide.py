"""From the steps of the objects to those of the operator: in the order that its operands need, with what each
change does to nodes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TypeVar

from bfinfra.kinds.cluster.base.rendered.objects import CUSTOM, WORKLOADS
from bfinfra.kinds.cluster.base.rendered.rendering import Rendering
from bfinfra.kinds.cluster.base.rendered.steps import Commit, Delete, Fields, Objects, Update
from bfinfra.kinds.cluster.gpu_operator import drivers, layouts
from bfinfra.kinds.cluster.gpu_operator.policy import CLAIMS, DRIVER, GROUP, KIND
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.kinds.cluster.gpu_operator.state import GpuState
from bfinfra.kinds.cluster.gpu_operator.steps import (
    AwaitNoOperands,
    AwaitOperator,
    DeletePolicy,
    UpdateDriver,
    UpdateOperator,
)
from bfinfra.model.mark import Mark
from bfinfra.model.step import Step

S = TypeVar("S", bound=Objects)


def with_nodes(
    found: Sequence[Step], spec: Spec, state: GpuState, rendering: Rendering, place: tuple[str, Mark]
) -> Iterator[Step]:
    """The steps of the objects, of the drivers, of the nodes; last the note of what was applied. `place`: the
    resource's name and mark.
    """
    commit = found[-1:] if found and type(found[-1]) is Commit else ()
    objects = found[: len(found) - len(commit)]
    yield from _with_effects(objects, state, rendering)
    restarts = tuple(drivers.steps(spec, state, rendering, objects))
    yield from restarts
    nodes = tuple(layouts.steps(spec, state))
    begun = any(state.mine(node) for node in state.nodes.values())
    if nodes and not begun and (objects or restarts or not says_ready(state)):
        of = tuple(each for each in rendering.manifests if each.type in MAIN)
        name, mark = place
        yield AwaitOperator(name=name, cluster=state.cluster, home=state.home, objects=of, mark=mark)
    yield from nodes
    yield from commit


MAIN = ((GROUP, KIND), (GROUP, CLAIMS))


def says_ready(state: GpuState) -> bool:
    """Whether the operator says that it is ready."""
    found = [thing.manifest for each, thing in state.things.items() if each.type in MAIN]
    return bool(found) and all((each.get("status") or {}).get("state") == "ready" for each in found)


def _with_effects(objects: Sequence[Step], state: GpuState, rendering: Rendering) -> Iterator[Step]:
    """The steps; those after which the operator does something to nodes are of a type that says so."""
    for number, step in enumerate(objects):
        if type(step) is not Update:
            yield step
        elif (
            state.drivers
            and drivers.upgraded_by_operator(rendering.manifests)
            and drivers.driver_changes([step])
        ):
            nodes = ", ".join(sorted({each.node for each in state.drivers}))
            yield _as(UpdateDriver, step, nodes=nodes)
        elif _of_workloads(step) and any(_of_custom(later) for later in objects[number + 1 :]):
            yield _as(UpdateOperator, step)
        else:
            yield step


def removal(found: Sequence[Step], state: GpuState) -> Iterator[Step]:
    """The steps of a deletion: nodes are released, then the ClusterPolicy goes, with its operands, and then
    the operator that looks after it.
    """
    yield from layouts.steps(None, state)
    policy = any(isinstance(step, Delete) and _of_custom(step) for step in found)
    if state.operands and not policy:
        yield AwaitNoOperands(cluster=state.cluster, operands=", ".join(state.operands))
    for step in found:
        if isinstance(step, Delete) and any(each.type in (*MAIN, (GROUP, DRIVER)) for each in step.objects):
            yield _as(DeletePolicy, step)
        else:
            yield step


def _of_workloads(step: Objects) -> bool:
    return any(each.kind in WORKLOADS for each in step.objects)


def _of_custom(step: Step) -> bool:
    return isinstance(step, Objects) and any(each.stage == CUSTOM for each in step.objects)


def _as(of: type[S], step: Objects, **more: str) -> S:
    """The same step as one of another type."""
    given: Fields = {each.name: getattr(step, each.name) for each in fields(step)}
    return of(**given | more)
