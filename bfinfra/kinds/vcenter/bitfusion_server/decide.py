"""The steps from the live state to the desired one: deploy, finish what is half done, reconfigure, replace,
delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bfinfra.kinds.vcenter.bitfusion_server import groups
from bfinfra.kinds.vcenter.bitfusion_server.differ import Difference, between, misplaced
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import MMIO_SIZE, BitfusionServerFacts, State, identity
from bfinfra.kinds.vcenter.bitfusion_server.steps import (
    Commit,
    Configure,
    Delete,
    Deploy,
    Discard,
    Move,
    PowerOn,
    Replace,
    Stop,
)
from bfinfra.kinds.vcenter.bitfusion_server.target import Target, resolve
from bfinfra.model import compare
from bfinfra.model.awaited import Awaited, held
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.gpus import GIB
from bfinfra.model.secret import Secret
from bfinfra.model.step import Step


def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The remaining steps, in order. Raises Awaited if one takes a secret whose file doesn't exist yet."""
    found = _steps(name, spec, state, context)
    for key in _given(found):
        checked = context.facts.secrets.get((name, key))
        if checked and checked.away:
            raise held(checked.away, f"properties.{key}", found)
    return found


def _given(steps: Sequence[Step]) -> Iterator[str]:
    """The properties that the steps write."""
    for step in steps:
        if isinstance(step, Deploy):
            yield from step.target.properties
        elif isinstance(step, Configure):
            yield from step.properties


def _steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    if spec is None:
        return (
            () if state is None else (Delete(name=name, moid=state.machine.moid, importing=state.importing),)
        )
    groups.check(name, spec, context)
    if state is not None and state.importing:
        return Discard(name=name, moid=state.machine.moid), *_create(name, spec, state, context)
    if state is None:
        return _create(name, spec, None, context)
    target = resolve(name, spec, state, context, anew=False)
    if not compare.adopting(state.mark) and (wrong := misplaced(state, target, spec)):
        first = Replace(name=name, moid=state.machine.moid, changes=compare.changes(spec, state.mark, wrong))
        try:
            return first, *_create(name, spec, state, context)
        except Awaited as awaited:
            awaited.steps = (first,)
            raise
    return _update(name, spec, state, target, context)


def _create(name: str, spec: Spec, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps that create the VM. `state`: the VM that is deleted first, whose cards and datastore the new
    one takes over.
    """
    target = resolve(name, spec, state, context, anew=True)
    changes = (
        ()
        if state is not None and not state.importing
        else (*differences(None, spec.applied()), *_derived(spec, target))
    )
    mark = context.mark.on(identity(context.mark.site, name))
    committed = mark.committed(spec.applied()).encode()
    return (
        Deploy(name=name, target=target, mark=mark.encode(), changes=changes),
        PowerOn(name=name, moid=""),
        Commit(name=name, moid="", mark=committed, release=target.release),
    )


def _derived(spec: Spec, target: Target) -> tuple[Change, ...]:
    """The values that bfinfra computes because the site leaves them out. `mmio` in bytes; `cards`: PCI
    addresses or profiles.
    """
    found = {
        "cpus": None if spec.cpus else target.cpus,
        "memory": None if spec.memory else target.memory,
        "mmio": int(target.extra[MMIO_SIZE]) * GIB
        if spec.mmio is None and MMIO_SIZE in target.extra
        else None,
        "cards": [each.address or each.profile or each.name for each in target.attach] or None,
    }
    return tuple(Change(name, None, value) for name, value in found.items() if value is not None)


def _update(name: str, spec: Spec, state: State, target: Target, context: PlanContext) -> Sequence[Step]:
    if compare.adopting(state.mark):
        return (_commit(spec, state, target, context, compare.changes(spec, state.mark)),)
    machine = state.machine
    difference = between(name, spec, state, target, context.facts)
    moves = _moves(spec, state, target, context.facts)
    power = () if machine.on else (Change("power", "off", "on"),)
    found = compare.changes(spec, state.mark, (*difference.changes, *moves, *power))
    steps: list[Step] = []
    if difference.off and machine.on:
        steps.append(Stop(name=name, moid=machine.moid, changes=found))
    if difference:
        steps.append(_configure(name, state, target, difference, found))
    if moves:
        fields = {change.field for change in moves}
        folder = target.folder if "folder" in fields else ""
        pool = target.pool if "resource_pool" in fields else ""
        steps.append(Move(name=name, moid=machine.moid, folder=folder, pool=pool, changes=found))
    if not machine.on or (difference.off and machine.on):
        steps.append(PowerOn(name=name, moid=machine.moid, changes=found))
    if state.mark is None or state.mark.applied != spec.applied():
        steps.append(_commit(spec, state, target, context, found))
    return steps


def _commit(
    spec: Spec, state: State, target: Target, context: PlanContext, changes: tuple[Change, ...]
) -> Commit:
    machine = state.machine
    return Commit(
        name=context.mark.name,
        moid=machine.moid,
        version=machine.version,
        mark=context.mark.on(machine.instance_uuid).committed(spec.applied()).encode(),
        release=target.release,
        changes=changes,
    )


def _configure(
    name: str, state: State, target: Target, difference: Difference, found: tuple[Change, ...]
) -> Configure:
    fields = {change.field for change in difference.changes}
    kept = {key: digest for key, digest in state.digests.items() if key not in (difference.properties or {})}
    return Configure(
        name=name,
        moid=state.machine.moid,
        version=state.machine.version,
        cpus=target.cpus if "cpus" in fields else None,
        memory=target.memory if {"memory", "reservation"} & fields else None,
        reserve=True if {"memory", "reservation"} & fields else None,
        firmware="efi" if "firmware" in fields else None,
        extra=difference.extra or {},
        attach=difference.attach,
        drop=difference.drop,
        nics=difference.nics or {},
        add_nics=difference.add_nics,
        grow=difference.grow or {},
        properties=difference.properties or {},
        keep=kept if any(isinstance(v, Secret) for v in (difference.properties or {}).values()) else {},
        changes=found,
    )


def _moves(spec: Spec, state: State, target: Target, facts: BitfusionServerFacts) -> tuple[Change, ...]:
    """The changes of folder and pool, by their names, as ids mean nothing to people."""
    machine, found = state.machine, []
    if machine.folder and machine.folder != target.folder:
        paths = {f.moid: f.path.removeprefix("vm").strip("/") for f in facts.inventory.folders}
        found.append(Change("folder", paths.get(machine.folder, machine.folder), spec.folder))
    if machine.pool and machine.pool != target.pool:
        pools = {p.moid: None if p.root else p.name for p in facts.inventory.pools}
        found.append(Change("resource_pool", pools.get(machine.pool, machine.pool), spec.resource_pool))
    return tuple(found)
