"""Drivers that hold an earlier license token, or are of an earlier version: a driver reads its token when its
pod starts, and a pod of the driver is never replaced by its DaemonSet. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from bfinfra.kinds.cluster.base.rendered.objects import Id, Manifest
from bfinfra.kinds.cluster.base.rendered.rendering import Rendering
from bfinfra.kinds.cluster.base.rendered.steps import Objects
from bfinfra.kinds.cluster.gpu_operator.policy import DRIVER, GROUP, KIND
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.kinds.cluster.gpu_operator.state import Driver, GpuState, is_license
from bfinfra.kinds.cluster.gpu_operator.steps import RestartDriver
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.refs import Key
from bfinfra.model.step import Step
from bfinfra.model.suggest import few

SHOWN = 20  # pods in a message
IMAGE = ("version", "image", "repository")
OLD_LICENSE = "holds the earlier license token"
OLD_DRIVER = "is of the earlier driver"


def holders(state: GpuState, *, replaced: bool) -> list[Driver]:
    """The drivers that hold an earlier token. `replaced`: the token is about to be replaced."""
    written = _time(state.license_written())
    return [
        each
        for each in state.drivers
        if each.licensed
        and each.started
        and not each.going
        and (replaced or (written is not None and _started(each) <= written))
    ]


def token_changes(rendering: Rendering | None, state: GpuState) -> bool:
    """Whether the license's Secret has another token than the site."""
    for each, manifest in (rendering.manifests if rendering else {}).items():
        thing = state.things.get(each)
        if is_license(each) and thing is not None:
            return bool((thing.manifest.get("data") or {}) != manifest.get("data"))
    return False


def driver_changes(steps: Collection[Step]) -> bool:
    """Whether steps change the driver's image."""
    return any(
        change.field.rpartition(".")[2] in IMAGE
        and (f"{KIND} " not in change.field or ".driver." in change.field)
        for step in steps
        if isinstance(step, Objects)
        for each in step.objects
        if each.type in ((GROUP, KIND), (GROUP, DRIVER))
        for change in step.changes
        if change.field.startswith(f"{each}.")
    )


def upgraded_by_operator(policies: Mapping[Id, Manifest]) -> bool:
    """Whether the operator restarts drivers of an earlier version by itself."""
    for each, manifest in policies.items():
        spec = manifest.get("spec") or {}
        driver = spec if each.kind == DRIVER else spec.get("driver") or {}
        if each.type in ((GROUP, KIND), (GROUP, DRIVER)) and (driver.get("upgradePolicy") or {}).get(
            "autoUpgrade"
        ):
            return True
    return False


def steps(spec: Spec, state: GpuState, rendering: Rendering, changed: Sequence[Step]) -> Iterator[Step]:
    """The restarts, node after node."""
    if spec.restart_drivers != "if_needed":
        return
    renewed = token_changes(rendering, state)
    reasons = dict.fromkeys(holders(state, replaced=renewed), OLD_LICENSE)
    if not upgraded_by_operator(rendering.manifests):
        replaced = driver_changes(changed)
        running = [each for each in state.drivers if not each.going]
        reasons |= {each: OLD_DRIVER for each in running if each.old or (replaced and each.started)}
    for each, reason in sorted(reasons.items(), key=lambda pair: (pair[0].node, pair[0].name)):
        yield RestartDriver(
            node=each.node,
            cluster=state.cluster,
            home=state.home,
            namespace=each.namespace,
            pod=each.name,
            reason=reason,
            changes=(Change(f"nodes.{each.node}.driver", reason, "restarted"),),
        )


def due(spec: Spec, state: GpuState) -> list[Driver]:
    """The drivers that bfinfra is about to restart."""
    if spec.restart_drivers != "if_needed":
        return []
    found = holders(state, replaced=False)
    if not upgraded_by_operator({each: thing.manifest for each, thing in state.things.items()}):
        found += [each for each in state.drivers if each.old and not each.going and each not in found]
    return found


def left(key: Key, spec: Spec, state: GpuState, rendering: Rendering | None) -> Iterator[Conflict]:
    """A warning about drivers that hold an earlier token and are not restarted."""
    if spec.restart_drivers == "if_needed":
        return
    replaced = token_changes(rendering, state)
    if found := holders(state, replaced=replaced):
        yield Conflict(
            Spot(key, "license.token"),
            f"drivers {'will hold' if replaced else 'hold'} the earlier license token: {listed(found)}",
            why="a driver reads its token when its pod starts",
            next="write restart_drivers: if_needed, or delete these pods once their nodes can spare the GPUs",
            stops=False,
        )


def listed(drivers: Sequence[Driver]) -> str:
    """`pod a on node b`, …"""
    ordered = sorted(drivers, key=lambda each: (each.node, each.name))
    return few([f"pod {each.name} on node {each.node}" for each in ordered], SHOWN)


def _started(each: Driver) -> datetime:
    return _time(each.started) or datetime.now(UTC)


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
