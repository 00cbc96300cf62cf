"""The steps of a virtual machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bfinfra.backends.vcenter.vm import Hardware, Vm
from bfinfra.kinds.vcenter.base.machine.delta import Delta, powered, renamed, steps
from bfinfra.kinds.vcenter.base.machine.hardware import check_cpus
from bfinfra.kinds.vcenter.base.machine.notes import MARK
from bfinfra.kinds.vcenter.base.machine.placement import moves
from bfinfra.kinds.vcenter.base.machine.steps import Delete, Discard, Note, Replace, Start, Write
from bfinfra.kinds.vcenter.virtual_machine.devices import between, gone
from bfinfra.kinds.vcenter.virtual_machine.home import place
from bfinfra.kinds.vcenter.virtual_machine.make import make, remade, source
from bfinfra.kinds.vcenter.virtual_machine.properties import differing
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import GUEST, State, VirtualMachineFacts, options
from bfinfra.kinds.vcenter.virtual_machine.steps import DeleteDisks, Make
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
        if state is None:
            return ()
        return (Delete(name=name, moid=state.machine.moid, importing=state.importing),)
    facts: VirtualMachineFacts = context.facts
    guest = facts.guests.get(name, {})
    if isinstance(guest, str):
        raise Refusal("cloud-init's files can't be read", field="cloud_init", why=guest)
    mark = context.mark.committed(spec.applied())
    if state is None or state.importing:
        discarded = () if state is None else (Discard(name=name, moid=state.machine.moid),)
        new = (*discarded, *_made(name, spec, guest, mark, context))
        return _unless_away(name, spec, new, context, fresh=True)
    if compare.adopting(state.mark):
        return (_adopted(name, spec, state, mark),)
    if other := remade(spec, state, context):
        first = Replace(name=name, moid=state.machine.moid, changes=compare.changes(spec, state.mark, other))
        new = (first, *_made(name, spec, guest, mark, context))
        return _unless_away(name, spec, new, context, fresh=True)
    named = {GUEST[field.partition(".")[2]]: file for field, file in spec.files().items()}
    kept = {key: state.machine.extra.get(key) or f"as in {file.text}" for key, file in named.items()}
    found = tuple(_steps(name, spec, state, context, ({**kept, **guest}, mark)))
    return _unless_away(name, spec, found, context, fresh=state.mark is None or state.mark.applied is None)


def _made(
    name: str, spec: Spec, guest: Mapping[str, str], mark: Mark, context: PlanContext
) -> Iterator[Step]:
    yield Make(
        name=name,
        source=source(spec),
        how=make(name, spec, guest, mark, context),
        changes=differences(None, spec.applied()),
    )
    if spec.power == "on":
        yield Start(name=name, moid="")


def _adopted(name: str, spec: Spec, state: State, mark: Mark) -> Note:
    """The step that writes the mark, and nothing else."""
    machine = state.machine
    return Note(
        name=name,
        moid=machine.moid,
        version=machine.version,
        extra={MARK: mark.on(machine.instance_uuid).encode()},
        changes=compare.changes(spec, state.mark),
    )


def _unless_away(
    name: str, spec: Spec, found: Sequence[Step], context: PlanContext, *, fresh: bool
) -> Sequence[Step]:
    """The steps. Raises Awaited if one takes a file that doesn't exist yet: to create the VM, or to write
    that text or secret.
    """
    facts: VirtualMachineFacts = context.facts
    written = {key for step in found if isinstance(step, Write) for key in step.properties}
    for key, secret in facts.secrets.get(name, {}).items():
        if secret.away and (key in written or any(isinstance(step, Make) for step in found)):
            raise held(secret.away, f"properties.{key}", found)
    if name not in facts.away:
        return found
    field, problem = facts.away[name]
    there = facts.guests.get(name, {})
    gone = {each for each in spec.files() if GUEST[each.partition(".")[2]] not in there}
    if fresh or any(change.field in gone for step in found for change in step.changes):
        raise held(problem, field, found)
    return found


def _steps(
    name: str, spec: Spec, state: State, context: PlanContext, says: tuple[Mapping[str, str], Mark]
) -> Iterator[Step]:
    (guest, mark), machine = says, state.machine
    devices = between(spec, machine, context)
    placed = moves(name, place(spec, context), machine, context.facts.inventory)
    check_cpus(machine, spec.cpus, context.facts.seen.sockets.get(machine.moid))
    sizes = tuple(
        differences(
            _sizes(machine.cpus, machine.memory, reserve=machine.reserved),
            _sizes(spec.cpus, spec.memory, reserve=spec.reserved),
        )
    )
    left = gone(spec, state)
    values = list(differing(spec, machine, context.facts.secrets.get(name, {})))
    options = dict(_options(spec, state, guest))
    written = (
        *renamed(name, machine),
        *sizes,
        *devices.changes,
        *(change for change, _ in values),
        *(
            Change(f"disks.{disk.address}.size", f"{bytes_text(disk.capacity)} in {disk.file}", None)
            for disk in left
        ),
        *options,
    )
    on = spec.power == "on"
    found = compare.changes(spec, state.mark, (*written, *placed.changes, *powered(machine, on=on)))
    if left:  # before the new mark no longer lists these disks
        addresses, keys = zip(*((disk.address, disk.key) for disk in left), strict=True)
        yield DeleteDisks(
            name=name, moid=machine.moid, version=machine.version, changes=found, disks=addresses, keys=keys
        )
    hardware = Hardware(
        extra={
            MARK: mark.on(machine.instance_uuid).encode(),
            **{key: value for each in options.values() for key, value in each.items()},
        },
        **devices.hardware,
        **(_sizes(spec.cpus, spec.memory, reserve=_reserve(spec, machine)) if sizes else {}),
    )
    yield from steps(
        name,
        machine,
        Delta(
            changes=found,
            hardware=(devices.later or hardware) if written or state.mark != mark else None,
            properties={change.field.removeprefix("properties."): value for change, value in values},
            digests={key: old for key, old in state.digests.items() if key in spec.properties},
            placed=placed,
            off=bool(sizes or values) or devices.off,
            on=on,
        ),
    )


def _reserve(spec: Spec, machine: Vm) -> bool | None:
    return spec.reserved if spec.reserved or machine.reserved else None


def _options(
    spec: Spec, state: State, guest: Mapping[str, str]
) -> Iterator[tuple[Change, Mapping[str, str]]]:
    """The options of the VM that differ, with what to write: the texts for cloud-init, and `extra`. An
    option that left the file is removed.
    """
    machine, wanted = state.machine, options(guest)
    for field, key in GUEST.items():
        if machine.extra.get(key, "") != guest.get(key, ""):
            both = {each: wanted[each] for each in (key, f"{key}.encoding")}
            yield Change(f"cloud_init.{field}", "another text", "as in its file"), both
    for key, value in {**dict.fromkeys(state.applied.get("extra") or (), ""), **spec.extra}.items():
        if machine.extra.get(key, "") != value:
            yield Change(f"extra.{key}", machine.extra.get(key) or None, value or None), {key: value}


def _sizes(cpus: int, memory: int, *, reserve: bool | None) -> dict[str, Any]:
    return {"cpus": cpus, "memory": memory, "reserve": reserve}
