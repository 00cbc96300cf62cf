"""The kind mpi_job: observe, readiness, run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes.errors import NotServed
from bfinfra.backends.kubernetes.marks import mark_of, notes
from bfinfra.backends.vcenter.vm_classes import VmClasses
from bfinfra.backends.words import safe
from bfinfra.kinds import class_gpus
from bfinfra.kinds.class_gpus import GpuFacts, told, told_by_file
from bfinfra.kinds.cluster.base.kubernetes_objects import Existing, KubernetesObjects
from bfinfra.kinds.cluster.base.pods import pulling, ran, stuck, unplaced
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED
from bfinfra.kinds.cluster.mpi_job.decide import (
    ENDED,
    Clear,
    Create,
    Delete,
    Replace,
    State,
    Withdraw,
    WriteRecord,
    decide,
)
from bfinfra.kinds.cluster.mpi_job.manifest import LAUNCHERS, PODS
from bfinfra.kinds.cluster.mpi_job.nodes import OF_CLASSES, not_placed
from bfinfra.kinds.cluster.mpi_job.spec import Spec
from bfinfra.kinds.cluster.mpi_operator.definition import GROUP, KIND, NAME
from bfinfra.kinds.cluster_locator import WHOLE, Cluster, api_of, is_named, real_name
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Forbidden, RemoteError
from bfinfra.model.kind import Observation, Report
from bfinfra.model.order import Specs
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import CLUSTERS as EVERYWHERE
from bfinfra.model.rights import PrivilegePlaces, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.vcenter import VCenter

__all__ = ["MpiJob", "Spec", "State"]
NOT_REPORTED = "bfinfra doesn't report its result"
UNSEEN = f"{NOT_REPORTED}, and replaces a job that never ran only with an allowance"
BEFORE = ("", "Created")  # phases in which no launcher has run yet
LINES = 200  # bytes from the end of a launcher's log
TOTAL = re.compile(r"^.*?[Tt]otal (?:images|img)/sec(?: on \d+ \S+)?: *([0-9.]+)", re.MULTILINE)
STEP = re.compile(r"^.*?(\d+)\s+images/sec: *([0-9.]+)", re.MULTILINE)
ERROR = re.compile(r"^.*\b(?:Error|ERROR|Traceback|mpirun noticed)\b.*$", re.MULTILINE)
Object = dict[str, Any]


class MpiJob(KubernetesObjects[Spec, State, list[Object]]):
    """A distributed training that MPI starts."""

    name, cluster_kinds, old_place_first = "mpi_job", WHOLE, False
    deadline = 3600
    document = Document.PVRDMA
    undescribed = "its pods have a command and options in one line, which can't be split again"
    step_types = (Create, WriteRecord, Clear, Withdraw, Replace, Delete)
    survey_privileges = (may("list", NAME, EVERYWHERE),)
    resource_privileges = (
        may("get", NAME, "namespace"),
        may("list", "pods", "namespace", optional=UNSEEN),
        may("get", "pods/log", "namespace", optional=NOT_REPORTED),
    )

    def __init__(self, clusters: Clusters, site: Site, vcenter: VCenter | None = None) -> None:
        super().__init__(clusters, site)
        self._vcenter, self._wanted = vcenter, site.resources

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads each cluster once; also what vCenter tells of the nodes' VM classes, if a job is to be
        created there and the file doesn't tell their GPUs.
        """
        found = super().observe(wanted, needs, include_unlisted=include_unlisted)
        homes = {
            spec.cluster
            for name, spec in wanted.items()
            if spec is not None and _starts(spec, found.states.get(name))
        }
        clusters = (need.spec for key, need in needs.items() if key.name in homes and key.kind in OF_CLASSES)
        classes = {pool.vm_class for spec in clusters if spec is not None for pool in spec.pools()[1:]}
        untold = [each for each in classes if told_by_file(each, self._wanted) is None]
        if not include_unlisted or self._vcenter is None or not untold:
            return found
        with contextlib.suppress(Forbidden):
            return replace(found, facts=self._of_classes(self._vcenter, untold))
        return found

    @staticmethod
    def _of_classes(vcenter: VCenter, vm_classes: Collection[str]) -> GpuFacts:
        return class_gpus.read(vcenter.vgpus, VmClasses(vcenter).list(), vm_classes)

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: GpuFacts | None) -> Iterator[Conflict]:
        """Workers that fit on no node, where the file alone doesn't tell the nodes' GPUs."""
        for key, spec in wanted.items():
            if facts is None or not isinstance(spec, Spec) or not _starts(spec, states.get(key)):
                continue
            if not any(not_placed(key, spec.asked, wanted, partial(told_by_file, wanted=wanted))):
                yield from not_placed(key, spec.asked, wanted, partial(told, wanted=wanted, facts=facts))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Its namespace."""
        return {"namespace": (api_of(needs["cluster"], spec.namespace or "default", needs.get("namespace")),)}

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Ready when it runs, or has succeeded, as the spec asks. The note is its images per second."""
        if state.going or spec is None:
            return waiting("the old one is being removed")
        if state.phase in ENDED:
            return self._outcome(spec, state)
        if state.phase == "Running" and spec.wait == "running":
            return Readiness(Ready.READY)
        if state.phase == "Created" and state.held_up:
            return waiting(state.held_up)
        logged = STEP.findall(self._log(state)) if state.phase == "Running" else []
        return waiting(
            f"step {logged[-1][0]}: {logged[-1][1]} images/sec"
            if logged
            else f"it is {state.phase.lower() or 'not taken up by an operator yet'} {state.why}".rstrip()
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one call."""
        match step:
            case Create(home=Endpoint() as home, manifest=manifest):
                self._clusters.at(home).create(manifest)
            case WriteRecord(home=home):
                self._clusters.at(home).apply(step.manifest)
            case Delete(home=home):
                self._clusters.at(home).delete(f"{GROUP}/{step.version}", KIND, step.what, step.namespace)
            case _:
                raise AssertionError(step)

    def _outcome(self, spec: Spec, state: State) -> Readiness:
        log = self._log(state)
        if state.phase == "Failed":
            lines = ERROR.findall(log)
            message = f"its log says: {safe(lines[-1], 300)}" if lines else ""
            return failed("; ".join(part for part in (state.why, message) if part) or "it failed")
        totals = TOTAL.findall(log)
        return Readiness(
            Ready.READY,
            note=f"{totals[-1]} images/sec on {spec.workers * spec.slots} processes over {spec.transport}"
            if totals
            else "",
        )

    def _looked_into(self, obj: Object, cluster: Cluster, spec: Spec | None) -> State:
        """The state with what its pods report, if its launcher never ran, the site wants it and the account
        may read pods.
        """
        state = _state(obj, cluster)
        if spec is None or state.phase not in BEFORE:
            return state
        try:
            pods = self._clusters.at(state.home).list(
                "v1", "Pod", state.namespace, PODS[state.version].format(state.name)
            )
        except RemoteError:
            return state
        found = (
            (
                pod["metadata"]["name"],
                f"finds no node: {why}" if (why := unplaced(pod)) else stuck(pod) or pulling(pod),
            )
            for pod in pods
        )
        held_up = next((f"{name} {safe(why, 300)}" for name, why in found if why), "")
        return replace(state, held_up=held_up, ran=any(map(ran, pods)))

    def _log(self, state: State) -> str:
        """The end of its launcher's log; "" if it can't be read, as a note is not worth a failure."""
        cluster = self._clusters.at(state.home)
        try:
            pods = cluster.list("v1", "Pod", state.namespace, LAUNCHERS[state.version].format(state.name))
            newest = max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), default=None)
            return (
                cluster.log(newest["metadata"]["name"], namespace=state.namespace, tail=LINES)
                if newest
                else ""
            )
        except RemoteError:
            return ""

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> list[Object]:
        """This site's jobs, and those with wanted names, if the cluster serves MPI jobs."""
        served = self._versions(cluster, GROUP, include_unlisted=include_unlisted)
        version = next((each for each in served if each in LAUNCHERS), "")
        places = _owners(wanted, cluster, needs)
        if not version:
            return []
        try:
            return self._listed(
                cluster, f"{GROUP}/{version}", KIND, places, include_unlisted=include_unlisted
            )
        except NotServed:  # its definition was just deleted
            return []

    def _existing(
        self,
        read: list[Object],
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> Iterator[Existing[State]]:
        owners = _owners(wanted, cluster, needs)
        for obj in read:
            name = self._name(obj, owners)
            spec = wanted.get(name)
            if name:
                state = partial(self._looked_into, obj, cluster, spec)
                yield Existing(name, self._fits(spec, cluster), state)


def _starts(spec: Spec, state: Any) -> bool:
    """Return whether its pods are still to be created."""
    return state is None or state.mark is None or state.mark.applied != spec.applied()


def _owners(
    wanted: Mapping[str, Spec | None], cluster: Cluster, needs: Mapping[Key, ResolvedRef]
) -> dict[tuple[str, str], str]:
    """Place → resource, of the jobs that the site wants in the cluster."""
    return {
        (_namespace(spec, needs), name): name
        for name, spec in wanted.items()
        if spec is not None and is_named(spec.cluster, cluster.key, WHOLE)
    }


def _namespace(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> str:
    return (
        real_name(spec.namespace, spec.cluster, needs.get(Key("namespace", spec.namespace)))
        if spec.namespace
        else "default"
    )


def _state(obj: Object, cluster: Cluster) -> State:
    metadata, mark = obj["metadata"], mark_of(obj)
    applied = (mark.applied if mark else None) or {}
    phase, why = _phase((obj.get("status") or {}).get("conditions") or ())
    return State(
        mark=mark,
        name=metadata["name"],
        cluster=cluster.key.name,
        namespace=metadata["namespace"],
        home=cluster.endpoint,
        operator=applied.get("operator"),
        registry_credential=applied.get("registry_credential"),
        version=obj["apiVersion"].rpartition("/")[2],
        digest=notes(obj).get(RENDERED, ""),
        uid=str(metadata.get("uid", "")),
        spec=obj.get("spec") or {},
        phase=phase,
        why=safe(why, 300),
        going=bool(metadata.get("deletionTimestamp")),
    )


def _phase(conditions: Sequence[Mapping[str, object]]) -> tuple[str, str]:
    """The last condition that is true: an ended job keeps Created and, in v1alpha2, Running."""
    true = {
        str(each.get("type")): str(each.get("message") or each.get("reason") or "")
        for each in conditions
        if each.get("status") == "True"
    }
    return next(
        (
            (phase, true[phase])
            for phase in (*ENDED, "Suspended", "Restarting", "Running", "Created")
            if phase in true
        ),
        ("", ""),
    )
