"""The steps from the live image to the desired one: depot, image, hosts, notes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bfinfra.kinds.named import nowhere
from bfinfra.kinds.vcenter.base.begun import Begun, wait_for
from bfinfra.kinds.vcenter.base.host_note import HostNote
from bfinfra.kinds.vcenter.base.host_setting import HostValue
from bfinfra.kinds.vcenter.host_image.spec import Spec
from bfinfra.kinds.vcenter.host_image.steps import (
    Commit,
    Drop,
    Forget,
    Import,
    Leave,
    OnHost,
    PutBack,
    Remediate,
    SetImage,
    State,
)
from bfinfra.model import compare
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.step import Step

Versions = Mapping[str, str]
"""Component → version, "" for none."""


def decide(spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """All steps. Raises Refusal for a cluster without an image, and components that others set."""
    wanted = {(spec.cluster, key) for key in spec.components} if spec else set()
    here = [each for each in state.settings if (each.host, each.key) in wanted] if state else []
    if spec is not None and not here:
        raise nowhere("cluster", spec.cluster, "cluster", context.facts or ())
    if state is None or not state.settings:
        return ()
    if spec is not None:
        _check(spec, state, context)
    leaving = [each for each in state.settings if each not in here and _ours(each, context)]
    ends, remediations = [*_end(state, context)], [*_remediate(spec, here, leaving, state, context)]
    waits = wait_for(state.lease, state.settings[0].host) if ends or remediations else []
    return [
        *(waits if ends else ()),
        *ends,
        *(_set(spec, here, state, context) if spec else ()),
        *_put_back(leaving),
        *(() if ends else waits),
        *remediations,
        *(_commit(spec, here, state, context) if spec else ()),
        *_forget(spec, leaving, state, context),
    ]


def _check(spec: Spec, state: State, context: PlanContext) -> None:
    if not state.imaged:
        raise Refusal(
            f"the cluster {spec.cluster} has no image",
            field="cluster",
            why="its hosts are updated by baselines, or by nothing",
            next="give it an image in vCenter first (Updates, Image)",
        )
    for each in state.settings:
        if each.key in spec.components:
            what = f"{each.key} of {each.host} is set by another"
            context.mark.refuse_others(each.note.mark if each.note else None, what, "components")


def _set(spec: Spec, here: Sequence[HostValue], state: State, context: PlanContext) -> Iterator[Step]:
    due = [each for each in here if each.now != spec.components[each.key]]
    if not due:
        return
    notes = _notes(spec, here, context)
    if spec.depot and spec.depot.url not in {each.location for each in state.depots}:
        yield Import(
            cluster=spec.cluster,
            moid=due[0].moid,
            url=spec.depot.url,
            description=f"by bfinfra\n{context.mark.encode()}",
            notes=notes,
        )
    yield SetImage(
        cluster=spec.cluster,
        moid=due[0].moid,
        what=", ".join(f"{each.key} {spec.components[each.key]}" for each in due),
        components={each.key: spec.components[each.key] for each in due},
        notes=notes,
        changes=(
            *(Change(f"components.{each.key}", each.now or None, spec.components[each.key]) for each in due),
            *_changed(spec, state, {f"components.{each.key}" for each in due}),
        ),
    )


def _put_back(leaving: Sequence[HostValue]) -> Iterator[Step]:
    for cluster in dict.fromkeys(each.host for each in leaving):
        due = [each for each in leaving if each.host == cluster and each.now != _before(each)]
        if due:
            yield PutBack(
                cluster=cluster,
                moid=due[0].moid,
                what=", ".join(f"{each.key} {each.now}" for each in due),
                components={each.key: _before(each) for each in due},
                changes=tuple(
                    Change(f"components.{each.key}", each.now or None, _before(each) or None) for each in due
                ),
            )


def _end(state: State, context: PlanContext) -> Iterator[Step]:
    """End what this resource began on hosts: vCenter leaves a host in maintenance mode where a remediation
    fails.
    """
    names = {each.moid: each.host for each in state.settings}
    for each in state.hosts:
        if each.begun is not None and each.begun.mark.owner == context.mark.owner:
            stay = each.begun.stay or not each.maintenance
            yield Leave(
                cluster=names[each.cluster], moid=each.cluster, host=each.name, host_moid=each.moid, stay=stay
            )


def owed(spec: Spec | None, state: State) -> bool:
    """Whether hosts have still to go through maintenance mode, or to leave it."""
    return (
        spec is None
        or any(each.begun for each in state.hosts)
        or (
            spec.remediate == "if_needed"
            and any(
                _differs(each, spec.components)
                for each in state.hosts
                if each.cluster == state.settings[0].moid
            )
        )
    )


def _remediate(
    spec: Spec | None,
    here: Sequence[HostValue],
    leaving: Sequence[HostValue],
    state: State,
    context: PlanContext,
) -> Iterator[Step]:
    """One step for each batch of hosts that differ. Hosts of a cluster that the resource left keep what they
    have: the image no longer asks for it.
    """
    allowed = spec or _applied(leaving)
    places = here or leaving
    if not places or allowed is None or allowed.remediate != "if_needed":
        return
    cluster, moid = places[0].host, places[0].moid
    targets = {each.key: _before(each) for each in leaving if each.host == cluster}
    targets |= {each.key: spec.components[each.key] for each in here} if spec else {}
    due = [each for each in state.hosts if each.cluster == moid and _differs(each, targets)]
    batches = [due[first : first + allowed.at_once] for first in range(0, len(due), allowed.at_once)]
    for some in batches:
        yield Remediate(
            cluster=cluster,
            moid=moid,
            hosts=", ".join(each.name for each in some),
            moids=tuple(each.moid for each in some),
            begun=tuple(Begun(context.mark, "", each.maintenance).encode() for each in some),
            changes=tuple(change for each in some for change in _differences(each, targets)),
        )


def _commit(spec: Spec, here: Sequence[HostValue], state: State, context: PlanContext) -> Iterator[Step]:
    """Only where nothing else writes the notes."""
    mark = context.mark.committed(spec.applied())
    stale = [each for each in here if each.note is None or each.note.mark != mark]
    if stale and all(each.now == spec.components[each.key] for each in here):
        notes = _notes(spec, stale, context)
        changes = _changed(spec, state, set())
        yield Commit(cluster=spec.cluster, moid=stale[0].moid, notes=notes, changes=changes)


def _forget(
    spec: Spec | None, leaving: Sequence[HostValue], state: State, context: PlanContext
) -> Iterator[Step]:
    for each in state.depots if spec is None else ():
        mark = Mark.owner_in(each.description)
        if mark is not None and mark.owner == context.mark.owner:
            yield Drop(url=each.location, identity=each.id)
    for cluster in dict.fromkeys(each.host for each in leaving):
        there = [each for each in leaving if each.host == cluster]
        yield Forget(cluster=cluster, moid=there[0].moid, components=tuple(each.key for each in there))


def _notes(spec: Spec, places: Sequence[HostValue], context: PlanContext) -> dict[str, str]:
    mark = context.mark.committed(spec.applied())
    return {each.key: HostNote(mark, each.note.before if each.note else each.now).encode() for each in places}


def _changed(spec: Spec, state: State, named: set[str]) -> tuple[Change, ...]:
    found: tuple[Change, ...] = compare.changes(spec, state.mark)
    return tuple(each for each in found if each.field not in named)


def _applied(leaving: Sequence[HostValue]) -> Spec | None:
    """The spec that was applied last: whether it allows to remediate hosts."""
    found: Any = next((each.note.mark.applied for each in leaving if each.note), None)
    return Spec.model_validate(found) if found else None


def _ours(each: HostValue, context: PlanContext) -> bool:
    return each.note is not None and each.note.mark.owner == context.mark.owner


def _before(each: HostValue) -> str:
    return (each.note and each.note.before) or ""


def _differs(host: OnHost, targets: Versions) -> bool:
    return any(host.components.get(key, "") != version for key, version in targets.items())


def _differences(host: OnHost, targets: Versions) -> Iterator[Change]:
    for key, version in targets.items():
        if (now := host.components.get(key, "")) != version:
            yield Change(f"hosts.{host.name}.{key}", now or None, version or None)
