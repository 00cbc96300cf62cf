"""The steps from the live state to the desired one: deploy, finish what is half done, reconfigure, replace,
delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bfinfra.backends.vcenter.vm import Hardware
from bfinfra.kinds.vcenter.base.machine.delta import Delta, powered, renamed
from bfinfra.kinds.vcenter.base.machine.delta import steps as steps_of
from bfinfra.kinds.vcenter.base.machine.placement import Place, moves
from bfinfra.kinds.vcenter.base.machine.steps import Delete, Discard, Note, Replace, Start, Write
from bfinfra.kinds.vcenter.bitfusion_server import groups
from bfinfra.kinds.vcenter.bitfusion_server.differ import between, misplaced
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import MARK, MMIO_SIZE, OVA, State, identity
from bfinfra.kinds.vcenter.bitfusion_server.steps import Deploy
from bfinfra.kinds.vcenter.bitfusion_server.target import Target, resolve
from bfinfra.model import compare
from bfinfra.model.awaited import Awaited, held
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.gpus import GIB
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
        elif isinstance(step, Write):
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
        Start(name=name, moid=""),
        Note(name=name, moid="", extra={MARK: committed, OVA: target.release}),
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
    said = {"folder": spec.folder, "resource_pool": spec.resource_pool}
    place = Place(folder=target.folder, pool=target.pool, said=said)
    placed = moves(name, place, machine, context.facts.inventory)
    other = (*renamed(name, machine), *difference.changes)
    found = compare.changes(spec, state.mark, (*other, *placed.changes, *powered(machine, on=True)))
    hardware = Hardware(**difference.hardware)
    delta = Delta(
        changes=found,
        hardware=(difference.later or hardware) if other else None,
        properties=difference.properties,
        digests=state.digests,
        placed=placed,
        off=difference.off,
    )
    changed = steps_of(name, machine, delta)
    if state.mark is None or state.mark.applied != spec.applied():
        return *changed, _commit(spec, state, target, context, found)
    return tuple(changed)


def _commit(
    spec: Spec, state: State, target: Target, context: PlanContext, changes: tuple[Change, ...]
) -> Note:
    machine = state.machine
    mark = context.mark.on(machine.instance_uuid).committed(spec.applied()).encode()
    return Note(
        name=context.mark.name,
        moid=machine.moid,
        version=machine.version,
        extra={MARK: mark, OVA: target.release},
        changes=changes,
    )
