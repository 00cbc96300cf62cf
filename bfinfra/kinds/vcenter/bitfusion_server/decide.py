"""The steps from the live state to the desired one: deploy, finish what is half done, reconfigure, replace,
delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bfinfra.backends.ova import Ova
from bfinfra.backends.vcenter.vm import Hardware
from bfinfra.kinds.vcenter.base.machine import devices
from bfinfra.kinds.vcenter.base.machine.delta import Delta, powered, renamed
from bfinfra.kinds.vcenter.base.machine.delta import steps as steps_of
from bfinfra.kinds.vcenter.base.machine.hardware import check_cpus, grows
from bfinfra.kinds.vcenter.base.machine.placement import Place, moves
from bfinfra.kinds.vcenter.base.machine.state import identity
from bfinfra.kinds.vcenter.base.machine.steps import Delete, Discard, Note, Replace, Start, Write
from bfinfra.kinds.vcenter.bitfusion_server.checks import check_group
from bfinfra.kinds.vcenter.bitfusion_server.properties import asked
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import (
    MARK,
    MMIO,
    MMIO_SIZE,
    OVA,
    BitfusionServerFacts,
    State,
)
from bfinfra.kinds.vcenter.bitfusion_server.target import Deploy, Target, resolve
from bfinfra.model import compare
from bfinfra.model.awaited import Awaited, held
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.gpus import GIB
from bfinfra.model.secret import Secret
from bfinfra.model.step import Step
from bfinfra.model.units import bytes_text


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
    check_group(name, spec, context)
    if state is not None and state.importing:
        return Discard(name=name, moid=state.machine.moid), *_create(name, spec, state, context)
    if state is None:
        return _create(name, spec, None, context)
    target = resolve(name, spec, state, context, anew=False)
    if not compare.adopting(state.mark) and (wrong := _misplaced(state, target, spec)):
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
    mark = context.mark.on(identity(context.mark.site, context.mark.address))
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
    difference, values = _between(name, spec, state, target, context.facts)
    said = {each: getattr(spec, each) for each in ("folder", "resource_pool", "datastore")}
    store = target.datastore if spec.datastore else ""
    place = Place(folder=target.folder, pool=target.pool, datastore=store, said=said)
    placed = moves(name, place, machine, context.facts.inventory)
    other = (*renamed(name, machine), *difference.changes)
    found = compare.changes(spec, state.mark, (*other, *placed.changes, *powered(machine, on=True)))
    hardware = Hardware(**difference.hardware)
    delta = Delta(
        changes=found,
        hardware=(difference.later or hardware) if other else None,
        properties=values,
        digests=state.digests if values else {},
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


def _between(
    name: str, spec: Spec, state: State, target: Target, facts: BitfusionServerFacts
) -> tuple[devices.Difference, Mapping[str, str | Secret]]:
    """The differences that a reconfiguration can remove, and the properties to write; the others are
    `_misplaced`.
    """
    machine = state.machine
    gpus = devices.attached("gpus", machine.pci, target.attach)
    nics = devices.adapters(machine.nics, target.adapters, facts.inventory, numbered=True)
    values, value_changes = _properties(name, spec, state, target, facts)
    grow = _grown(spec, state, target)
    plain, (window, wanted) = _plain(state, target, facts), (_window(machine.extra), _window(target.extra))
    alive = [*nics.changes]
    if grow:
        alive.append(Change("disk", bytes_text(machine.disks[0].capacity), bytes_text(target.disk or 0)))
    shut = [*plain, *gpus.changes, *([Change("mmio", window, wanted)] if window != wanted else [])]
    fields = {change.field for change in plain}
    sized = bool({"memory", "reservation"} & fields)
    hardware = {
        **nics.hardware,
        **gpus.hardware,
        "cpus": target.cpus if "cpus" in fields else None,
        "memory": target.memory if sized else None,
        "reserve": True if sized else None,
        "firmware": "efi" if "firmware" in fields else None,
        "extra": {key: target.extra.get(key, "") for key in (MMIO, MMIO_SIZE)} if window != wanted else {},
        "drop": (*gpus.hardware.get("drop", ()), *nics.hardware["drop"]),
        "grow": grow,
    }
    return devices.Difference(
        changes=(*shut, *alive, *value_changes),
        hardware=hardware,
        off=bool(shut or values) or nics.off,
        later=nics.later,
    ), values


def _misplaced(state: State, target: Target, spec: Spec) -> tuple[Change, ...]:
    """The differences that only a new VM can remove: another appliance, another host and its cards."""
    machine, found = state.machine, []
    if (now := machine.extra.get(OVA)) and now != target.release:
        found.append(Change("ova", now[:12], target.release[:12]))
    if state.host != spec.host:
        found.append(Change("host", state.host, spec.host))
    return tuple(found)


def _grown(spec: Spec, state: State, target: Target) -> dict[int, int]:
    """Disk key → capacity in bytes, if the first disk has to grow. Raises Refusal for what vSphere can't do
    to an existing disk.
    """
    machine, applied = state.machine, state.applied
    if (
        applied
        and applied.get("disk_provisioning", "thin") != spec.disk_provisioning
        and any(d.thin not in (None, target.thin) for d in machine.disks)
    ):
        before = applied.get("disk_provisioning", "thin")
        raise Refusal(
            f"the disks of {machine.name} are {before}",
            field="disk_provisioning",
            why="how a disk takes space is decided when it is created",
            next=f"write {before}, or convert them in vCenter first",
        )
    first = next(iter(machine.disks), None)
    return grows(first, target.disk, machine.name, "disk") if first and target.disk is not None else {}


def _plain(state: State, target: Target, facts: BitfusionServerFacts) -> list[Change]:
    now, machine = [], state.machine
    check_cpus(machine, target.cpus, facts.seen.sockets.get(machine.moid))
    if machine.cpus != target.cpus:
        now.append(Change("cpus", machine.cpus, target.cpus))
    if target.memory is not None and machine.memory != target.memory:
        now.append(Change("memory", bytes_text(machine.memory), bytes_text(target.memory)))
    if target.attach and not machine.reserved:
        now.append(Change("reservation", "some of the memory", "all of the memory"))
    if machine.firmware != "efi":
        now.append(Change("firmware", machine.firmware, "efi"))
    return now


def _window(extra: Mapping[str, str]) -> str:
    """The MMIO window of a VM's two options, as people read it."""
    size = extra.get(MMIO_SIZE, "")
    if extra.get(MMIO, "").upper() != "TRUE":
        return "off"
    return bytes_text(int(size) << 30) if size.isdecimal() else size or "on, without a size"


def _properties(
    name: str, spec: Spec, state: State, target: Target, facts: BitfusionServerFacts
) -> tuple[dict[str, str | Secret], list[Change]]:
    """The properties to write: those that differ, secrets whose digest differs, and the default for each
    property that left the site.
    """
    machine = state.machine
    applied = state.applied.get("properties", {})
    ova = facts.ovas.get(spec.ova.text)
    declared = ova.declared if isinstance(ova, Ova) else facts.noted[name].declared
    given = {each.key for each in asked(ova).values()} if isinstance(ova, Ova) else set()
    dropped = {key: declared[key].default for key in applied if key in declared and key not in given}
    wanted = {**dropped, **target.properties}
    values: dict[str, str | Secret] = {}
    changes: list[Change] = []
    for key, value in wanted.items():
        if isinstance(value, Secret):
            if (checked := facts.secrets.get((name, key))) and checked.stale:
                values[key] = value
                changes.append(Change(f"properties.{key}", "another value", str(value)))
        elif key in machine.properties and machine.properties[key] != value:
            values[key] = value
            now = "a secret" if key in state.digests else machine.properties[key]
            changes.append(Change(f"properties.{key}", now, value))
    return values, changes
