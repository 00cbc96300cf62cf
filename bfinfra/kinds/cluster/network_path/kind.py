"""Checks whether pods reach the Bitfusion servers, and tries it with a pod if the site asks for that. (Egress
from the Kubernetes clusters is routed to the server farm.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.base.kubernetes_objects import Existing, KubernetesObjects
from bfinfra.kinds.cluster.base.pods import job_of
from bfinfra.kinds.cluster.network_path import probe
from bfinfra.kinds.cluster.network_path.decide import (
    JOBS,
    Clear,
    Delete,
    State,
    Try,
    decide,
    outcome,
    servers,
)
from bfinfra.kinds.cluster.network_path.policies import Judged, judge
from bfinfra.kinds.cluster.network_path.probe import Probed
from bfinfra.kinds.cluster.network_path.spec import Spec
from bfinfra.kinds.cluster_locator import Cluster, api_of, cluster_key, real_name
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import RemoteError
from bfinfra.model.kind import Observation, Report
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import CLUSTERS as EVERYWHERE
from bfinfra.model.rights import PrivilegePlaces, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters

__all__ = ["NetworkPath", "Spec", "State"]
API, KIND = "networking.k8s.io/v1", "NetworkPolicy"
BATCH, JOB = "batch/v1", "Job"
Object = dict[str, Any]


@dataclass(frozen=True)
class _Read:
    """The objects that were read from one cluster: policies by namespace; Jobs that are this site's or have a
    probe's name; pods of the Jobs that have not finished.
    """

    policies: Mapping[str, list[Object]]
    jobs: Sequence[Object]
    pods: Sequence[Object]


class NetworkPath(KubernetesObjects[Spec, State, _Read]):
    """A check: no network policy keeps pods from the Bitfusion servers and, with `probe`, a pod reaches them.
    Without `probe` it writes nothing.
    """

    document = Document.CONSOLIDATED
    undescribed = "it is a check of the network, so there is no object to describe"
    managed = False
    name = "network_path"
    step_types = (Try, Clear, Delete)
    survey_privileges = (may("list", JOBS, EVERYWHERE),)
    resource_privileges = (
        may("list", "networkpolicies.networking.k8s.io", "namespace"),
        may("get", JOBS, "probe"),
        may("list", "pods", "probe", optional="bfinfra doesn't report which addresses a probe did not reach"),
    )

    def __init__(self, clusters: Clusters, site: Site) -> None:
        super().__init__(clusters, site)
        self._judged: dict[str, Judged] = {}
        self._started: set[str] = set()
        """The uids of the Jobs that this run created."""

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads one list of Jobs per cluster, and one of policies per namespace. A cluster that doesn't exist
        yet has no state. The facts: the judgement of the policies, by name.
        """
        for name in wanted:
            self._judged.pop(name, None)
        observation = super().observe(wanted, needs, include_unlisted=include_unlisted)
        judged = {name: self._judged[name] for name in wanted if name in self._judged}
        states = {name: _with(state, judged.get(name)) for name, state in observation.states.items()}
        return replace(observation, states=states, facts=judged)

    def _existing(
        self,
        read: _Read,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> Iterator[Existing[State]]:
        here = {
            name: (spec, _space(spec, cluster, needs))
            for name, spec in wanted.items()
            if spec is not None and cluster_key(spec.cluster, needs) == cluster.key
        }
        owners = {(space, probe.name_of(name)): name for name, (_, space) in here.items()}
        for name, (spec, space) in here.items():
            self._judged[name] = self._judge(spec, read.policies[space], needs)
        found = set()
        for job in read.jobs:
            if name := self._name(job, owners):
                found.add(name)
                fits = name in here and here[name][1] == job["metadata"]["namespace"]
                yield Existing(name, fits, partial(self._state, job, read.pods, cluster))
        for name, (spec, space) in here.items():
            if name not in found and spec.probe is None:
                made = State(cluster=cluster.key.name, namespace=space, home=cluster.endpoint)
                yield from self._of_states({name: made}, cluster, wanted)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The namespace; `probe`: the same, if the site asks for a probe."""
        here = (api_of(needs["cluster"], spec.namespace or "default", needs.get("namespace")),)
        return {"namespace": here, "probe": here if spec.probe else ()}

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Ready once no policy blocks the path and the probe reached every server; else reports what to do
        next.
        """
        found = state.probe
        if found is not None and (found.going or spec is None or spec.probe is None):
            return waiting("the old probe is being removed")
        if state.policies.blocked:
            return failed(state.policies.blocked_by)
        if found is None:
            return Readiness(Ready.READY, note=f"{state.policies.checked} paths, no policy in the way")
        return _found(found, f"a pod in namespace {state.namespace} of {state.cluster}")

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one call."""
        match step:
            case Try(home=Endpoint() as home, manifest=Mapping() as manifest):
                made = self._clusters.at(home).create(manifest).get("metadata")
                if isinstance(made, dict) and "uid" in made:  # the next read finds out
                    self._started.add(str(made["uid"]))
            case Delete(home=home):
                self._clusters.at(home).delete(BATCH, JOB, step.what, step.namespace)
            case _:
                raise AssertionError(step)

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> _Read:
        here = {
            name: spec
            for name, spec in wanted.items()
            if spec is not None and cluster_key(spec.cluster, needs) == cluster.key
        }
        spaces = {name: _space(spec, cluster, needs) for name, spec in here.items()}
        policies = {space: cluster.client.list(API, KIND, space) for space in sorted(set(spaces.values()))}
        ours = [
            job
            for job in self._marked(cluster, BATCH, JOB, include_unlisted=include_unlisted)
            if self._own_name(job)
        ]
        have = {(job["metadata"]["namespace"], job["metadata"]["name"]) for job in ours}
        places = [
            place
            for name, spec in here.items()
            if spec.probe and (place := (spaces[name], probe.name_of(name))) not in have
        ]
        jobs = [*ours, *cluster.client.find(BATCH, JOB, places, cluster.namespace)]
        return _Read(
            policies,
            jobs,
            [
                pod
                for job in ours
                if probe.read(job, (), fresh=False).phase != "finished"
                for pod in self._pods(cluster, job)
            ],
        )

    def _pods(self, cluster: Cluster, job: Object) -> list[Object]:
        """The pods of a Job; none if they can't be read, as their logs are not worth a failure."""
        with contextlib.suppress(RemoteError):
            return cluster.client.list(
                "v1", "Pod", job["metadata"]["namespace"], f"job-name={job['metadata']['name']}"
            )
        return []

    def _state(self, job: Object, pods: Sequence[Object], cluster: Cluster) -> State:
        metadata, mark = job["metadata"], mark_of(job)
        at: dict[str, Any] = {
            "cluster": cluster.key.name,
            "namespace": metadata["namespace"],
            "home": cluster.endpoint,
        }
        if not self._own_name(job):
            whose = (
                f"is of {safe(mark.address, 120)} of the site {safe(mark.site, 63)}"
                if mark
                else "was not made by bfinfra"
            )
            return State(
                foreign=(f"the Job {metadata['name']} in namespace {metadata['namespace']} {whose}"), **at
            )
        own = [
            pod
            for pod in pods
            if job_of(pod) == metadata["name"] and pod["metadata"]["namespace"] == metadata["namespace"]
        ]
        found = probe.read(job, own, fresh=metadata["uid"] in self._started)
        applied = ((mark.applied if mark else None) or {}).get("probe") or {}
        return State(mark=mark, probe=found, registry_credential=applied.get("registry_credential"), **at)

    @staticmethod
    def _judge(spec: Spec, policies: Sequence[Object], needs: Mapping[Key, ResolvedRef]) -> Judged:
        token = needs.get(Key("bitfusion_token", spec.token)) if spec.token else None
        return judge(spec, servers(spec, token), policies)


def _found(probed: Probed, where: str) -> Readiness:
    """Return the result of its pod, and what to do next."""
    if probed.phase == "finished":
        return Readiness(Ready.READY, note=f"{len(probed.paths)} paths, all reached by {where}")
    if probed.phase != "failed":
        return waiting(
            f"{where} tries {len(probed.paths)} paths"
            if probed.phase == "running"
            else f"{where}: {probed.why}"
        )
    if probed.unreached:
        return failed(
            f"{where} tried: {outcome(probed)}; is the server up, and do routes, NAT and firewalls (of "
            "NSX, Antrea, and before the servers) let it pass? "
            "The next apply tries it again"
        )
    return failed(
        f"the probe {probed.job}, {where}, ended without a result: {outcome(probed)}; it needs an image "
        "with sh and nc that the cluster can pull"
    )


def _with(state: State, judged: Judged | None) -> State:
    return replace(state, policies=judged) if judged else state


def _space(spec: Spec, cluster: Cluster, needs: Mapping[Key, ResolvedRef]) -> str:
    """The namespace that a spec means in this cluster."""
    written = spec.namespace or "default"
    return cluster.namespace or real_name(written, spec.cluster, needs.get(Key("namespace", written)))
