"""Drift, three-way: what was applied (in the mark), what the file says, and the observed state. Pure."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from bfinfra.engine.applied import spec_of
from bfinfra.engine.known import Known
from bfinfra.engine.lost import GONE
from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.plan import DesiredState, decide, known, ours, unseen
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.awaited import Awaited
from bfinfra.model.compare import UNFINISHED, Change, differences
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.errors import BfinfraError, Problem, Warned
from bfinfra.model.kind import LastWriter
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import RECONNECT

REPORTED = (Cause.DRIFT, Cause.CONFLICT, Cause.VANISHED, Cause.MISSING)
"""Causes for which a server may know who made the change."""


@dataclass(frozen=True)
class _Sides:
    """The desired and the observed state, and what decides between them."""

    desired: DesiredState
    observed: ObservedState
    kinds: Kinds
    everything: Known


def report(
    plan: Plan, desired: DesiredState, observed: ObservedState, kinds: Kinds, before: Collection[str] = ()
) -> Report:
    """Return the differences and their causes. `before`: addresses of resources that existed at an earlier
    check.
    """
    unmanaged = {
        key
        for key in desired.wanted
        if (plan.partial is None or key in plan.partial.keys)
        and kinds[key.kind].managed
        and _belongs_to_others(key, desired, observed)
    }
    found = [
        Drifted(key=key, cause=Cause.UNMARKED, why=_whose(observed.states[key]))
        for key in sorted(unmanaged, key=str)
    ]
    sides = _Sides(desired, observed, kinds, known(desired, observed))
    hidden = _unseen(plan, kinds)
    differing = [
        item
        for item in plan.items
        if item.key not in hidden
        and (item.steps or (item.held is not None and item.action is not Action.READ))
    ]
    for item in differing:
        found += sorted(_of(item, sides, before), key=lambda each: list(Cause).index(each.cause))
    said = {unseen(Key.parse(address), why).what for address, why in plan.stale.items()}
    gone = _vanished(plan, desired, observed, kinds, before)
    found += gone.values()
    unmanaged |= gone.keys()
    problems = tuple(
        p
        for p in plan.problems
        if p.what not in said and not any(p.what.startswith(f"{key}: ") for key in unmanaged)
    )
    existing = tuple(
        sorted(
            str(key)
            for key, state in ours(desired, observed).items()
            if state.mark is not None and state.mark.site == desired.site
        )
    )
    return Report(
        desired.site,
        tuple(found),
        sum(not item.steps and item.held is None for item in plan.items),
        problems,
        {
            **plan.unreadable,
            **{str(key): why for key, why in hidden.items()},
            **{
                address: f"{why}; its last known values were compared; {RECONNECT}"
                for address, why in plan.stale.items()
            },
        },
        tuple(each for each in plan.warnings if each.problem.what not in said),
        existing,
        partial=plan.partial,
    )


def _vanished(
    plan: Plan, desired: DesiredState, observed: ObservedState, kinds: Kinds, before: Collection[str]
) -> dict[Key, Drifted]:
    """What existed, isn't found, and can't be made again as the file says. That it vanished is told first."""
    found: dict[Key, Drifted] = {}
    for key in desired.wanted:
        if key in observed.states or str(key) not in before or not kinds[key.kind].managed:
            continue
        if why := [p for p in plan.problems if p.what.startswith(f"{key}: ")]:
            again = "; ".join(p.what.removeprefix(f"{key}: ") for p in why)
            text = f"it existed at an earlier check: {GONE}; it can't be made again: {again}"
            found[key] = Drifted(key=key, cause=Cause.VANISHED, why=text)
    return found


def _unseen(plan: Plan, kinds: Kinds) -> dict[Key, str]:
    """The resources that can't be read while the way to them waits for a file, with the reason."""
    found: dict[Key, str] = {}
    for item in plan.held:
        behind = [found[key] for key in item.waits_for if key in found]
        if behind or kinds[item.key.kind].reaches:
            found[item.key] = behind[0] if behind else str(item.held and item.held.what)
    return found


def traced(found: Report, observed: ObservedState, kinds: Kinds, retry: RetryPolicy) -> Report:
    """The report with who made each change and when, as far as the servers know. Only alarming drift is
    looked up; a warning names what could not be looked up.
    """
    asked: dict[str, dict[str, tuple[Any, tuple[str, ...]]]] = {}
    for each in found.alarming:
        if each.cause in REPORTED:
            _, fields = asked.setdefault(each.key.kind, {}).get(each.key.name, (None, ()))
            asked[each.key.kind][each.key.name] = (observed.states.get(each.key), (*fields, each.field))
    writers: dict[tuple[Key, str], LastWriter] = {}
    warned = list(found.warnings)
    for kind, names in asked.items():
        try:
            answer = retry.read(functools.partial(kinds[kind].audit, names))
        except BfinfraError as error:
            warned.append(
                Warned(
                    Problem(
                        f"who changed {', '.join(f'{kind}/{name}' for name in names)} is not known",
                        why=str(error.problems[0]),
                    )
                )
            )
            continue
        writers |= {
            (Key(kind, name), field): writer
            for name, fields in answer.items()
            for field, writer in fields.items()
        }
    return replace(
        found, warnings=tuple(warned), found=tuple(_with_writer(each, writers) for each in found.found)
    )


def _with_writer(found: Drifted, writers: Mapping[tuple[Key, str], LastWriter]) -> Drifted:
    writer = writers.get((found.key, found.field)) if found.cause in REPORTED else None
    return replace(found, by=writer.by, at=writer.at) if writer else found


def _belongs_to_others(key: Key, desired: DesiredState, observed: ObservedState) -> bool:
    state = observed.states.get(key)
    return state is not None and (state.mark is None or state.mark.owner != (desired.site, str(key)))


def _whose(state: Any) -> str:
    if state.mark is not None:
        return f"it belongs to {state.mark.address} of the site {state.mark.site}"
    return state.copy or "an object that bfinfra did not make has its name"


def _of(item: Item, sides: _Sides, before: Collection[str]) -> Iterator[Drifted]:
    key, spec, state = item.key, sides.desired.wanted.get(item.key), sides.observed.states.get(item.key)
    if spec is None:
        yield Drifted(key=key, cause=Cause.UNAPPLIED, why="it exists, and the file no longer has it")
    elif item.action is Action.CREATE:
        known = str(key) in before
        why = (
            f"it existed at an earlier check: {GONE}"
            if known
            else "it was never applied, or somebody deleted it"
        )
        yield Drifted(
            key=key,
            cause=Cause.VANISHED if known else Cause.MISSING,
            why=("it is being deleted" if state is not None else why) + _held(item),
        )
    elif (
        state is None or state.mark is None
    ):  # it exists without bfinfra (a host), and nothing of it is applied yet
        yield from (
            Drifted(key=key, cause=Cause.UNAPPLIED, field=c.field, now=c.now, wanted=c.wanted)
            for c in item.changes
        )
    elif state.mark.applied is None:
        yield Drifted(
            key=key, cause=Cause.UNFINISHED, why="an apply started and did not end; the next one finishes it"
        )
    elif not item.steps:  # held: the file changed a field that needs a file which is missing
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
    server_moved = None if since is None else {change.field for change in since}
    for change in item.changes:
        if change.field == UNFINISHED:
            continue
        by_file = any(_related(change.field, each) for each in file)
        by_server = (
            not by_file
            if server_moved is None
            else any(_related(change.field, each) for each in server_moved)
        )
        # changed neither in the file nor on the server: it follows from another field that the file changed
        cause = Cause.UNAPPLIED if not by_server else Cause.CONFLICT if by_file else Cause.DRIFT
        yield Drifted(
            key=item.key,
            cause=cause,
            field=change.field,
            applied=_at(applied, change.field),
            now=change.now,
            wanted=change.wanted,
        )
    if not item.changes:  # a step may change something that no field shows
        yield Drifted(
            key=item.key,
            cause=Cause.UNAPPLIED if file else Cause.DRIFT,
            why="; ".join(step.title() for step in item.steps),
        )


def _since_applied(
    key: Key, spec: Any, applied: Mapping[str, Any], sides: _Sides
) -> tuple[Change, ...] | None:
    """The changes between what was applied and the observed state: the same decision, with the file as it was
    applied. None where that can't be decided.
    """
    try:
        then = DesiredState(sides.desired.site, {key: spec_of(type(spec), applied, spec)})
        steps = decide(key, then, sides.observed, sides.kinds, sides.everything)
    except Awaited as awaited:
        steps = awaited.steps
    except (ValidationError, BfinfraError):
        return None
    return Item(key, Action.UPDATE, steps).changes


def _related(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _at(applied: Mapping[str, object], path: str) -> Any:
    """The value at a dotted path, or None. Names may contain dots."""
    for change in differences(None, applied):
        if change.field == path:
            return change.wanted
    return None
