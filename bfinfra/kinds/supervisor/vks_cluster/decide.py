"""Decides the steps for a cluster. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bfinfra.backends.kubernetes.marks import mark_only, marked
from bfinfra.kinds.supervisor.base import fixed, upgrade
from bfinfra.kinds.supervisor.base.cluster_steps import Create, Delete, Drop, Hop, Move, Roll, Update, Wait
from bfinfra.kinds.supervisor.base.variables import text
from bfinfra.kinds.supervisor.base.words import Fields, at, within
from bfinfra.kinds.supervisor.vks_cluster import manifest as form
from bfinfra.kinds.supervisor.vks_cluster import refusals
from bfinfra.kinds.supervisor.vks_cluster.catalog import Catalog, VksClusterFacts, satisfied
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec
from bfinfra.kinds.supervisor.vks_cluster.state import State
from bfinfra.model import compare
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.step import Step

COUNTS = ("count", "autoscale", "protect")
"""The last parts of fields for which no node is replaced."""


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """Create, update by server-side apply, move by deleting first, delete."""
    if state is not None and not state.going and (spec is None or state.namespace != spec.namespace):
        if spec is None:
            return (Delete(name=name, namespace=state.namespace, home=state.home, api=state.api),)
        moved = (Change("namespace", state.namespace, spec.namespace),)
        going = Move(name=name, namespace=state.namespace, home=state.home, api=state.api, changes=moved)
        return (going, _create(name, spec, context))
    if spec is None:
        return ()
    if state is None or state.going:
        return (_create(name, spec, context),)
    if compare.adopting(state.mark):
        return (_adopted(name, spec, state, context),)
    return _update(name, spec, state, context)


def _adopted(name: str, spec: Spec, state: State, context: PlanContext) -> Update:
    """The step that writes the mark, and nothing else."""
    metadata = {"name": name, "namespace": state.namespace}
    found = {"apiVersion": state.api, "kind": form.KIND, "metadata": metadata}
    return Update(
        name=name,
        namespace=state.namespace,
        home=state.home,
        manifest=mark_only(found, context.mark.committed(spec.applied()), state.metadata["uid"]),
        changes=compare.changes(spec, state.mark),
    )


def drifted(spec: Spec, state: State) -> tuple[Change, ...]:
    """The fields that differ from the spec. What a supervisor filled in or wrote in full is no difference."""
    want, now = _texts(form.view(form.body(spec, state.api, {}), state.api)), _texts(state.view())
    if upgrade.matches(state.version, spec.version):
        now["version"] = want["version"]
    if satisfied(str(now.get("cluster_class")), spec.cluster_class):
        now["cluster_class"] = spec.cluster_class
    applied = state.applied
    network = want.get("network") or {}
    now["network"] = {field: value for field, value in (now.get("network") or {}).items() if field in network}
    now["variables"] = _known(now, want, applied)
    pools, before = want.get("workers") or {}, applied.get("workers") or {}
    now["workers"] = {
        pool: _pool(each, pools.get(pool, {}), before.get(pool, {}))
        for pool, each in (now.get("workers") or {}).items()
        if pool in pools or pool in before
    }
    now["control_plane"] = _pool(
        now.get("control_plane") or {}, want["control_plane"], applied.get("control_plane") or {}
    )
    now.setdefault("class_namespace", want["class_namespace"])
    return differences(now, want)


def _texts(view: Fields) -> dict[str, Any]:
    """The view with the values of variables as a site file writes them."""
    found = {**view, "variables": text(view.get("variables") or {})}
    if "control_plane" in view:
        found["control_plane"] = _texts(view["control_plane"])
    if "workers" in view:
        found["workers"] = {name: _texts(pool) for name, pool in view["workers"].items()}
    return found


def _pool(now: Fields, want: Fields, applied: Fields) -> dict[str, Any]:
    """The autoscaler sets the count of an autoscaled pool; the supervisor sets what the file leaves out."""
    shown = {**now, "variables": _known(now, want, applied)}
    for field in ("rollout", "zone", "os"):
        if field not in want and field not in applied:
            shown.pop(field, None)
    if "autoscale" in want:
        shown.pop("count", None)
        scale = shown.get("autoscale") or {}
        if "gpus" in scale and not any("gpus" in (each.get("autoscale") or {}) for each in (want, applied)):
            shown["autoscale"] = {name: value for name, value in scale.items() if name != "gpus"}
    return shown


def _known(now: Fields, want: Fields, applied: Fields) -> dict[str, Any]:
    """The variables that the file sets or has set, each with the fields that the file sets: classes fill in
    the rest.
    """
    wanted, had = want.get("variables") or {}, text(applied.get("variables") or {})
    return {
        name: within(value, wanted.get(name, had.get(name)))
        for name, value in (now.get("variables") or {}).items()
        if name in wanted or name in had
    }


def _create(name: str, spec: Spec, context: PlanContext) -> Create:
    refusals.check(spec, context)
    return Create(
        name=name,
        namespace=spec.namespace,
        home=context.needs["namespace"].get("endpoint"),
        changes=differences(None, spec.applied()),
        manifest=_manifest(name, spec, _facts(context).api(spec.namespace), context, spec),
    )


def _manifest(name: str, spec: Spec, api: str, context: PlanContext, noted: Spec) -> Fields:
    schemas = _catalog(spec, context).schemas(spec.class_namespace, spec.cluster_class, spec.version)
    return marked(form.manifest(name, spec, api, schemas), context.mark.committed(noted.applied()))


def _update(name: str, spec: Spec, state: State, context: PlanContext) -> Sequence[Step]:
    drift = drifted(spec, state)
    changes = compare.changes(spec, state.mark, drift)
    if not changes:
        return ()
    moving = {change.field for change in drift}
    way: Sequence[str] = ()
    if not upgrade.matches(state.version, spec.version):
        way = upgrade.way(state.version, spec.version, _catalog(spec, context).releases)
    _check(spec, state, moving, context)
    write = _Writing(name, spec, state, context)
    gone = sorted(
        pool
        for pool in {field.split(".")[1] for field in moving if field.startswith("workers.")}
        if pool not in spec.workers
    )
    if gone:
        aim = state.version if way else spec.version
        drop = write.step(Drop, aim, changes, pools=", ".join(gone))
        return (drop, *write.hops(way, changes)) if way else (drop,)
    if way:
        return write.hops(way, changes)
    there = {str(pool) for pool in (state.view().get("workers") or {})}
    step = Roll if any(_rolls(field, there) for field in moving) else Update
    return (write.step(step, spec.version, changes),)


def _rolls(field: str, there: set[str]) -> bool:
    """Return whether a change of the field replaces nodes; `there`: pools that exist."""
    parts = field.split(".")
    if parts[0] == "workers":
        parts = parts[2:] if parts[1] in there else []
    elif parts[0] == "control_plane":
        parts = parts[1:]
    return bool(parts) and parts[0] not in (*COUNTS, "rollout")


class _Writing:
    """Steps that write a cluster, each with the whole spec; version and class differ from step to step."""

    def __init__(self, name: str, spec: Spec, state: State, context: PlanContext) -> None:
        self.name, self.spec, self.state, self.context = name, spec, state, context

    def step(self, what: type[Update], aim: str, changes: Sequence[Change], **more: object) -> Update:
        """A step that brings the cluster to the version `aim`, and records only that as applied. A version
        or class that the cluster already has is sent in full: a prefix would be resolved again.
        """
        noted = self.spec.model_copy(update={"version": aim})
        stays = upgrade.matches(self.state.version, aim)
        sent = noted.model_copy(
            update={
                "version": str(at(self.state.body, "topology").get("version")) if stays else aim,
                "cluster_class": self._class(aim),
            }
        )
        return what(
            name=self.name,
            namespace=self.spec.namespace,
            home=self.state.home,
            manifest=_manifest(self.name, sent, self.state.api, self.context, noted),
            changes=tuple(changes),
            **more,
        )

    def hops(self, way: Sequence[str], changes: Sequence[Change]) -> Sequence[Step]:
        """Steps to the wanted version, through each minor version in between. They wait until the change in
        progress is complete.
        """
        steps: list[Step] = []
        if self.state.missing():
            steps.append(Wait(name=self.name, version=self.state.version))
        last, others = self.state.version, [change for change in changes if change.field != "version"]
        for version in map(upgrade.unnumbered, way[:-1]):
            steps.append(
                self.step(Hop, version, [Change("version", last, version), *others], version=version)
            )
            last, others = version, []
        final = [Change("version", last, self.spec.version), *others]
        return (*steps, self.step(Roll, self.spec.version, final))

    def _class(self, version: str) -> str:
        """The class of the cluster, where it is the spec's or a newer one and supports this version; else the
        spec's where it supports it; else the newest that does.
        """
        live = str(self.state.view().get("cluster_class"))
        classes = _catalog(self.spec, self.context).classes.get(self.spec.class_namespace) or {}
        fits = [
            name
            for name in (live, self.spec.cluster_class)
            if name not in classes or classes[name].supports(version)
        ]
        if satisfied(live, self.spec.cluster_class) and live in fits:
            return live
        if self.spec.cluster_class in fits:
            return self.spec.cluster_class
        found = _catalog(self.spec, self.context).replaced_by(
            self.spec.class_namespace, self.spec.cluster_class, version
        )
        return found.name if found else self.spec.cluster_class


def _facts(context: PlanContext) -> VksClusterFacts:
    found: VksClusterFacts = context.facts or VksClusterFacts()
    return found


def _catalog(spec: Spec, context: PlanContext) -> Catalog:
    return _facts(context).catalogs.get(spec.namespace, Catalog())


def _check(spec: Spec, state: State, fields: set[str], context: PlanContext) -> None:
    """Refuses changes that a cluster can't make."""
    before = at(state.body, "topology", "controlPlane").get("replicas") or 0
    fixed.check(fields, before, spec.control_plane.count)
    refusals.check(spec, context)
