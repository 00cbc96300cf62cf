"""Drift, three-way: what was applied (it stands in the mark), what the file says, and what the world says.
Pure.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from bfinfra.engine.applied import spec_of
from bfinfra.engine.known import Known
from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.plan import DesiredState, decide, known, ours
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.awaited import Awaited
from bfinfra.model.compare import UNFINISHED, Change, differences
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.errors import BfinfraError, Problem, Warned
from bfinfra.model.kind import LastWriter
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key

REPORTED = (Cause.DRIFT, Cause.CONFLICT, Cause.VANISHED, Cause.MISSING)
"""Causes of which a server may know who."""


@dataclass(frozen=True)
class _Sides:
    """The file, the world, and what decides between them."""

    wish: DesiredState
    world: ObservedState
    kinds: Kinds
    everything: Known


def report(
    plan: Plan, wish: DesiredState, world: ObservedState, kinds: Kinds, before: Collection[str] = ()
) -> Report:
    """What does not agree and who moved it. `before`: addresses that are known to have stood once."""
    unmanaged = {
        key
        for key in wish.wanted
        if kinds[key.kind].managed
        and (plan.partial is None or key in plan.partial.keys)
        and _stranger(key, wish, world)
    }
    found = [
        Drifted(key=key, cause=Cause.UNMARKED, why=_whose(world.states[key]))
        for key in sorted(unmanaged, key=str)
    ]
    sides = _Sides(wish, world, kinds, known(wish, world))
    unseen = _unseen(plan, kinds)
    differing = [
        item
        for item in plan.items
        if item.key not in unseen
        and (item.steps or (item.held is not None and item.action is not Action.READ))
    ]
    for item in differing:
        found += sorted(_of(item, sides, before), key=lambda each: list(Cause).index(each.cause))
    problems = tuple(p for p in plan.problems if not any(p.what.startswith(f"{key}: ") for key in unmanaged))
    standing = tuple(
        sorted(
            str(key)
            for key, state in ours(wish, world).items()
            if state.mark is not None and state.mark.site == wish.site
        )
    )
    return Report(
        wish.site,
        tuple(found),
        sum(not item.steps and item.held is None for item in plan.items),
        problems,
        {**plan.unreadable, **{str(key): why for key, why in unseen.items()}},
        plan.warnings,
        standing,
        partial=plan.partial,
    )


def _unseen(plan: Plan, kinds: Kinds) -> dict[Key, str]:
    """What can't be seen while the way to it waits for a file, and why."""
    found: dict[Key, str] = {}
    for item in plan.held:
        behind = next((found[key] for key in item.waits_for if key in found), "")
        if behind or kinds[item.key.kind].reaches:
            found[item.key] = behind or str(item.held and item.held.what)
    return found


def traced(found: Report, world: ObservedState, kinds: Kinds, patience: RetryPolicy) -> Report:
    """The same with who moved it and when, as far as the servers tell. Only of what alarms; where they can't
    be asked, a warning says so.
    """
    asked: dict[str, dict[str, tuple[Any, tuple[str, ...]]]] = {}
    for each in found.alarming:
        if each.cause in REPORTED:
            _, fields = asked.setdefault(each.key.kind, {}).get(each.key.name, (None, ()))
            asked[each.key.kind][each.key.name] = (world.states.get(each.key), (*fields, each.field))
    writers: dict[tuple[Key, str], LastWriter] = {}
    warned = list(found.warnings)
    for kind, names in asked.items():
        try:
            answer = patience.read(functools.partial(kinds[kind].audit, names))
        except BfinfraError as error:
            warned.append(
                Warned(
                    Problem(
                        f"who moved {', '.join(f'{kind}/{name}' for name in names)} is not known",
                        why=str(error.problems[0]),
                    )
                )
            )
            continue
        writers |= {
            (Key(kind, name), field): trace
            for name, fields in answer.items()
            for field, trace in fields.items()
        }
    return replace(
        found, warnings=tuple(warned), found=tuple(_with_writer(each, writers) for each in found.found)
    )


def _with_writer(found: Drifted, writers: Mapping[tuple[Key, str], LastWriter]) -> Drifted:
    trace = writers.get((found.key, found.field)) if found.cause in REPORTED else None
    return replace(found, by=trace.by, at=trace.at) if trace else found


def _stranger(key: Key, wish: DesiredState, world: ObservedState) -> bool:
    state = world.states.get(key)
    return state is not None and (state.mark is None or state.mark.owner != (wish.site, str(key)))


def _whose(state: Any) -> str:
    if state.mark is not None:
        return f"it belongs to {state.mark.address} of the site {state.mark.site}"
    return state.copy or "bfinfra did not make what stands in its place"


def _of(item: Item, sides: _Sides, before: Collection[str]) -> Iterator[Drifted]:
    key, spec, state = item.key, sides.wish.wanted.get(item.key), sides.world.states.get(item.key)
    if spec is None:
        yield Drifted(key=key, cause=Cause.UNAPPLIED, why="it stands there, and the file has it no longer")
    elif item.action is Action.CREATE:
        known = str(key) in before
        yield Drifted(
            key=key,
            cause=Cause.VANISHED if known else Cause.MISSING,
            why=("it stood there once" if known else "it was never applied, or somebody deleted it")
            + _held(item),
        )
    elif state is None or state.mark is None:  # it is there anyway (a host), and nothing of it is applied yet
        yield from (
            Drifted(key=key, cause=Cause.UNAPPLIED, field=c.field, now=c.now, wanted=c.wanted)
            for c in item.changes
        )
    elif state.mark.applied is None:
        yield Drifted(
            key=key,
            cause=Cause.UNFINISHED,
            why="an apply was begun and did not end; the next one finishes it",
        )
    elif not item.steps:  # held: what the file changed takes another file, which isn't there
        yield Drifted(key=key, cause=Cause.UNAPPLIED, why=f"the file changed{_held(item)}")
        for change in _since_applied(key, spec, state.mark.applied, sides) or ():
            yield Drifted(
                key=key,
                cause=Cause.DRIFT,
                field=change.field,
                applied=_at(state.mark.applied, change.field),
                now=change.now,
                wanted=change.wanted,
            )
    else:
        yield from _fields(item, spec, state.mark.applied, sides)


def _held(item: Item) -> str:
    return f"; {item.held.what.removeprefix(str(item.key)).lstrip(': ')}" if item.held else ""


def _fields(item: Item, spec: Any, applied: Mapping[str, Any], sides: _Sides) -> Iterator[Drifted]:
    file = [change.field for change in differences(applied, spec.applied())]
    since = _since_applied(item.key, spec, applied, sides) if file else item.changes
    world_moved = None if since is None else {change.field for change in since}
    for change in item.changes:
        if change.field == UNFINISHED:
            continue
        by_file = any(_related(change.field, each) for each in file)
        by_world = (
            not by_file if world_moved is None else any(_related(change.field, each) for each in world_moved)
        )
        cause = (
            Cause.UNAPPLIED if not by_world else Cause.CONFLICT if by_file else Cause.DRIFT
        )  # neither: it follows from what the file changed
        yield Drifted(
            key=item.key,
            cause=cause,
            field=change.field,
            applied=_at(applied, change.field),
            now=change.now,
            wanted=change.wanted,
        )
    if not item.changes:  # a kind may have a step to take that no field tells of
        yield Drifted(
            key=item.key,
            cause=Cause.UNAPPLIED if file else Cause.DRIFT,
            why="; ".join(step.title() for step in item.steps),
        )


def _since_applied(
    key: Key, spec: Any, applied: Mapping[str, Any], sides: _Sides
) -> tuple[Change, ...] | None:
    """The changes by which the world differs from what was applied: the same decision, with the file as it
    was then. None where that can't be said.
    """
    try:
        then = DesiredState(sides.wish.site, {key: spec_of(type(spec), applied, spec)})
        steps = decide(key, then, sides.world, sides.kinds, sides.everything)
    except Awaited as awaited:
        steps = awaited.steps
    except (ValidationError, BfinfraError):
        return None
    return Item(key, Action.UPDATE, steps).changes


def _related(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _at(applied: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, or None; names may hold dots."""
    for change in differences(None, applied):
        if change.field == path:
            return change.wanted
    return None
