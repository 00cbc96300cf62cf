"""The steps of a virtual machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bfinfra.backends.vcenter.vm import Hardware, Vm
from bfinfra.kinds.vcenter.base.machine.notes import MARK
from bfinfra.kinds.vcenter.virtual_machine.devices import between
from bfinfra.kinds.vcenter.virtual_machine.disks import gone
from bfinfra.kinds.vcenter.virtual_machine.make import make, source
from bfinfra.kinds.vcenter.virtual_machine.properties import differing
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import GUEST, State, VirtualMachineFacts, options
from bfinfra.kinds.vcenter.virtual_machine.steps import (
    Delete,
    DeleteDisks,
    Discard,
    Make,
    Reconfigure,
    Start,
    Stop,
)
from bfinfra.model import compare
from bfinfra.model.awaited import held
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.step import Step
from bfinfra.model.units import bytes_text


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: create and start, finish what is half done, change what can change, delete."""
    if spec is None:
        return () if state is None else (Delete(name=name, moid=state.machine.moid),)
    facts: VirtualMachineFacts = context.facts
    guest = facts.guests.get(name, {})
    if isinstance(guest, str):
        raise Refusal("cloud-init's files can't be read", field="cloud_init", why=guest)
    mark = context.mark.committed(spec.applied())
    if state is None or state.importing:
        new = Make(
            name=name,
            source=source(spec),
            how=make(name, spec, guest, mark, context),
            changes=differences(None, spec.applied()),
        )
        discarded = () if state is None else (Discard(name=name, moid=state.machine.moid),)
        started = (Start(name=name, moid=""),) if spec.power == "on" else ()
        return _unless_away(name, spec, (*discarded, new, *started), context, fresh=True)
    if compare.adopting(state.mark):
        return (_adopted(name, spec, state, mark),)
    named = {GUEST[field.partition(".")[2]]: file for field, file in spec.files().items()}
    kept = {key: state.machine.extra.get(key) or f"as in {file.text}" for key, file in named.items()}
    found = tuple(_steps(name, spec, state, context, ({**kept, **guest}, mark)))
    return _unless_away(name, spec, found, context, fresh=state.mark is None or state.mark.applied is None)


def _adopted(name: str, spec: Spec, state: State, mark: Mark) -> Reconfigure:
    """The step that writes the mark, and nothing else."""
    machine = state.machine
    note = Hardware(extra={MARK: mark.on(machine.instance_uuid).encode()})
    return Reconfigure(
        name=name,
        moid=machine.moid,
        version=machine.version,
        hardware=note,
        properties={},
        keep={},
        changes=compare.changes(spec, state.mark),
    )


def _unless_away(
    name: str, spec: Spec, steps: Sequence[Step], context: PlanContext, *, fresh: bool
) -> Sequence[Step]:
    """The steps. Raises Awaited if one takes a file that doesn't exist yet: to create the VM, or to write
    that text or secret.
    """
    facts: VirtualMachineFacts = context.facts
    written = {key for step in steps if isinstance(step, Reconfigure) for key in step.properties}
    for key, secret in facts.secrets.get(name, {}).items():
        if secret.away and (key in written or any(isinstance(step, Make) for step in steps)):
            raise held(secret.away, f"properties.{key}", steps)
    if name not in facts.away:
        return steps
    field, problem = facts.away[name]
    there = facts.guests.get(name, {})
    gone = {each for each in spec.files() if GUEST[each.partition(".")[2]] not in there}
    if fresh or any(change.field in gone for step in steps for change in step.changes):
        raise held(problem, field, steps)
    return steps


def _steps(
    name: str, spec: Spec, state: State, context: PlanContext, says: tuple[Mapping[str, str], Mark]
) -> Iterator[Step]:
    (guest, mark), machine = says, state.machine
    devices = between(spec, machine, context)
    sizes = tuple(
        differences(
            _sizes(machine.cpus, machine.memory, reserve=machine.reserved),
            _sizes(spec.cpus, spec.memory, reserve=spec.reserved),
        )
    )
    left, values = (
        gone(spec, machine, state.mark),
        list(differing(spec, machine, context.facts.secrets.get(name, {}))),
    )
    drift = [
        *sizes,
        *devices.changes,
        *(change for change, _ in values),
        *(
            Change(f"disks.{disk.address}.size", f"{bytes_text(disk.capacity)} in {disk.file}", None)
            for disk in left
        ),
        *_options(spec, machine, guest),
    ]
    power = (
        ()
        if machine.on == (spec.power == "on")
        else (Change("power", "on" if machine.on else "off", spec.power),)
    )
    found = compare.changes(spec, state.mark, (*drift, *power))
    at: dict[str, Any] = {"name": name, "moid": machine.moid, "version": machine.version, "changes": found}
    if left:  # before the new mark no longer lists these disks
        yield DeleteDisks(
            disks=tuple(disk.address for disk in left), keys=tuple(disk.key for disk in left), **at
        )
    hard = bool(sizes or values) or devices.off
    if machine.on and (hard or spec.power == "off"):
        yield Stop(**at)
    if drift or state.mark != mark:
        extra = {MARK: mark.on(machine.instance_uuid).encode(), **options(guest), **spec.extra}
        reserve = spec.reserved if spec.reserved or machine.reserved else None
        resized = _sizes(spec.cpus, spec.memory, reserve=reserve) if sizes else {}
        given = {**devices.hardware, **resized}
        written = {change.field.removeprefix("properties."): value for change, value in values}
        keep = {
            key: digest
            for key, digest in state.digests.items()
            if key not in written and key in spec.properties
        }
        yield Reconfigure(
            hardware=devices.later or Hardware(extra=extra, **given),
            properties=written,
            keep=keep if written else {},
            **at,
        )
    if spec.power == "on" and (not machine.on or hard):
        yield Start(**at)


def _options(spec: Spec, machine: Vm, guest: Mapping[str, str]) -> Iterator[Change]:
    """The options of the VM that differ: the texts for cloud-init, and `extra`."""
    for field, key in GUEST.items():
        if machine.extra.get(key, "") != guest.get(key, ""):
            yield Change(f"cloud_init.{field}", "another text", "as in its file")
    for key, value in spec.extra.items():
        if machine.extra.get(key, "") != value:
            yield Change(f"extra.{key}", machine.extra.get(key) or None, value)


def _sizes(cpus: int, memory: int, *, reserve: bool | None) -> dict[str, Any]:
    return {"cpus": cpus, "memory": memory, "reserve": reserve}
