"""The decision: from what is wanted and what was seen to a plan. Pure; knows no kind and no backend."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from bfinfra.engine import conflicts, graph, target
from bfinfra.engine.applied import as_applied
from bfinfra.engine.known import Known
from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.model.awaited import Awaited
from bfinfra.model.compare import differences
from bfinfra.model.conflict import Conflict
from bfinfra.model.errors import Malformed, Problem, Refusal, Warned
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.partial import Partial
from bfinfra.model.plan import Action, Item, Plan, derive
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import State
from bfinfra.model.site import Site
from bfinfra.model.step import Disruption, Step


@dataclass(frozen=True)
class DesiredState:
    """What an apply aims at: the site's name, its resources (none = destroy), and what may be adopted."""

    site: str
    wanted: Specs
    adopt: frozenset[Key] = field(default_factory=frozenset)

    @classmethod
    def of(cls, site: Site, *, destroy: bool = False, adopt: frozenset[Key] = frozenset()) -> DesiredState:
        """The site as written, or an empty one."""
        return cls(site.name, {} if destroy else site.resources, adopt)


def make(
    site: Site, wish: DesiredState, world: ObservedState, kinds: Kinds, targets: Collection[Key] = ()
) -> Plan:
    """Every resource decided, in an order in which they may start; all refusals at once. With `targets` these
    and what must be done before them. BfinfraError for a target that there is not.
    """
    states = ours(wish, world)
    before = graph.waits(wish.wanted, states, standing(site, wish, states, kinds))
    partial = target.part(targets, before)
    everything, unreadable = known(wish, world), _seen_of(partial, world.unreadable)
    items, problems = dict[Key, Item](), list[Problem]()
    for key in graph.sort(before):
        if partial and key not in partial.keys:
            continue
        if why := _unreadable(key, before[key], wish, world, unreadable):
            unreadable[key] = why
            continue
        try:
            item = _item(key, wish, world, kinds, everything)
            items[key] = _ordered(item, before[key], _behind(item, before[key], items))
        except Awaited as awaited:
            item = _awaiting(key, awaited, wish, world, kinds)
            items[key] = _ordered(item, before[key], located(site, key, awaited)[0])
        except Refusal as refusal:
            problems += located(site, key, refusal)
        except Malformed as error:
            unreadable[key] = str(error)
    going = {key for key, item in items.items() if item.action is Action.DELETE}
    of_kinds = conflicts.of_kinds(wish.wanted, states, world, kinds, unreadable)
    found = _about(partial, (*of_kinds, *conflicts.still_named(wish.wanted, going)))
    problems += [each.located(site.place) for each in found if each.stops]
    warnings = (*site.warnings, *(Warned(each.located(site.place)) for each in found if not each.stops))
    unread = {str(key): why for key, why in unreadable.items()}
    return Plan(wish.site, tuple(items.values()), tuple(problems), unread, warnings, partial)


def _seen_of(partial: Partial | None, unreadable: Mapping[Key | str, str]) -> dict[Key | str, str]:
    """What can't be read, as far as it is about the part."""
    if partial is None:
        return dict(unreadable)
    kinds = {key.kind for key in partial.keys}
    return {where: why for where, why in unreadable.items() if where in partial.keys or where in kinds}


def _about(partial: Partial | None, found: Iterable[Conflict]) -> list[Conflict]:
    """The conflicts in which a resource of the part is."""
    return [
        each
        for each in found
        if partial is None or not partial.keys.isdisjoint({each.at.key, *(key for key, _ in each.others)})
    ]


def ours(wish: DesiredState, world: ObservedState) -> dict[Key, Any]:
    """The states that this site wants or made; strangers are left out."""
    return {
        key: state
        for key, state in world.states.items()
        if key in wish.wanted or (state.mark is not None and state.mark.site == wish.site)
    }


def standing(site: Site, wish: DesiredState, states: Specs, kinds: Kinds) -> Specs:
    """As which specs what stands was applied, and what else the file has; where no mark tells, as the file
    says. Nothing where nothing goes.
    """
    if states.keys() <= wish.wanted.keys():
        return {}
    found = {
        key: as_applied(kinds[key.kind].Spec, state.mark, site.resources.get(key))
        for key, state in states.items()
    }
    others = {key: spec for key, spec in site.resources.items() if key not in wish.wanted}
    return others | {key: spec for key, spec in found.items() if spec is not None}


def known(wish: DesiredState, world: ObservedState) -> Known:
    """What decisions look at, as it is now."""
    return Known(wish.site, wish.wanted, world.states, world.facts)


def decide(
    key: Key, wish: DesiredState, world: ObservedState, kinds: Kinds, everything: Known | None = None
) -> tuple[Step, ...]:
    """The steps from what was seen to what is wanted. Refusal where the kind, the mark or `protect` forbids.

    `everything`: what `known` says, for many decisions on an unchanged world.
    """
    kind, spec, state = kinds[key.kind], wish.wanted.get(key), world.states.get(key)
    if key in wish.adopt and state is not None and state.mark is None:
        state = replace(state, mark=Mark(wish.site, str(key)).pending)
    if kind.managed and state is not None:
        _check_owner(key, spec, state, wish)
    context = (everything or known(wish, world)).context(key, spec)
    with provider_errors(str(key)):
        steps = tuple(kind.steps(key.name, spec, state, context))
    _check_protected(spec, state, steps)
    return steps


def located(site: Site, key: Key, refusal: Refusal) -> list[Problem]:
    """A refusal's problems, placed at the field in the site's files."""
    place = site.place(key, refusal.field) or str(key)
    return [Problem(f"{key}: {p.what}", place, p.why, p.next) for p in refusal.problems]


def _item(key: Key, wish: DesiredState, world: ObservedState, kinds: Kinds, everything: Known) -> Item:
    steps, state = decide(key, wish, world, kinds, everything), world.states.get(key)
    action = derive(wish.wanted.get(key), state, steps, managed=kinds[key.kind].managed)
    going = action in (Action.DELETE, Action.REPLACE)
    item = Item(key, action, steps, contents=state.contents if going and state is not None else ())
    return replace(item, follows=_follows(item, wish.wanted.get(key), state)) if steps else item


def _ordered(item: Item, before: Mapping[Key, str], held: Problem | None) -> Item:
    """The item with what must be done first, why where no field says so, and what holds it back."""
    because = {other: why for other, why in before.items() if why}
    return replace(item, waits_for=tuple(before), because=because, held=held)


def _behind(item: Item, before: Mapping[Key, str], items: Mapping[Key, Item]) -> Problem | None:
    """What an item waits for that waits for a file; what stands and is up to date waits for nothing."""
    if item.action is Action.KEEP and not item.steps:
        return None
    first = next((key for key in before if key in items and items[key].held), None)
    if first is None:
        return None
    why = f" ({before[first]})" if before[first] else ""
    return Problem(f"{item.key} waits for {first}{why}")


def _awaiting(key: Key, awaited: Awaited, wish: DesiredState, world: ObservedState, kinds: Kinds) -> Item:
    """What is to be done to a resource whose file isn't there yet; with which steps may not be known."""
    state, managed = world.states.get(key), kinds[key.kind].managed
    if awaited.steps:
        return Item(key, derive(wish.wanted.get(key), state, awaited.steps, managed=managed), awaited.steps)
    return Item(key, Action.READ if not managed else Action.CREATE if state is None else Action.UPDATE)


def _follows(item: Item, spec: Any, state: Any) -> frozenset[str]:
    """The fields that stand in no file, where the file changed one that does."""
    applied = state.mark.applied if state is not None and state.mark is not None else None
    if spec is None or applied is None or not differences(applied, spec.applied()):
        return frozenset()
    known = [change.field for written in (applied, spec.applied()) for change in differences(None, written)]
    return frozenset(
        change.field
        for change in item.changes
        if not any(
            name == change.field or name.startswith(f"{change.field}.") or change.field.startswith(f"{name}.")
            for name in known
        )
    )


def _check_owner(key: Key, spec: Any, state: State, wish: DesiredState) -> None:
    mark = state.mark
    if mark is None and spec is not None and state.copy:
        raise Refusal(
            state.copy,
            why="somebody copied it with its mark, and what bfinfra did not make is never touched",
            next=(
                f"take the copy over with: bfinfra adopt SITE {key}; or delete the copy, or its mark, to "
                f"have {key} made anew"
            ),
        )
    if mark is None and spec is not None:
        raise Refusal(
            "it stands there already, and bfinfra did not make it",
            why="an object without the mark is never touched",
            next=f"choose another name, or take it over with: bfinfra adopt SITE {key}",
        )
    if mark is not None and spec is not None and mark.owner != (wish.site, str(key)):
        raise Refusal(
            f"it belongs to {mark.address} of the site {mark.site}",
            why="two sites would undo each other's work",
            next="choose another name, or remove it from the other site first",
        )


def _check_protected(spec: Any, state: Any, steps: tuple[Step, ...]) -> None:
    applied = (state.mark.applied if state is not None and state.mark is not None else None) or {}
    goes = steps and (spec is None or any(s.disruption is Disruption.REPLACE or s.destructive for s in steps))
    if goes and (spec.protect if spec is not None else applied.get("protect")):
        raise Refusal(
            "it is protected",
            field="protect",
            why="this plan would delete or replace it, or a part of it",
            next=f"{'write' if spec is not None else 'write it with'} protect: false and apply that first",
        )


def _unreadable(
    key: Key,
    before: Mapping[Key, str],
    wish: DesiredState,
    world: ObservedState,
    unreadable: Mapping[Any, str],
) -> str:
    """Also where what a field names can't be read, for the same reason; what only has to stand before decides
    nothing.
    """
    if why := world.why_unreadable(key):
        return why
    needed = [
        other for other, why in before.items() if not why and key in wish.wanted and other in unreadable
    ]
    return unreadable[needed[0]] if needed else ""
