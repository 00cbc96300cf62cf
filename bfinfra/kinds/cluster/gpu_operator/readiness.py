"""Whether an operator is ready: it says so, its drivers are those that were asked for, and each node with
GPUs offers them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.backends.words import safe
from bfinfra.formats.shell import word
from bfinfra.kinds.capabilities import NVIDIA
from bfinfra.kinds.cluster.gpu_operator import drivers, layouts
from bfinfra.kinds.cluster.gpu_operator.decide import MAIN
from bfinfra.kinds.cluster.gpu_operator.drivers import SHOWN
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.kinds.cluster.gpu_operator.state import GpuState, Node
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.readiness import READY, Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.suggest import few

DEPLOYED = "nvidia.com/gpu.deploy.driver"
PLUGIN = "app=nvidia-dra-driver-kubelet-plugin"
"""The label of the DRA driver's pods."""


def of_operator(spec: Spec | None, state: GpuState, of_objects: Readiness) -> Readiness:
    """Whether the whole is ready. `of_objects`: whether its objects are. With a note of what was left."""
    if of_objects != READY:
        return of_objects
    if spec is None:
        left = ", ".join(state.operands)
        return waiting(f"the operator's operands are still there: {left}") if left else READY
    if spec.wait != "ready" or not any(each.type in MAIN for each in state.things):
        return READY
    return next(_hindrances(spec, state), None) or _with_note(spec, state)


def _hindrances(spec: Spec, state: GpuState) -> Iterator[Readiness]:
    for each, thing in state.things.items():
        says = (thing.manifest.get("status") or {}).get("state") if each.type in MAIN else "ready"
        if says in ("ignored", "disabled"):
            yield failed(f"the operator ignores its {each.kind}, as there is another one")
        elif says != "ready":
            yield waiting(f"the operator says {safe(says or 'nothing yet', 40)}")
    yield from _drivers(spec, state)
    yield from _nodes(spec, state, frozenset())


def between_restarts(spec: Spec, state: GpuState) -> Readiness | None:
    """Whether the next driver may be restarted: the nodes whose drivers are not to be restarted offer their
    GPUs. None if no driver is. The operator is not ready before the last one is.
    """
    found = drivers.due(spec, state)
    if not found:
        return None
    return next(_nodes(spec, state, frozenset(each.node for each in found)), READY)


def _nodes(spec: Spec, state: GpuState, but: frozenset[str]) -> Iterator[Readiness]:
    for node in (state.nodes[name] for name in sorted(state.nodes)):
        if node.has_gpus and node.name not in but:
            yield from _node(spec, state, node)


def _drivers(spec: Spec, state: GpuState) -> Iterator[Readiness]:
    version = spec.driver.version if spec.driver else None
    if version and state.driver_images and not any(version in each for each in state.driver_images):
        yield waiting(f"the operator has not seen the driver's version {version} yet")
    if old := [each for each in state.drivers if each.old]:
        yield waiting(
            f"{drivers.listed(old)} {drivers.OLD_DRIVER}; if the operator does not restart it "
            "(driver.upgradePolicy), write restart_drivers: if_needed, or delete the pod"
        )


def _node(spec: Spec, state: GpuState, node: Node) -> Iterator[Readiness]:
    if state.driver_images and node.labels.get(DEPLOYED) == "true":
        here = [each for each in state.drivers if each.node == node.name]
        if not any(each.ready for each in here):
            why = f"pod {here[0].name} is not ready" if here else "it has no pod yet"
            yield waiting(f"the driver of {node.name} is not ready: {why}")
    wanted = spec.layout_of(node.name, node.labels)
    if wanted and node.layout == wanted:
        found = layouts.divided(node, wanted, state.namespace)
        if found != READY:
            yield found
    claimed = layouts.published(node, wanted, state)
    if claimed != READY:
        yield claimed
    if spec.allocate == "device_plugin" and not node.offers:
        bare = node.vgpu and spec.license is None
        yield waiting(f"{node.name} offers no {NVIDIA} yet{'; its vGPUs need a license' if bare else ''}")


def without_slices(key: Key, spec: Spec, state: GpuState) -> Iterator[Conflict]:
    """A warning about nodes whose GPUs can't be claimed, once the operator was applied as a whole."""
    if spec.allocate != "dra" or state.mark is None or state.mark.applied is None:
        return
    found = state.slices or {}
    bare = sorted(name for name, node in state.nodes.items() if node.has_gpus and name not in found)
    if bare:
        yield Conflict(
            Spot(key, "allocate"),
            f"GPUs can't be claimed, as their nodes have no ResourceSlice of them: {few(bare, SHOWN)}",
            why="the DRA driver's pod publishes it while it runs",
            next=f"see its pods: kubectl get pods -n {word(state.namespace)} -l {PLUGIN}",
            stops=False,
        )


def _with_note(spec: Spec, state: GpuState) -> Readiness:
    held = drivers.holders(state, replaced=False)
    if not held or spec.restart_drivers == "if_needed":
        return READY
    return Readiness(
        Ready.READY, note=f"with the earlier license token until they are restarted: {drivers.listed(held)}"
    )
