"""Dividing the GPUs of nodes (MIG), one node after the other: cordon, wait until no pod uses them, label,
wait until the MIG manager has done it, uncordon. With resource claims the DRA driver is restarted before
that: it publishes what it found when it started, and the MIG manager doesn't restart it. All that is known is
on the node, so that a run may end at any instant. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bfinfra.formats.shell import word
from bfinfra.kinds.cluster.base.rendered.steps import Fields
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.kinds.cluster.gpu_operator.state import BUSY, GpuState, Node, Note, Parts, User
from bfinfra.kinds.cluster.gpu_operator.steps import (
    AwaitDivision,
    AwaitPods,
    AwaitSlice,
    Cordon,
    Divide,
    Evict,
    LeaveCordoned,
    RestartPlugin,
    TryAgain,
    Uncordon,
)
from bfinfra.model import suggest
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Refusal
from bfinfra.model.readiness import READY, Readiness, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.step import Step

FIELD = "mig_layouts"
SHOWN = 10  # pods in a message


def steps(spec: Spec | None, state: GpuState) -> Iterator[Step]:
    """The steps at all nodes. `spec`: None if the resource is to be deleted. Raises Refusal."""
    for node in (state.nodes[name] for name in sorted(state.nodes)):
        wanted = spec.layout_of(node.name, node.labels) if spec and node.has_gpus else ""
        place: Fields = {"node": node.name, "cluster": state.cluster, "home": state.home}
        mine = state.mine(node)
        if not wanted:
            if mine:
                if node.progress in BUSY:
                    yield AwaitDivision(**place, layout=node.layout)
                yield _released(node, place)
        elif mine or not done(node, wanted) or state.stale(node):
            _refuse(node, wanted, state)
            yield from _of_node(node, wanted, spec, state, place)


def done(node: Node, wanted: str) -> bool:
    """Whether a node's GPUs are divided as wanted."""
    return node.layout == wanted and node.progress == "success"


def _refuse(node: Node, wanted: str, state: GpuState) -> None:
    if node.note is not None and not state.mine(node):
        raise Refusal(f"the GPUs of node {node.name} are being divided by {node.note.by}", field=FIELD)
    if node.vgpu:
        raise Refusal(
            f"node {node.name} has vGPUs, which are divided on their host",
            field=FIELD,
            next="leave the node out",
        )
    if node.name in state.dynamic:
        raise Refusal(
            f"the DRA driver of node {node.name} divides its GPUs as they are claimed",
            field=FIELD,
            why="it removes parts that it did not make",
            next="leave the node out, or turn off the driver's feature gate DynamicMIG",
        )
    if node.labels.get("nvidia.com/mig.capable") == "false":
        raise Refusal(
            f"the GPUs of node {node.name} can't be divided", field=FIELD, next="leave the node out"
        )
    if state.layouts is not None and wanted not in state.layouts:
        raise Refusal(
            f"the MIG manager has no layout {wanted}",
            field=FIELD,
            next=suggest.nearest(wanted, state.layouts),
        )


def _of_node(node: Node, wanted: str, spec: Spec | None, state: GpuState, place: Fields) -> Iterator[Step]:
    mine = state.mine(node)
    again = _again(node) if node.layout == wanted else ""
    note = Note(state.owner, cordoned=_was_cordoned(node, state), again=again)
    change = (Change(f"nodes.{node.name}.layout", _shown(node), wanted),)
    there = done(node, wanted)
    if there or (node.layout == wanted and not again):
        if not mine and state.slices is not None:
            yield Cordon(**place, layout=wanted, note=note.encode(), version=node.version)
        if not there:
            yield AwaitDivision(**place, layout=wanted, changes=change)
        yield from _publishing(node, wanted, note, state, place)
        if mine or state.slices is not None:
            yield _released(node, place, cordoned=None if mine else note.cordoned)
        return
    if not (mine and node.cordoned):
        yield Cordon(**place, layout=wanted, note=note.encode(), version=node.version)
    if node.progress in BUSY:
        yield AwaitDivision(**place, layout=node.layout)
    yield from _emptied(node, spec, place)
    if again:
        yield TryAgain(
            **place,
            layout=wanted,
            namespace=state.namespace,
            pod=node.manager[0],
            note=note.encode(),
            changes=change,
        )
    else:
        yield Divide(**place, layout=wanted, note=note.encode(), changes=change)
    yield from _publishing(node, wanted, note, state, place)
    yield _released(node, place, cordoned=note.cordoned)


def _publishing(node: Node, wanted: str, note: Note, state: GpuState, place: Fields) -> Iterator[Step]:
    """The DRA driver finds the GPUs anew once they are divided."""
    if state.slices is None:
        return
    found = state.slices.get(node.name, ())
    stale = done(node, wanted) and state.stale(node)
    change = (Change(f"nodes.{node.name}.claimable", named(found), wanted),) if stale else ()
    if node.plugin is not None and (not done(node, wanted) or _due(node, state)):
        yield RestartPlugin(
            **place,
            namespace=node.plugin.namespace,
            pod=node.plugin.name,
            note=replace(note, restarted=node.plugin.uid).encode(),
            changes=change,
        )
    elif published(node, wanted, state) != READY:
        yield AwaitSlice(**place, layout=wanted, changes=change)


def _due(node: Node, state: GpuState) -> bool:
    """Whether the DRA driver of a node whose GPUs are divided is still to be restarted."""
    if node.plugin is None or state.slices is None:
        return False
    if node.note is not None and state.mine(node):
        return node.note.restarted in ("", node.plugin.uid)
    return state.stale(node)


def named(gpus: Sequence[Parts]) -> str:
    """`whole GPUs`, or the parts that GPUs have: `7 × 1g.5gb`."""
    ways = {
        ", ".join(f"{number} × {profile}" for profile, number in sorted(each.items())) or "whole GPUs"
        for each in gpus
    }
    return " and ".join(sorted(ways)) or "nothing"


def _shown(node: Node) -> str:
    return f"{node.layout} ({node.progress or 'not handled yet'})" if node.layout else "no layout"


def _again(node: Node) -> str:
    """The uid of a MIG manager that failed and has to be restarted, or ""."""
    name, uid = node.manager
    begun = bool(node.note and node.note.again == uid and not node.progress)
    return uid if name and (node.progress == "failed" or begun) else ""


def _was_cordoned(node: Node, state: GpuState) -> bool:
    """Whether somebody else cordoned the node, and nobody uncordoned it since."""
    return node.cordoned and (node.note.cordoned if node.note and state.mine(node) else True)


def _emptied(node: Node, spec: Spec | None, place: Fields) -> Iterator[Step]:
    if not node.users:
        return
    goes = tuple(each for each in node.users if not each.stays)
    if goes and spec is not None and spec.drain == "if_needed":
        yield Evict(**place, pods=few(goes), users=goes)
    else:
        yield AwaitPods(**place, pods=few(node.users))


def _released(node: Node, place: Fields, *, cordoned: bool | None = None) -> Step:
    """`cordoned`: as the note will have it that is not on the node yet."""
    if cordoned is not None:
        return (LeaveCordoned if cordoned else Uncordon)(**place)
    before = node.note is not None and node.note.cordoned
    change = (Change(f"nodes.{node.name}.cordoned", "to divide its GPUs", before),)
    return (LeaveCordoned if before else Uncordon)(**place, changes=change)


def few(users: Iterable[User]) -> str:
    """`default/train-1 (Job train)`, …: some of the pods."""
    return suggest.few([f"{each} ({each.owner or 'no controller'})" for each in users], SHOWN)


def readiness(spec: Spec | None, state: GpuState) -> Readiness | None:
    """Whether the next step may run at the node at which bfinfra is; None if it is at none."""
    found: Readiness | None = None
    for node in (state.nodes[name] for name in sorted(state.nodes)):
        if state.mine(node):
            wanted = spec.layout_of(node.name, node.labels) if spec else ""
            answer = _ready(node, wanted, state)
            if answer != READY:
                return answer
            found = READY
    return found


def _ready(node: Node, wanted: str, state: GpuState) -> Readiness:
    if node.progress in BUSY:
        return waiting(f"the MIG manager of {node.name} says {node.progress}, for {node.layout}")
    if wanted and node.layout == wanted:
        found = divided(node, wanted, state.namespace)
        return found if found != READY or _due(node, state) else published(node, wanted, state)
    if wanted and node.users:
        stays = "; ".join(f"{each}: {each.stays}" for each in node.users if each.stays)
        return waiting(f"{few(node.users)} uses GPUs of {node.name}{f'; {stays}' if stays else ''}")
    return READY


def divided(node: Node, wanted: str, namespace: str) -> Readiness:
    """Whether the GPUs of a node whose label asks for a layout have it."""
    name, uid = node.manager
    if done(node, wanted):
        return READY
    if node.progress == "failed" and not (node.note and node.note.again == uid):
        see = f"kubectl logs -n {word(namespace)} {word(name)}" if name else "its MIG manager has no pod"
        return failed(
            f"the MIG manager could not divide the GPUs of {node.name} as {wanted} ({see}); the node stays "
            "cordoned; correct the cause or write another layout"
        )
    if not name:
        return waiting(f"{node.name} has no running MIG manager that would divide its GPUs as {wanted}")
    return waiting(f"the MIG manager of {node.name} says {node.progress or 'nothing yet'} of {wanted}")


def published(node: Node, wanted: str, state: GpuState) -> Readiness:
    """Whether the GPUs of a node can be claimed, where they are given by claims. `wanted`: the layout that
    they shall have, "" for any.
    """
    if state.slices is None:
        return READY
    restarted = node.note.restarted if node.note is not None and state.mine(node) else ""
    if restarted and (node.plugin is None or node.plugin.uid == restarted):
        return waiting(f"the DRA driver of {node.name} does not run again yet")
    if node.name not in state.slices:
        return waiting(f"{node.name} has no ResourceSlice yet, so its GPUs can't be claimed")
    if wanted and node.layout == wanted and state.stale(node):
        return waiting(
            f"the DRA driver of {node.name} publishes {named(state.slices[node.name])}, not {wanted}"
        )
    return READY


def unknown_nodes(key: Key, spec: Spec, state: GpuState) -> Iterator[Conflict]:
    """Nodes that are named, and that the cluster doesn't have."""
    for number, each in enumerate(spec.mig_layouts):
        for name in each.nodes:
            if name not in state.nodes:
                yield Conflict(
                    Spot(key, f"{FIELD}.{number}.nodes"),
                    f"{state.cluster} has no node {name}",
                    next=suggest.nearest(name, state.nodes),
                    stops=False,
                )
