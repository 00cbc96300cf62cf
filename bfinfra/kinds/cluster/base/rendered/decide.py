"""From a rendering and the live objects to steps. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bfinfra.backends.kubernetes.marks import SITE, site_of
from bfinfra.kinds.cluster.base.rendered.differ import AS_RENDERED, field_changes
from bfinfra.kinds.cluster.base.rendered.hooks import (
    AFTER,
    BEFORE,
    Hook,
    of_ended_removal,
    removal_steps,
    taken,
)
from bfinfra.kinds.cluster.base.rendered.hooks import steps as hook_steps
from bfinfra.kinds.cluster.base.rendered.immutable import needs_replacement
from bfinfra.kinds.cluster.base.rendered.objects import (
    CUSTOM,
    DEFINITIONS,
    OBJECTS,
    PRECIOUS,
    WORKLOADS,
    Id,
    group_of,
    order,
)
from bfinfra.kinds.cluster.base.rendered.readiness import readiness
from bfinfra.kinds.cluster.base.rendered.rendering import Rendering
from bfinfra.kinds.cluster.base.rendered.state import EVENTS as REMOVAL
from bfinfra.kinds.cluster.base.rendered.state import Record, State, Thing, record_name
from bfinfra.kinds.cluster.base.rendered.steps import (
    AwaitObjects,
    Begin,
    Commit,
    Create,
    CreateAndWait,
    Define,
    Delete,
    DropHook,
    Extend,
    Fields,
    Forget,
    Objects,
    Prune,
    PrunePrecious,
    Redefine,
    Replace,
    RunHook,
    Update,
)
from bfinfra.model import compare
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import READY
from bfinfra.model.step import Step


def steps(
    name: str, spec: Any, rendering: Rendering, state: State | None, context: PlanContext
) -> Iterator[Step]:
    """The steps to the rendering: definitions, then what pods need, then pods, then objects of types that
    these define; what the rendering no longer has is deleted last. An adoption marks what is there.
    """
    record = _record(name, spec, rendering, state, context)
    home = record["home"]
    noted = state.record if state is not None and state.record and not state.record.going else None
    file = compare.changes(spec, state.mark if state else None)
    removal = bool(rendering.removal or (noted and noted.removal))
    if state is not None and compare.adopting(state.mark):
        committed = context.mark.committed(spec.applied())
        yield from _adopted(rendering, state, {**record, "changes": file}, committed)
        return
    if noted is None:
        lost = (Change("record", None, AS_RENDERED),) if state else ()
        yield Begin(
            **record, mark=context.mark, types=rendering.types, removal=removal, changes=(*lost, *file)
        )
    elif further := {*rendering.types} - {*noted.types}:
        every = (*noted.types, *further)
        known = tuple(sorted({*rendering.objects, *(noted.objects or ())}))
        added = _added(rendering, state) or file
        yield Extend(**{**record, "objects": known}, mark=context.mark, types=every, changes=added)
    place: Fields = {"name": name, "cluster": spec.cluster, "home": home, "mark": context.mark}
    run = partial(
        hook_steps, hooks=[Hook(each) for each in rendering.hooks.values()], rendered=rendering.digest
    )
    for each in of_ended_removal(state) if state else ():
        yield DropHook(**place, objects=(each,), changes=(Change(str(each), "of a removal", None),))
    yield from run(BEFORE, state=state, place={**record, **place})
    changed = list(_changed(place, rendering, state))
    yield from changed
    pruned = list(_pruned(place, rendering, state))
    yield from pruned
    after = list(run(AFTER, state=state, place={**record, **place}))
    if any(isinstance(step, RunHook) for step in after) and getattr(spec, "wait", "") == "ready":
        yield from _until_ready(place, rendering, state)
    yield from after
    mark = context.mark.committed(spec.applied())
    if (
        noted is None
        or noted.mark is None
        or noted.mark.applied != mark.applied
        or {*noted.types} != {*rendering.types}
        or noted.objects not in (None, rendering.objects)
        or noted.removal != rendering.removal
        or any(noted.hooks.get(event) for event in REMOVAL)
        or changed
        or pruned
    ):
        yield Commit(**record, mark=mark, types=rendering.types, removal=removal, changes=file)


def _record(name: str, spec: Any, rendering: Rendering, state: State | None, context: PlanContext) -> Fields:
    """What the steps on the record have in common. Raises Refusal for a move, and for objects of another."""
    _stays(spec, rendering.namespace, state)
    for each, thing in (state.things if state else {}).items():
        if thing.mark is not None:
            context.mark.refuse_others(thing.mark, f"the cluster has {each} already")
    return {
        "record": record_name(context.mark.kind, name),
        "namespace": rendering.namespace,
        "cluster": spec.cluster,
        "home": state.home if state else context.needs["cluster"].get("endpoint"),
        "objects": rendering.objects,
        "name": name,
    }


def _adopted(rendering: Rendering, state: State, record: Fields, mark: Mark) -> Iterator[Step]:
    """The steps that mark the objects that are there, and nothing else: no hook runs, and an object is not
    noted to be as rendered. A record keeps what it lists, as that is not deleted now.
    """
    for each, thing in state.things.items():
        if each in rendering.hooks and thing.mark is None:
            raise taken(each)
    noted = state.record or Record(None, ())
    of: Fields = {
        **record,
        "objects": tuple(sorted({*rendering.objects, *(noted.objects or ())})),
        "types": tuple(dict.fromkeys((*noted.types, *rendering.types))),
        "removal": bool(rendering.removal or noted.removal),
    }
    if state.record is None:
        yield Begin(**of, mark=mark.pending)
    uids = {
        each: str(thing.manifest["metadata"].get("uid", ""))
        for each, thing in sorted(state.things.items(), key=lambda item: order(item[0]))
        if each in rendering.manifests and any(_mark_changes(each, thing, mark))
    }
    if uids:
        place: Fields = {name: record[name] for name in ("name", "cluster", "home", "changes")}
        yield Update(**place, mark=mark.pending, objects=tuple(uids), uids=uids)
    yield Commit(**of, mark=mark)


def gone(name: str, state: State, context: PlanContext) -> Iterator[Step]:
    """The steps that delete everything: first objects of defined types, while their controllers run, then the
    others, the definitions, the record; with the hooks of the removal before and after.
    """
    kind = context.mark.kind
    place: Fields = {"name": name, "cluster": state.cluster, "home": state.home, "mark": context.mark}
    around: Fields = {**place, "record": record_name(kind, name)}
    before, after = (list(removal_steps(event, state, around)) for event in REMOVAL)
    yield from before
    own = {each for step in (*before, *after) if isinstance(step, Objects) for each in step.objects}
    for group in _groups([each for each in state.things if each not in own], backwards=True):
        # an object that waits for its controller is deleted again, which waits for it, too
        left = tuple(
            each for each in group if not state.things[each].going or each.stage in (CUSTOM, DEFINITIONS)
        )
        if left:
            yield Delete(**place, objects=left)
    yield from after
    if state.record is not None and not state.record.going:
        yield Forget(
            record=record_name(kind, name), namespace=state.namespace, cluster=state.cluster, home=state.home
        )


def _stays(spec: Any, namespace: str, state: State | None) -> None:
    for field, now, then in (
        ("cluster", state.cluster if state else spec.cluster, spec.cluster),
        ("namespace", state.namespace if state and state.record else namespace, namespace),
    ):
        if now != then:
            raise Refusal(
                f"its objects can't move from {now} to {then}",
                field=field,
                why="they would all be deleted and created again",
                next="remove it from the file, apply, and add it again",
            )


def _until_ready(place: Fields, rendering: Rendering, state: State | None) -> Iterator[Step]:
    """A wait for objects that are not ready."""
    there = state.things if state else {}
    late = tuple(
        each
        for each in rendering.manifests
        if each not in there or readiness(each, there[each].manifest) != READY
    )
    if late:
        yield AwaitObjects(**place, objects=late)


def _added(rendering: Rendering, state: State | None) -> tuple[Change, ...]:
    there = state.things if state else {}
    return tuple(Change(str(each), None, AS_RENDERED) for each in rendering.manifests if each not in there)


def _groups(objects: Any, *, backwards: bool = False) -> Iterator[tuple[Id, ...]]:
    """The objects of each stage, in order."""
    stages = (CUSTOM, OBJECTS, DEFINITIONS) if backwards else (DEFINITIONS, OBJECTS, CUSTOM)
    for stage in stages:
        found = sorted((each for each in objects if each.stage == stage), key=order, reverse=backwards)
        if found:
            yield tuple(found)


def _changed(place: Fields, rendering: Rendering, state: State | None) -> Iterator[Step]:
    there = state.things if state else {}
    for group in _groups(rendering.manifests):
        stage = group[0].stage
        lacking = tuple(each for each in group if each not in there or there[each].going)
        anew, moved = dict[Id, tuple[Change, ...]](), dict[Id, tuple[Change, ...]]()
        for each in group:
            if each in lacking:
                continue
            wanted, live = rendering.manifests[each], there[each]
            if found := field_changes(wanted, live.manifest):
                (anew if needs_replacement(each, wanted, live.manifest) else moved)[each] = found
            elif found := tuple(_mark_changes(each, live, place["mark"])):
                moved[each] = found
        if anew:
            yield _step(Replace, place, anew)
        fresh: dict[Id, tuple[Change, ...]] = {
            each: (Change(str(each), None, AS_RENDERED),) for each in (*lacking, *anew)
        }
        if moved:
            # new pods of what is changed need the accounts and settings that lack
            if needed := {each: fresh.pop(each) for each in [*fresh] if each.kind not in WORKLOADS}:
                yield _step(_creation(stage, needed, rendering), place, needed)
            yield _step(Redefine if stage == DEFINITIONS else Update, place, moved)
        if fresh:
            yield _step(_creation(stage, fresh, rendering), place, fresh)


def _mark_changes(each: Id, live: Thing, mark: Mark) -> Iterator[Change]:
    if live.mark is None or live.mark.owner != mark.owner:
        yield Change(str(each), "without a mark", AS_RENDERED)
    elif (label := site_of(live.manifest)) != mark.site:
        yield Change(f"{each}.metadata.labels.{SITE}", label, mark.site)


def _creation(stage: int, fresh: Any, rendering: Rendering) -> type[Create]:
    if stage == DEFINITIONS:
        return Define
    if stage == OBJECTS and any(each.kind in WORKLOADS for each in fresh):
        later = any(each.stage == CUSTOM for each in rendering.manifests)
        return CreateAndWait if later else Create
    return Create


def _pruned(place: Fields, rendering: Rendering, state: State | None) -> Iterator[Step]:
    left = [
        each
        for each, thing in (state.things if state else {}).items()
        if each not in rendering.manifests and each not in rendering.hooks and not thing.going
    ]
    for group in _groups(left, backwards=True):
        for step, objects in (
            (Prune, [each for each in group if each.kind not in PRECIOUS]),
            (PrunePrecious, [each for each in group if each.kind in PRECIOUS]),
        ):
            if objects:
                yield _step(step, place, {each: (Change(str(each), "there", None),) for each in objects})


def _step(of: type[Objects], place: Fields, objects: dict[Id, tuple[Change, ...]]) -> Objects:
    return of(
        **place,
        objects=tuple(objects),
        changes=tuple(change for changes in objects.values() for change in changes),
    )


def refused(field: str, why: str) -> Refusal:
    """A rendering that can't be made."""
    return Refusal("its objects can't be rendered", field=field, why=why, next="nothing was written")


def all_known(rendering: Rendering, field: str, context: PlanContext) -> None:
    """Raises Refusal for a type that neither the cluster nor the site defines, as far as known."""
    defined = {
        f"{group}/{kind}"
        for other in (context.facts or {}).values()
        if isinstance(other, Rendering)
        for group, kind in other.defined
    }
    for each in rendering.unknown:
        api, _, kind = each.partition(" ")
        if f"{group_of(api)}/{kind}" not in defined:
            raise refused(field, f"the cluster has no {kind} of {api}, and no definition of it is rendered")
