"""The steps of a workload. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bfinfra.backends.kubernetes.marks import Marking, mark_only
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED
from bfinfra.kinds.cluster.token_secret.spec import FORMS
from bfinfra.kinds.cluster.workload.compare import differing
from bfinfra.kinds.cluster.workload.plugin import Installed, installed
from bfinfra.kinds.cluster.workload.render import Rendered, Values, render
from bfinfra.kinds.cluster.workload.spec import Spec
from bfinfra.kinds.cluster.workload.state import Record, State, Thing, record_name
from bfinfra.kinds.cluster_locator import real_name
from bfinfra.model import compare
from bfinfra.model.awaited import Absent, held
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Problem, Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Right, Use, may
from bfinfra.model.step import Disruption, Step

CLAIM = "PersistentVolumeClaim"
AS_WRITTEN = "as in the manifest"
RESOURCES = {CLAIM: "persistentvolumeclaims", "Pod": "pods", "Job": "jobs.batch"}
"""The types of a workload's objects, as RBAC names them. Only the types in its manifest need privileges."""


def each(verbs: str) -> tuple[Right, ...]:
    """The verbs on all of them."""
    return tuple(may(verbs, resource, thing) for thing, resource in RESOURCES.items())


@dataclass(frozen=True, kw_only=True)
class Begin(Step):
    """begin the record {record} in namespace {namespace}"""

    rights = (may("create", "configmaps", "record"),)

    record: str
    namespace: str
    home: Endpoint | Unknown
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create {what} in namespace {namespace}"""

    rights = each("create")

    what: str
    namespace: str
    home: Endpoint | Unknown
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Alter(Step):
    """change {what} in namespace {namespace}"""

    rights = each("patch")

    what: str
    namespace: str
    home: Endpoint
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete {what} in namespace {namespace}"""

    destructive = True
    rights = (*each("delete"), may("delete", "configmaps", "record"))
    uses = (Use.DESTROY,)
    what: str
    api_version: str
    namespace: str
    home: Endpoint


@dataclass(frozen=True, kw_only=True)
class Clear(Delete):
    """clear away {what} in namespace {namespace}, which has ended"""

    destructive = False
    rights = each("delete")
    uses = (Use.APPLY,)
    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Withdraw(Clear):
    """take back {what} in namespace {namespace}, of which nothing ran yet, to make it anew"""


@dataclass(frozen=True, kw_only=True)
class Replace(Delete):
    """stop and delete {what} in namespace {namespace}, to make it anew"""

    disruption = Disruption.REPLACE
    why = "pods and jobs can't change once they are created"
    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Commit(Step):
    """note in {record} what was started"""

    rights = (may("patch", "configmaps", "record"),)

    record: str
    namespace: str
    home: Endpoint | Unknown
    mark: Mark
    runs: Mapping[str, str]

    def manifest(self) -> dict[str, Any]:
        """The record's content."""
        metadata = {"name": self.record, "namespace": self.namespace}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"runs": json.dumps(dict(sorted(self.runs.items())))},
        }


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: objects in the file's order, claims first. The record is written before them and committed
    after them.
    """
    if spec is None:
        return () if state is None else tuple(_removal(name, state, Delete))
    cluster, namespace = place(spec, context)
    if isinstance(problem := (context.facts or {}).get(name), Absent):
        return _while_away(spec, state, context, (cluster, namespace), problem)
    if state is not None and (state.cluster, state.namespace) != (cluster, namespace):
        moved = differences(
            {"cluster": state.cluster, "namespace": state.namespace},
            {"cluster": cluster, "namespace": namespace},
        )
        away = tuple(_removal(name, state, Replace, moved))
        return away + (_new(name, spec, namespace, context) if away else ())
    return tuple(_here(name, spec, state, context, namespace))


def _while_away(
    spec: Spec, state: State | None, context: PlanContext, where: tuple[str, str], problem: Absent
) -> Sequence[Step]:
    """No steps if everything that was started is as in the record. Else raises Awaited, as only the manifest
    contains what to create.
    """
    record, mark = state.record if state else None, context.mark.committed(spec.applied())
    there = state is not None and (state.cluster, state.namespace) == where
    if (
        state is None
        or record is None
        or record.going
        or not there
        or record.mark is None
        or record.mark.applied != mark.applied
    ):
        raise held(problem, "manifest")
    lacking: list[Step] = []
    namespace = where[1]
    for what, digest in record.runs.items():
        thing = state.objects.get(what)
        if thing is None and spec.run == "again":
            lacking.append(
                Create(
                    what=what,
                    namespace=namespace,
                    home=state.home,
                    manifest={},
                    changes=(Change(what, None, AS_WRITTEN),),
                )
            )
        elif thing is not None and thing.digest != digest:
            changed = Change(what, "of another manifest", AS_WRITTEN)
            lacking.append(
                Alter(what=what, namespace=namespace, home=state.home, manifest={}, changes=(changed,))
            )
    if lacking:
        raise held(problem, "manifest", lacking)
    return ()


def place(spec: Spec, context: PlanContext) -> tuple[str, str]:
    """The cluster and namespace that a spec means."""
    key = context.needs["cluster"].key
    if key.kind == "supervisor_namespace":
        if spec.namespace not in (None, key.name):
            raise Refusal(
                f"the namespace is {key.name}",
                field="namespace",
                why="a supervisor namespace contains no others",
                next="leave namespace out",
            )
        return spec.cluster, key.name
    return spec.cluster, real_name(
        spec.namespace, spec.cluster, context.needs.get("namespace")
    ) if spec.namespace else "default"


def _new(name: str, spec: Spec, namespace: str, context: PlanContext) -> tuple[Step, ...]:
    return tuple(_here(name, spec, None, context, namespace))


def _here(name: str, spec: Spec, state: State | None, context: PlanContext, namespace: str) -> Iterator[Step]:
    objects = _rendered(name, spec, namespace, context)
    home = state.home if state else context.needs["cluster"].get("endpoint")
    record = state.record if state else None
    at: dict[str, Any] = {"namespace": namespace, "home": home}
    changes = compare.changes(spec, state.mark if state else None)
    if record is None or record.going:
        yield Begin(record=record_name(name), mark=context.mark, changes=changes, **at)
    for rendered in objects:
        yield from _object(rendered, state, spec, context, at)
    adopting = compare.adopting(state.mark if state else None)
    there = state.objects if state else {}
    for what, thing in () if adopting else there.items():
        if not thing.going and what not in {r.name for r in objects}:
            yield Delete(
                what=what, api_version=thing.api_version, changes=(Change(what, "there", None),), **at
            )
    ran = record.runs if record else {}
    runs = {
        r.name: ran[r.name] if _kept(r, state) else r.digest
        for r in objects
        if not r.name.startswith(CLAIM) and not (adopting and r.name not in there)
    }
    mark = context.mark.committed(spec.applied())
    if record is None or record.mark is None or record.mark.applied != mark.applied or record.runs != runs:
        yield Commit(record=record_name(name), mark=mark, runs=runs, changes=changes, **at)


def _object(
    rendered: Rendered, state: State | None, spec: Spec, context: PlanContext, at: Mapping[str, Any]
) -> Iterator[Step]:
    thing = state.objects.get(rendered.name) if state else None
    changes = _changes(rendered, thing)
    create = Create(what=rendered.name, manifest=rendered.marked_with(context.mark), changes=changes, **at)
    if state is not None and compare.adopting(state.mark):
        context.mark.refuse_others(thing.mark if thing else None, f"there is a {rendered.name} already")
        if thing is not None and thing.mark is None:
            manifest, changes = _label_only(rendered, thing, context.mark), compare.changes(spec, state.mark)
            yield Alter(what=rendered.name, manifest=manifest, changes=changes, **at)
    elif thing is None:
        if not _ran(rendered, state.record if state else None, spec):
            yield create
    elif thing.digest == rendered.digest or _kept(rendered, state):
        return
    elif not thing.digest and not thing.going:  # it stays as it is, and gets the mark
        manifest = _label_only(rendered, thing, context.mark)
        yield Alter(what=rendered.name, manifest=manifest, changes=changes, **at)
    elif thing.kind == CLAIM:
        yield Alter(what=rendered.name, manifest=_claim(rendered, thing, context.mark), changes=changes, **at)
    else:
        step = Clear if thing.phase in ("finished", "failed") else Replace if thing.ran else Withdraw
        if not thing.going:
            yield step(what=rendered.name, api_version=thing.api_version, changes=changes, **at)
        yield create


def _changes(rendered: Rendered, thing: Thing | None) -> tuple[Change, ...]:
    """The changed fields; the whole object if it doesn't exist, or if its manifest no longer has
    something.
    """
    if thing is None:
        return (Change(rendered.name, None, AS_WRITTEN),)
    found = differing(rendered.name, thing.content, dict(rendered.manifest)) if thing.digest else ()
    return found or (
        Change(rendered.name, "of an earlier manifest" if thing.digest else "without a mark", AS_WRITTEN),
    )


def _ran(rendered: Rendered, record: Record | None, spec: Spec) -> bool:
    """Return whether it was started before and must not start again: it ended and was cleaned up, or it was
    removed.
    """
    return spec.run == "once" and record is not None and rendered.matches(record.runs.get(rendered.name, ""))


def _kept(rendered: Rendered, state: State | None) -> bool:
    """Return whether an earlier release of bfinfra rendered it, and it runs or succeeded: a new rendering
    alone is no reason to run it again.
    """
    if state is None or state.record is None or state.record.runs.get(rendered.name) != rendered.earlier:
        return False
    thing = state.objects.get(rendered.name)
    return thing is None or (thing.digest == rendered.earlier and thing.phase in ("running", "finished"))


def _claim(rendered: Rendered, thing: Thing, mark: Mark) -> Marking:
    wanted = rendered.manifest["spec"].get("resources", {}).get("requests", {}).get("storage")
    if str(wanted) == thing.request:
        raise Refusal(
            f"{rendered.name} can't change like this",
            field="manifest",
            why="only the size of a claim can change, and this one's size is the same",
            next="undo that change, or use a claim of another name",
        )
    resources = {"resources": {"requests": {"storage": wanted}}}
    return Marking({**_label_only(rendered, thing, mark), "spec": resources})


def _label_only(rendered: Rendered, thing: Thing, mark: Mark) -> Marking:
    """The mark, and that it counts as made of this manifest: what runs or ran is not made anew."""
    found = mark_only(rendered.manifest, mark, str(thing.content["metadata"].get("uid", "")))
    found["metadata"]["annotations"][RENDERED] = rendered.digest
    return found


def _removal(name: str, state: State, step: type[Delete], changes: tuple[Change, ...] = ()) -> Iterator[Step]:
    """The removal: pods and jobs, then claims, then the record."""
    things = sorted(state.objects.items(), key=lambda item: item[1].kind == CLAIM)
    at: dict[str, Any] = {"namespace": state.namespace, "home": state.home, "changes": changes}
    for what, thing in things:
        if not thing.going:
            yield step(what=what, api_version=thing.api_version, **at)
    if state.record is not None and not state.record.going:
        yield step(what=f"ConfigMap/{record_name(name)}", api_version="v1", **at)


def _rendered(name: str, spec: Spec, namespace: str, context: PlanContext) -> tuple[Rendered, ...]:
    found = (context.facts or {}).get(name, "the manifest was not read")
    if isinstance(found, str):
        raise Refusal("the manifest can't be used", field="manifest", why=found)
    if isinstance(found, Problem):
        raise Refusal(found.what, field="manifest", why=found.why, next=found.next)
    return render(
        found,
        spec,
        Values(
            namespace,
            context.mark.site,
            _token(spec, namespace, context),
            _pull(spec, namespace, context),
            _plugin(spec, context),
        ),
    )


def _plugin(spec: Spec, context: PlanContext) -> Installed | None:
    if spec.by != "plugin":
        return None
    other = context.needs["device_plugin"].spec if spec.device_plugin else None
    if other is not None and other.cluster != spec.cluster:
        raise Refusal(
            f"bitfusion_device_plugin/{spec.device_plugin} is in {other.cluster}",
            field="device_plugin",
            why=f"the workload runs in {spec.cluster}",
            next="name the one of that cluster",
        )
    return installed(spec.plugin_version, other)


def _token(spec: Spec, namespace: str, context: PlanContext) -> Mapping[str, Sequence[str]]:
    other = _partner("token_secret", spec, namespace, context) if spec.token_secret else None
    return FORMS[other.form] if other is not None else {}


def _pull(spec: Spec, namespace: str, context: PlanContext) -> str:
    other = _partner("registry_credential", spec, namespace, context) if spec.registry_credential else None
    return str(other.secret or spec.registry_credential) if other is not None else ""


def _partner(field: str, spec: Spec, namespace: str, context: PlanContext) -> Any:
    """The spec of the resource that `field` names. Raises Refusal unless it reaches the same namespace."""
    need = context.needs[field]
    other = need.spec
    if other is None:
        return None
    if other.cluster != spec.cluster:
        raise Refusal(
            f"{need.key} is for the cluster {other.cluster}",
            field=field,
            why=f"the workload runs in {spec.cluster}",
            next="name one for that cluster",
        )
    if namespace not in other.namespaces and spec.namespace not in other.namespaces:
        raise Refusal(
            f"{need.key} does not reach the namespace {namespace}",
            field=field,
            why=f"it reaches {', '.join(other.namespaces)}",
            next=f"add {namespace} to its namespaces",
        )
    return other
