"""The kind vks_cluster: observe, readiness, run. Steps are decided in decide.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.audit import of_field
from bfinfra.kinds.class_gpus import told_by_servers
from bfinfra.kinds.cluster_locator import Cluster, ClusterLocator
from bfinfra.kinds.supervisor.base import fit, gpus, guests, offers, upgrade
from bfinfra.kinds.supervisor.base.cluster_steps import (
    CLUSTERS,
    PLACES,
    Create,
    Delete,
    Drop,
    Hop,
    Move,
    Roll,
    Update,
    Wait,
)
from bfinfra.kinds.supervisor.base.guest_checks import guest_checks
from bfinfra.kinds.supervisor.vks_cluster import catalog, state
from bfinfra.kinds.supervisor.vks_cluster.decide import decide, drifted
from bfinfra.kinds.supervisor.vks_cluster.describe import description
from bfinfra.kinds.supervisor.vks_cluster.manifest import KIND, V1BETA1, V1BETA2, path_of
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec, untold_gpus
from bfinfra.kinds.supervisor.vks_cluster.state import State
from bfinfra.model import kind
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Forbidden, Missing
from bfinfra.model.kind import LastWriter, Observation, Report
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness, Ready, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import API as OWN
from bfinfra.model.rights import CLUSTERS as HERE
from bfinfra.model.rights import Api, PrivilegePlaces, may
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.vcenter import VCenter

Found = tuple[str, list[dict[str, Any]]]
"""The API that a supervisor serves, "" for none, and a namespace's clusters in it."""
LIVES_IN = ("supervisor_namespace",)
LEGACY_CLASS = "tanzukubernetescluster"
"""The class whose clusters are of the kind tanzu_cluster."""
WHY_OPTIONAL = "the supervisor, not the plan, refuses what the namespace doesn't offer"
UNCHECKED = "the supervisor, not the plan, checks variables, releases and images"
SUMS = "pools are not waited for one by one, but in sum"
UNSEEN = "bfinfra doesn't see clusters that left the file"


class VksCluster(kind.Kind[Spec, State]):
    """A cluster of the vSphere Kubernetes Service in a supervisor namespace."""

    document = Document.CONSOLIDATED
    holds_data = True
    checks = guest_checks("vks_cluster")
    deadline = 3600
    step_types = (Create, Update, Roll, Drop, Hop, Wait, Delete, Move)
    survey_privileges = (may("list", CLUSTERS, HERE, optional=UNSEEN),)
    resource_privileges = (
        may("list", CLUSTERS, "cluster api"),
        may(
            "list",
            "virtualmachineclasses.vmoperator.vmware.com virtualmachineclassbindings.vmoperator.vmware.com "
            "resourcequotas",
            "namespace",
            optional=WHY_OPTIONAL,
        ),
        may("list", "machinedeployments.cluster.x-k8s.io", "namespace", optional=SUMS),
        may("list", "storageclasses.storage.k8s.io", "supervisor", optional=WHY_OPTIONAL),
        may("list", "clusterclasses.cluster.x-k8s.io", "classes", optional=UNCHECKED),
        may(
            "list",
            "kubernetesreleases.kubernetes.vmware.com tanzukubernetesreleases.run.tanzu.vmware.com "
            "osimages.run.tanzu.vmware.com",
            "supervisor",
            optional=UNCHECKED,
        ),
    )

    def __init__(self, clusters: Clusters, vcenter: VCenter | None = None) -> None:
        self._clusters = clusters
        self._vcenter = vcenter
        self._environment = fit.Environment()
        self._locator = ClusterLocator(clusters, LIVES_IN)
        self._apis: dict[str, str] = {}
        self._offers: dict[str, offers.Offer] = {}
        self._catalogs: dict[str, catalog.Catalog] = {}

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads one list per supervisor namespace; also what its supervisor offers, if a cluster may have to
        be created or changed.
        """
        placed = {name: spec.namespace if spec else None for name, spec in wanted.items()}
        named = {spec.namespace for spec in wanted.values() if spec}
        answers = self._locator.ask(
            placed,
            needs,
            lambda cluster: self._list(cluster, must=cluster.key.name in named),
            include_unlisted=include_unlisted,
        )
        states: dict[str, State] = {}
        for key, (api, objects) in answers.found.items():
            for obj in objects:
                name, live = obj["metadata"]["name"], state.of(obj, api, answers.clusters[key])
                if _counts(live, name, wanted, include_unlisted=include_unlisted) and _better(
                    live, states.get(name), wanted.get(name)
                ):
                    self._locator.saw(name, key)
                    states[name] = self._looked_into(
                        name, live, wanted.get(name), include_unlisted=include_unlisted
                    )
        self._learn(wanted, {key.name: answers.clusters[key] for key in answers.found}, states)
        if include_unlisted:
            self._survey_environment(wanted, needs, states)
        facts = catalog.VksClusterFacts(
            dict(self._offers), dict(self._catalogs), dict(self._apis), self._environment
        )
        return Observation(states, facts, answers.unreadable)

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every cluster of a class, except those of tanzu_cluster."""
        answers = self._locator.ask(
            {}, needs, lambda cluster: self._list(cluster, must=False), include_unlisted=True
        )
        for key, (api, objects) in answers.found.items():
            for obj in objects:
                live = state.of(obj, api, answers.clusters[key])
                if live.view().get("cluster_class") not in (None, LEGACY_CLASS) and not obj["metadata"].get(
                    "ownerReferences"
                ):
                    yield description(obj["metadata"]["name"], live)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: catalog.VksClusterFacts | None) -> Iterator[Conflict]:
        """More vGPUs than hosts have; and what the autoscaler is told of GPUs that the file doesn't tell."""
        if facts is None:
            return
        environment = facts.environment
        yield from gpus.conflicts("vks_cluster", wanted, states, environment)
        for key, spec in wanted.items():
            if isinstance(spec, Spec):
                yield from untold_gpus(
                    key, spec, lambda name: told_by_servers(name, wanted, environment.gpus)
                )

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The supervisor namespace; the namespace of its class; what its supervisor offers to all; the
        cluster itself.
        """
        home = needs["namespace"].key
        space = (Api(home, home.name),)
        return {
            "namespace": space,
            **dict.fromkeys(PLACES.values(), ()),
            PLACES[KIND]: space,
            "classes": (Api(home, spec.class_namespace),),
            "supervisor": (Api(home),),
            OWN: (Api(Key("vks_cluster", name)),),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready by its conditions and its nodes."""
        if why := state.missing(spec):
            return waiting(why)
        return (
            Readiness(Ready.READY, note=f"{state.version} at {state.api_server}")
            if state.api_server
            else READY
        )

    def audit(
        self, asked: Mapping[str, tuple[State | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """The last writer of each field, from the managers in the object's managedFields."""
        return {
            name: {
                field: found
                for field in fields
                if live is not None
                and (found := of_field({"metadata": live.metadata}, *path_of(field, live.api)))
            }
            for name, (live, fields) in asked.items()
        }

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in at most one call."""
        guests.run(self._clusters, step, lambda _: KIND)

    def _list(self, cluster: Cluster, *, must: bool) -> Found:
        """The clusters in the newest API that the supervisor serves; none if it has no Cluster API. `must`:
        whether the file has a cluster there.
        """
        known = self._apis.get(cluster.namespace)
        for api in (known,) if known else (V1BETA2, V1BETA1):
            try:
                found = cluster.client.list(api, KIND, cluster.namespace)
            except Missing:
                continue
            except Forbidden:
                if must:
                    raise
                return "", []
            self._apis[cluster.namespace] = api
            return api, found
        self._apis[cluster.namespace] = ""
        return "", []

    def _looked_into(self, name: str, live: State, spec: Spec | None, *, include_unlisted: bool) -> State:
        """The state with what the cluster itself reports: its nodes, once its supervisor has finished or if
        it is between two versions; objects of others in it, if it would be deleted.
        """
        if live.endpoint is None:
            return live
        if include_unlisted and (spec is None or spec.namespace != live.namespace):
            return replace(live, contents=guests.contents(self._clusters, live.endpoint, live.mark))
        between = spec is not None and not upgrade.matches(live.version, spec.version)
        if spec is None or (include_unlisted and not between) or live.missing(None if between else spec):
            return live
        live = replace(live, pools=self._pools(name, live))
        if (
            live.endpoint is None
            or live.endpoint.kubeconfig is not None
            or (not between and live.missing(spec))
        ):
            return live
        return replace(live, nodes=guests.nodes(self._clusters, live.endpoint, live.version))

    def _pools(self, name: str, live: State) -> Mapping[str, state.Count] | None:
        """The pools' own objects; None if they may not be read: then the cluster's sums count alone."""
        home, of = live.home, f"{state.OF_CLUSTER}={name}"
        try:
            found = self._clusters.at(home).list(live.api, "MachineDeployment", live.home.namespace, of)
        except (Forbidden, Missing):
            return None
        return state.pools_of(found)

    def _learn(
        self, wanted: Mapping[str, Spec | None], where: Mapping[str, Cluster], states: Mapping[str, State]
    ) -> None:
        """Reads what the namespaces and their supervisors offer, for clusters to create or change."""
        moving: dict[str, set[str]] = {}
        for name, spec in wanted.items():
            if spec is not None and spec.namespace in where and _moves(spec, states.get(name)):
                moving.setdefault(spec.namespace, set()).add(spec.class_namespace)
        read: dict[tuple[str, frozenset[str]], catalog.Catalog] = {}
        for space, classes in moving.items():
            cluster = where[space]
            self._offers[space] = replace(offers.read(cluster.client, space), versions=None)
            key = cluster.endpoint.server, frozenset(classes)
            if key not in read:
                read[key] = catalog.read(cluster.client, sorted(classes))
            self._catalogs[space] = read[key]

    def _survey_environment(
        self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, ResolvedRef], states: Mapping[str, State]
    ) -> None:
        """Reads the environment of clusters to create or change, and what a supervisor offers to namespaces
        that don't exist yet.
        """
        moving = {
            spec.namespace: spec
            for name, spec in wanted.items()
            if spec is not None and _moves(spec, states.get(name))
        }
        if self._vcenter is None or not moving:
            return
        classes = {name for spec in wanted.values() if spec for name in spec.vm_classes.values()}
        self._environment = fit.read(self._vcenter, needs, classes)
        for name in moving.keys() & self._environment.absent:
            supervisor = self._environment.supervisor(name)
            if supervisor is not None:
                at = self._clusters.at(Endpoint(server=supervisor.endpoint))
                self._catalogs[name] = catalog.read(at, [moving[name].class_namespace])


def _moves(spec: Spec, live: State | None) -> bool:
    return (
        live is None
        or live.mark is None
        or live.mark.applied != spec.applied()
        or (not live.going and bool(drifted(spec, live)))
    )


def _counts(live: State, name: str, wanted: Mapping[str, Spec | None], *, include_unlisted: bool) -> bool:
    """Return whether it is a wanted cluster or another one of this site."""
    mine = live.mark is not None and live.mark.address == f"vks_cluster/{name}"
    if name not in wanted:
        return include_unlisted and mine
    spec = wanted[name]
    return mine or (spec is not None and spec.namespace == live.namespace)


def _better(live: State, known: State | None, spec: Spec | None) -> bool:
    """Return whether it is the better state of one cluster: the old place of a move rather than the
    new one.
    """
    if known is None or spec is None:
        return known is None
    return (live.namespace != spec.namespace) > (known.namespace != spec.namespace)
