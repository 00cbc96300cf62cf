"""The kind workload: observe, readiness, run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes.marks import mark_of, marked, notes
from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.base.kubernetes_objects import Existing, KubernetesObjects
from bfinfra.kinds.cluster.workload import claims, manifests
from bfinfra.kinds.cluster.workload.decide import (
    RESOURCES,
    Alter,
    Begin,
    Clear,
    Commit,
    Create,
    Delete,
    Replace,
    Withdraw,
    decide,
    each,
)
from bfinfra.kinds.cluster.workload.spec import Spec
from bfinfra.kinds.cluster.workload.state import Object, State, Thing, record_name, state_of
from bfinfra.kinds.cluster_locator import Cluster, api_of, is_named, real_name
from bfinfra.model.awaited import Absent, absent
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Problem, RemoteError
from bfinfra.model.kind import Observation, Report
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import CLUSTERS, PrivilegePlaces, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient, Clusters

RECORDS = ("v1", "ConfigMap")
KINDS = (("v1", "PersistentVolumeClaim"), ("batch/v1", "Job"), ("v1", "Pod"))
LOCKED = re.compile(r"Locked (\d+) GPUs? with partial memory ([\d.]+)")
SERVERS = re.compile(r"server list \[([^\]\s]{1,200})\]")
ERROR = re.compile(r"^.*\b(?:Error|ERROR)\b.*$", re.MULTILINE)
DONE = ("finished",)


class Workload(KubernetesObjects[Spec, State, list[Object]]):
    """Pods, jobs and claims from a manifest file, with remote GPUs."""

    document = Document.SINGAPORE_POC
    undescribed = "a site names a manifest file, and a cluster has no such file"
    name = "workload"
    deadline = 3600
    step_types = (Begin, Create, Alter, Delete, Clear, Withdraw, Replace, Commit)
    survey_privileges = (may("list", f"configmaps {' '.join(RESOURCES.values())}", CLUSTERS),)
    resource_privileges = (
        *each("get"),
        may(
            "get",
            "pods/log",
            "record",
            optional="bfinfra doesn't report failures and locked GPUs from the logs",
        ),
    )

    def __init__(self, clusters: Clusters, site: Site) -> None:
        super().__init__(clusters, site)
        self._documents: dict[str, tuple[manifests.Manifest, ...] | str | Absent] = {}
        self._problems: dict[str, Problem] = {}

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads one list per cluster, and three more where workloads are; for a workload that isn't complete
        also the objects in its places. The facts: manifests by name.
        """
        for name, spec in wanted.items():
            if spec is not None:
                self._documents[name] = _documents(spec)
        observation = super().observe(wanted, needs, include_unlisted=include_unlisted)
        for name, spec in wanted.items():
            self._problems.pop(name, None)
            if (
                spec is not None
                and name not in observation.states
                and (problem := claims.problem(self._manifests(name), spec.cluster, needs))
            ):
                self._problems[name] = problem
        return replace(observation, facts={**self._documents, **self._problems})

    def _existing(
        self,
        read: list[Object],
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> Iterator[Existing[State]]:
        pods = [obj for obj in read if obj["kind"] == "Pod"]
        for name, found in self._by_name(read, cluster.key, wanted, needs).items():
            fits = self._fits(wanted.get(name), cluster)
            yield Existing(name, fits, partial(state_of, found, pods, cluster))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Its namespace, for its record and for each type of object in its manifest; for every type if the
        manifest doesn't exist yet.
        """
        found = (api_of(needs["cluster"], spec.namespace or "default", needs.get("namespace")),)
        return dict.fromkeys(
            ("record", *({manifest["kind"]: None for manifest in spec.documents()} or RESOURCES)), found
        )

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when every pod and job runs, or has succeeded, as the spec asks. The note is what Bitfusion
        locked.
        """
        things = list(state.objects.values())
        if going := next((t for t in things if t.going), None):
            return waiting(f"{going.kind}/{going.name} is being removed")
        for thing in things:
            if thing.phase in ("failed", "stuck"):
                log = self._log(state, thing)
                return failed(
                    "; ".join(
                        part
                        for part in (f"{thing.kind}/{thing.name}: {thing.why or thing.phase}", _errors(log))
                        if part
                    )
                )
        runs = [t for t in things if t.kind != "PersistentVolumeClaim"]
        if late := next((t for t in runs if t.phase == "pulling"), None):
            return waiting(f"{late.kind}/{late.name}: {late.why}; the kubelet tries again")
        if late := next(
            (t for t in runs if t.phase not in (*DONE, *(() if spec.wait == "finished" else ("running",)))),
            None,
        ):
            return waiting(
                f"{late.kind}/{late.name} {late.why if late.phase == 'waiting' else 'runs'}".rstrip()
            )
        return Readiness(
            Ready.READY, note="; ".join(note for thing in runs if (note := _locked(self._log(state, thing))))
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one call."""
        match step:
            case Begin(home=Endpoint() as home):
                body = {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": step.record, "namespace": step.namespace},
                }
                self._clusters.at(home).create(marked(body, step.mark))
            case Create(home=Endpoint() as home, manifest=manifest):
                self._create(self._clusters.at(home), manifest)
            case Alter(home=home, manifest=manifest):
                self._clusters.at(home).apply(manifest)
            case Commit(home=Endpoint() as home):
                _commit(self._clusters.at(home), step)
            case Delete(home=home, what=what):
                thing, _, name = what.partition("/")
                self._clusters.at(home).delete(step.api_version, thing, name, step.namespace)
            case _:
                raise AssertionError(step)

    def _create(self, cluster: ClusterClient, manifest: Mapping[str, Any]) -> None:
        """Creates an object, then sets its annotations if a webhook removed them, as the Bitfusion device
        plug-in's does.
        """
        wanted, made = manifest["metadata"]["annotations"], cluster.create(manifest)
        if lost := {name: value for name, value in wanted.items() if notes(made).get(name) != value}:
            metadata = made["metadata"]
            cluster.patch(
                made["apiVersion"],
                made["kind"],
                metadata["name"],
                {"metadata": {"annotations": lost}},
                metadata["namespace"],
            )

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> list[Object]:
        ask = partial(self._marked, cluster, include_unlisted=include_unlisted)
        found = ask(*RECORDS)
        if include_unlisted and not self._has_workloads(found, cluster, wanted):
            return []
        found += [o for api, thing in KINDS for o in ask(api, thing)]
        have = {(o["kind"], o["metadata"]["namespace"], o["metadata"]["name"]) for o in found}
        complete = {
            (o["metadata"]["namespace"], o["metadata"]["name"])
            for o in found
            if o["kind"] == "ConfigMap" and _committed(o)
        }
        places: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        for name, spec in wanted.items():
            namespace = _namespace(spec, cluster.key, needs)
            if not namespace or (namespace, record_name(name)) in complete:
                continue
            for manifest in self._manifests(name):
                api, thing, real = manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"]
                if (thing, namespace, real) not in have:
                    places.setdefault((api, thing), {})[namespace, real] = None
        return [
            *found,
            *(
                o
                for (api, thing), there in places.items()
                for o in cluster.client.find(api, thing, there, cluster.namespace)
            ),
        ]

    def _has_workloads(
        self, records: Sequence[Object], cluster: Cluster, wanted: Mapping[str, Spec | None]
    ) -> bool:
        """Return whether the file names workloads in a cluster, or one has a record there: the record comes
        before a workload's objects, and goes after them.
        """
        return any(
            spec is not None and is_named(spec.cluster, cluster.key) for spec in wanted.values()
        ) or any(
            (name := self._own_name(obj)) and obj["metadata"]["name"] == record_name(name) for obj in records
        )

    def _by_name(
        self,
        objects: Sequence[Object],
        key: Key,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
    ) -> dict[str, list[Object]]:
        """Workload → its objects: by this site's marks, or unmarked ones in wanted places."""
        owner = {
            (m["kind"], namespace, m["metadata"]["name"]): name
            for name, spec in wanted.items()
            if (namespace := _namespace(spec, key, needs))
            for m in self._manifests(name)
        }
        found: dict[str, list[Object]] = {}
        for obj in objects:
            metadata = obj["metadata"]
            name = self._own_name(obj) or owner.get((obj["kind"], metadata["namespace"], metadata["name"]))
            if name and not metadata.get("ownerReferences"):
                found.setdefault(name, []).append(obj)
        return found

    def _manifests(self, name: str) -> tuple[manifests.Manifest, ...]:
        found = self._documents.get(name, ())
        return found if isinstance(found, tuple) else ()

    def _log(self, state: State, thing: Thing) -> str:
        """The log of its newest pod; "" if it can't be read, as a note is not worth a failure."""
        if not thing.pods:
            return ""
        try:
            return self._clusters.at(state.home).log(thing.pods[-1], namespace=state.namespace)
        except RemoteError:
            return ""


def _commit(cluster: ClusterClient, step: Commit) -> None:
    made = marked(step.manifest(), step.mark)
    kept = {part: made["metadata"][part] for part in ("labels", "annotations")}
    cluster.patch("v1", "ConfigMap", step.record, {"metadata": kept, "data": made["data"]}, step.namespace)


def _committed(obj: Object) -> bool:
    mark = mark_of(obj)
    return mark is not None and mark.applied is not None


def _documents(spec: Spec) -> tuple[manifests.Manifest, ...] | str | Absent:
    if problem := absent(spec.manifest, spec.awaits["manifest"]):
        return problem
    try:
        return manifests.read(spec.manifest.path)
    except ValueError as error:
        return str(error)


def _namespace(spec: Spec | None, key: Key, needs: Mapping[Key, ResolvedRef]) -> str:
    """The namespace that a spec means in this cluster, "" if it is in another cluster."""
    if spec is None or not is_named(spec.cluster, key):
        return ""
    if key.kind == "supervisor_namespace":
        return key.name
    return (
        real_name(spec.namespace, spec.cluster, needs.get(Key("namespace", spec.namespace)))
        if spec.namespace
        else "default"
    )


def _locked(log: str) -> str:
    """`locked 2 GPUs with partial memory 0.8 (172.24.210.80:56001)`."""
    found, servers = LOCKED.search(log), SERVERS.search(log)
    if not found:
        return ""
    where = f" ({safe(servers[1], 200)})" if servers else ""
    return f"locked {found[1]} GPUs with partial memory {found[2].rstrip('.')}{where}"


def _errors(log: str) -> str:
    lines = ERROR.findall(log)
    return f"its log says: {safe(lines[-1], 300)}" if lines else ""
