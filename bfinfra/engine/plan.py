"""The decision: from the desired and the observed state to a plan. Pure; knows no kind and no backend."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from bfinfra.engine import conflicts, graph, target
from bfinfra.engine.applied import as_applied
from bfinfra.engine.known import Known
from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.formats.shell import word
from bfinfra.model.awaited import Awaited
from bfinfra.model.compare import adopting, differences
from bfinfra.model.conflict import Conflict
from bfinfra.model.errors import Malformed, Place, Problem, Refusal, Warned
from bfinfra.model.kind import Source
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.partial import Partial
from bfinfra.model.plan import Action, Item, Plan, derive, made_or_changed
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import RECONNECT, State
from bfinfra.model.site import Site
from bfinfra.model.step import Disruption, Step


@dataclass(frozen=True)
class DesiredState:
    """The target of an apply: the site's name, its resources ({}: destroy), and which of them count as
    adopted. `marking`: those get their marks, and nothing else.
    """

    site: str
    wanted: Specs
    adopt: frozenset[Key] = field(default_factory=frozenset)
    marking: bool = False

    @classmethod
    def of(
        cls, site: Site, *, destroy: bool = False, adopt: frozenset[Key] = frozenset(), marking: bool = False
    ) -> DesiredState:
        """The site as written, or without its resources to destroy it."""
        return cls(site.name, {} if destroy else site.resources, adopt, marking)


def make(
    site: Site, desired: DesiredState, observed: ObservedState, kinds: Kinds, targets: Collection[Key] = ()
) -> Plan:
    """The plan: an item for each resource, in an order in which they may start, and all refusals. With
    `targets`: these resources and what must be done before them. Raises BfinfraError for a target that does
    not exist.
    """
    states = ours(desired, observed)
    before = graph.waits(desired.wanted, states, existing(site, desired, states, kinds))
    partial = target.part(targets, before)
    everything, unreadable = known(desired, observed), _seen_of(partial, observed.unreadable)
    items, problems = dict[Key, Item](), list[Problem]()
    for key in graph.sort(before):
        if partial and key not in partial.keys:
            continue
        if why := _unreadable(key, before[key], desired, observed, unreadable):
            unreadable[key] = why
            continue
        try:
            _check_place(key, desired, observed)
            item = _item(key, desired, observed, kinds, everything)
            items[key] = _ordered(item, before[key], _behind(item, before[key], items))
        except Awaited as awaited:
            item = _awaiting(key, awaited, desired, observed, kinds)
            items[key] = _ordered(item, before[key], located(site, key, awaited)[0])
        except Refusal as refusal:
            problems += located(site, key, refusal)
        except Malformed as error:
            unreadable[key] = str(error)
    stale = _stale(items, before, states, desired)
    problems += [unseen(key, why, site.place(key) or "") for key, why in stale.items() if items[key].steps]
    going = {key for key, item in items.items() if item.action is Action.DELETE}
    of_kinds = conflicts.of_kinds(desired.wanted, states, observed, kinds, unreadable)
    found = _about(partial, (*of_kinds, *conflicts.still_named(desired.wanted, going)))
    problems += [each.located(site.place) for each in found if each.stops]
    warnings = (*site.warnings, *(Warned(each.located(site.place)) for each in found if not each.stops))
    warnings += tuple(Warned(unseen(key, why)) for key, why in stale.items() if not items[key].steps)
    unread = {str(key): why for key, why in unreadable.items()}
    old = {str(key): why for key, why in stale.items()}
    return Plan(desired.site, tuple(items.values()), tuple(problems), unread, warnings, partial, old)


def _stale(
    items: Mapping[Key, Item], before: Mapping[Key, Mapping[Key, str]], states: Specs, desired: DesiredState
) -> dict[Key, str]:
    """Return why what is known of the resources, or of one that they refer to, are last known values. What
    this plan waits for is not among them: a host that a run of this site restarts.
    """
    own = {key: why for key, state in states.items() if key in items and (why := state.last_known())}
    found = {}
    for key, item in items.items():
        first = before[key] if key in desired.wanted else {}
        needed = (own[other] for other, because in first.items() if not because and other in own)
        hosts = (items[other] for other in first if other in items and other not in own)
        awaited = any(each.settings and each.steps for each in hosts)
        why = own.get(key) or (next(needed, "") if item.steps else "")
        if why and not (awaited and key in own):
            found[key] = why
    return found


def unseen(key: Key, why: str, where: Place | str = "") -> Problem:
    """What is said of a resource whose last known values were compared."""
    return Problem(f"{key}: its last known values were compared", where, why, RECONNECT)


def _seen_of(partial: Partial | None, unreadable: Mapping[Key | str, str]) -> dict[Key | str, str]:
    """Return the keys and kinds that can't be read, limited to the part."""
    if partial is None:
        return dict(unreadable)
    kinds = {key.kind for key in partial.keys}
    return {where: why for where, why in unreadable.items() if where in partial.keys or where in kinds}


def _about(partial: Partial | None, found: Iterable[Conflict]) -> list[Conflict]:
    """The conflicts that involve a resource of the part."""
    return [
        each
        for each in found
        if partial is None or not partial.keys.isdisjoint({each.at.key, *(key for key, _ in each.others)})
    ]


def ours(desired: DesiredState, observed: ObservedState) -> dict[Key, Any]:
    """The states of the resources that this site has or made; unmanaged objects are left out."""
    return {
        key: state
        for key, state in observed.states.items()
        if key in desired.wanted or (state.mark is not None and state.mark.site == desired.site)
    }


def existing(site: Site, desired: DesiredState, states: Specs, kinds: Kinds) -> Specs:
    """The specs that the existing resources were applied with, and the site's other resources; the file's
    spec where a mark does not say. {} if nothing is to be deleted.
    """
    if states.keys() <= desired.wanted.keys():
        return {}
    found = {
        key: as_applied(kinds[key.kind].Spec, state.mark, site.resources.get(key))
        for key, state in states.items()
    }
    others = {key: spec for key, spec in site.resources.items() if key not in desired.wanted}
    return others | {key: spec for key, spec in found.items() if spec is not None}


def known(desired: DesiredState, observed: ObservedState) -> Known:
    """The state now, for `decide`."""
    return Known(desired.site, desired.wanted, observed.states, observed.facts)


def decide(
    key: Key, desired: DesiredState, observed: ObservedState, kinds: Kinds, everything: Known | None = None
) -> tuple[Step, ...]:
    """The steps from the observed to the desired state. Raises Refusal where the kind, the mark or `protect`
    forbids them.

    `everything`: the result of `known`, for many decisions on an unchanged state.
    """
    kind, spec, state = kinds[key.kind], desired.wanted.get(key), observed.states.get(key)
    if key in desired.adopt and state is not None:
        state = _adopted(key, state, desired)
    if kind.managed and state is not None:
        _check_owner(key, spec, state, desired)
    if desired.marking and not (state and adopting(state.mark) and not state.going):
        return ()
    context = (everything or known(desired, observed)).context(key, spec)
    with provider_errors(str(key)):
        steps = tuple(kind.steps(key.name, spec, state, context))
    _check_protected(spec, state, steps)
    return steps


def _check_place(key: Key, desired: DesiredState, observed: ObservedState) -> None:
    """Raises Refusal for a resource to be made whose place is missing, or being deleted."""
    state = observed.states.get(key)
    if key in desired.wanted and key in observed.refused and (state is None or state.going):
        raise observed.refused[key]


def _adopted(key: Key, state: State, desired: DesiredState) -> State:
    """The state with the mark that it gets; as it is where the object has a whole one."""
    mark = Mark(desired.site, str(key), adopting=desired.marking)
    begun = state.mark is not None and state.mark.owner == mark.owner and state.mark.applied is None
    return replace(state, mark=mark) if state.mark is None or begun else state


def located(site: Site, key: Key, refusal: Refusal) -> list[Problem]:
    """A refusal's problems, placed at the field in the site's files."""
    place = site.place(key, refusal.field) or str(key)
    return [Problem(f"{key}: {p.what}", place, p.why, p.next) for p in refusal.problems]


def _item(key: Key, desired: DesiredState, observed: ObservedState, kinds: Kinds, everything: Known) -> Item:
    steps, state, kind = (
        decide(key, desired, observed, kinds, everything),
        observed.states.get(key),
        kinds[key.kind],
    )
    action = derive(desired.wanted.get(key), state, steps, managed=kind.managed)
    contents = state.contents if action in (Action.DELETE, Action.REPLACE) and state is not None else ()
    settings = not (kind.managed or isinstance(kind, Source))
    item = Item(key, action, steps, contents=contents, settings=settings)
    return replace(item, follows=_follows(item, desired.wanted.get(key), state)) if steps else item


def _ordered(item: Item, before: Mapping[Key, str], held: Problem | None) -> Item:
    """The item with what must be done first, why if no field says so, and what holds it."""
    because = {other: why for other, why in before.items() if why}
    return replace(item, waits_for=tuple(before), because=because, held=held)


def _behind(item: Item, before: Mapping[Key, str], items: Mapping[Key, Item]) -> Problem | None:
    """Return why the item is held because another one is; None otherwise. An item that is up to date waits
    for nothing.
    """
    if item.action is Action.KEEP and not item.steps:
        return None
    first = next((key for key in before if key in items and items[key].held), None)
    if first is None:
        return None
    why = f" ({before[first]})" if before[first] else ""
    return Problem(f"{item.key} waits for {first}{why}")


def _awaiting(
    key: Key, awaited: Awaited, desired: DesiredState, observed: ObservedState, kinds: Kinds
) -> Item:
    """The item of a resource whose file is missing. Its steps may not be known."""
    state = observed.states.get(key)
    if awaited.steps:
        return Item(key, derive(desired.wanted.get(key), state, awaited.steps), awaited.steps)
    return Item(key, made_or_changed(state) if kinds[key.kind].managed else Action.READ)


def _follows(item: Item, spec: Any, state: Any) -> frozenset[str]:
    """The fields that are not in the file and differ because the file changed another one."""
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


def _check_owner(key: Key, spec: object, state: State, desired: DesiredState) -> None:
    mark = state.mark
    if mark is None and spec is not None and state.copy:
        raise Refusal(
            state.copy,
            why="somebody copied it with its mark; bfinfra never changes an object that it did not make",
            next=(
                f"adopt the copy with: bfinfra adopt SITE {word(key)}; or delete the copy, or its mark, to "
                f"have {key} made anew"
            ),
        )
    if mark is None and spec is not None:
        raise Refusal(
            "it exists already, and bfinfra did not make it",
            why="bfinfra never changes an object without its mark",
            next=f"choose another name, or adopt it with: bfinfra adopt SITE {word(key)}",
        )
    if mark is not None and spec is not None and mark.owner != (desired.site, str(key)):
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
    desired: DesiredState,
    observed: ObservedState,
    unreadable: Mapping[Any, str],
) -> str:
    """Return why the resource can't be planned: it, or a resource that its fields name, can't be read. A
    resource that is only ordered before it does not count.
    """
    if why := observed.why_unreadable(key):
        return why
    needed = [
        other for other, why in before.items() if not why and key in desired.wanted and other in unreadable
    ]
    return unreadable[needed[0]] if needed else ""
