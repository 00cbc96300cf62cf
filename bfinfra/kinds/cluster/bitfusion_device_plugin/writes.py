"""Decides which objects of a device plug-in to write, and in which steps. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bfinfra.backends.kubernetes.marks import mark_only, marked, site_of
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import ASKING, RUNNING, Rendered
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import Place, State, Thing, place_of
from bfinfra.kinds.cluster.bitfusion_device_plugin.steps import Ask, Replace, RollOut, Write
from bfinfra.kinds.cluster.bitfusion_device_plugin.takeover import unchangeable
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.step import Step

OBJECT = ("apiVersion", "kind", "metadata", "status")


def writes(
    objects: Sequence[Rendered],
    state: State | None,
    context: PlanContext,
    home: Endpoint | Unknown,
    late: Place | None,
) -> Iterator[Step]:
    """The steps that write. `late`: a Deployment to write again, so that the apply waits for it before the
    API server trusts less.
    """
    groups: dict[type[Write], list[Rendered]] = {Write: [], Replace: [], RollOut: [], Ask: []}
    for each in objects:
        what = each.manifest["kind"]
        groups[
            Replace
            if unchangeable(each, state)
            else RollOut
            if what in RUNNING
            else Ask
            if what in ASKING
            else Write
        ].append(each)
    yield from step_for(Write, groups[Write], state, context, home)
    if state is not None and groups[Replace]:
        yield _replacing(groups[Replace], state, context)
    rolled = tuple(step_for(RollOut, groups[RollOut], state, context, home))
    yield from rolled
    if late and not any(late in map(place_of, step.manifests) for step in rolled):
        again = tuple(
            _committed(each, context) for each in groups[RollOut] if place_of(each.manifest) == late
        )
        yield RollOut(what=str(late), home=home, manifests=again, existing=(late,))
    yield from step_for(Ask, groups[Ask], state, context, home)


def _replacing(group: Sequence[Rendered], state: State, context: PlanContext) -> Replace:
    places = [place_of(each.manifest) for each in group]
    changes = tuple(change for each in group for change in unchangeable(each, state))
    return Replace(
        what=", ".join(map(str, places)),
        home=state.home,
        manifests=tuple(_committed(each, context) for each in group),
        existing=tuple(places),
        uids=tuple(state.things[place].uid for place in places),
        changes=changes,
    )


def step_for(
    step: type[Write],
    group: Sequence[Rendered],
    state: State | None,
    context: PlanContext,
    home: Endpoint | Unknown,
) -> Iterator[Write]:
    """One step for all objects of a group that are missing or differ."""
    wrong = [(each, changes) for each in group if (changes := changes_of(each, state))]
    if wrong:
        manifests = tuple(_committed(each, context) for each, _ in wrong)
        places = [place_of(each) for each in manifests]
        existing = tuple(place for place in places if state is not None and place in state.things)
        yield step(
            what=", ".join(map(str, places)),
            home=home,
            manifests=manifests,
            existing=existing,
            changes=tuple(c for _, found in wrong for c in found),
        )


def marking(state: State, mark: Mark, changes: tuple[Change, ...]) -> Iterator[Write]:
    """The steps that put the mark on the objects that are there. Raises Refusal for one of another
    resource.
    """
    for place, thing in state.things.items():
        mark.refuse_others(thing.mark, f"the cluster has {place} already")
    for step, kinds in ((RollOut, RUNNING), (Ask, ASKING), (Write, ())):
        found = {
            place: thing
            for place, thing in state.things.items()
            if not _has(thing, mark)
            and (place.kind in kinds if kinds else place.kind not in (*RUNNING, *ASKING))
        }
        if found:
            yield step(
                what=", ".join(map(str, found)),
                home=state.home,
                manifests=tuple(mark_only(thing.live, mark, thing.uid) for thing in found.values()),
                existing=tuple(found),
                changes=changes,
            )


def _has(thing: Thing, mark: Mark) -> bool:
    return thing.mark is not None and site_of(thing.live) == mark.site


def _committed(rendered: Rendered, context: PlanContext) -> dict[str, Any]:
    manifest = marked(rendered.manifest, context.mark)
    manifest["metadata"]["annotations"][RENDERED] = rendered.digest
    return manifest


def changes_of(rendered: Rendered, state: State | None) -> tuple[Change, ...]:
    """Return why an object has to be written: it is missing, the site changed, or somebody else
    changed it.
    """
    place = place_of(rendered.manifest)
    thing = state.things.get(place) if state else None
    if thing is None or thing.going:
        return (Change(str(place), None, rendered.digest[:12]),)
    parts = {
        **{name: value for name, value in rendered.manifest.items() if name not in OBJECT},
        "labels": rendered.manifest["metadata"]["labels"],
    }
    live = {**thing.live, "labels": thing.live["metadata"].get("labels")}
    drift = tuple(
        change
        for name, wanted in parts.items()
        for change in _differing(live.get(name), wanted, f"{place}.{name}")
    )
    if thing.digest != rendered.digest:
        return (Change(str(place), thing.digest[:12] or None, rendered.digest[:12]),)
    return drift


def _differing(live: object, wanted: object, path: str) -> Iterator[Change]:
    """The leaves that differ, without what the server or somebody else added."""
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        for name, value in wanted.items():
            yield from _differing(live.get(name), value, f"{path}.{name}")
    elif isinstance(wanted, list) and isinstance(live, list) and len(live) == len(wanted):
        for number, (have, value) in enumerate(zip(live, wanted, strict=True)):
            yield from _differing(have, value, f"{path}.{number}")
    elif live != wanted:
        big = path.endswith(".caBundle") or isinstance(wanted, (list, Mapping))
        yield Change(
            path, "another one" if big and live is not None else live, "the site's" if big else wanted
        )
