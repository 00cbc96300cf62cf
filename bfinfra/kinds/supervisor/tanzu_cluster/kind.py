"""The kind tanzu_cluster: observe, readiness, run. Steps are decided in decide.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.cluster_locator import Cluster, ClusterLocator
from bfinfra.kinds.supervisor.base import fit, gpus, guests, offers, upgrade
from bfinfra.kinds.supervisor.base.cluster_steps import (
    CLUSTERS,
    PLACES,
    THINGS,
    Create,
    Delete,
    Drop,
    Hop,
    Move,
    Roll,
    Update,
    Wait,
)
from bfinfra.kinds.supervisor.tanzu_cluster import decide, declared, state
from bfinfra.kinds.supervisor.tanzu_cluster.checks import CHECKS
from bfinfra.kinds.supervisor.tanzu_cluster.describe import description
from bfinfra.kinds.supervisor.tanzu_cluster.facts import TanzuClusterFacts
from bfinfra.kinds.supervisor.tanzu_cluster.forms import CLUSTER_API, FORMS, TANZU
from bfinfra.kinds.supervisor.tanzu_cluster.spec import CLUSTER_CLASS, V1ALPHA1, V1ALPHA3, V1BETA1, Spec
from bfinfra.kinds.supervisor.tanzu_cluster.state import State
from bfinfra.model import kind
from bfinfra.model.awaited import away, held
from bfinfra.model.compare import Change, adopting
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Forbidden, Missing
from bfinfra.model.kind import Observation, Report
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import API as OWN
from bfinfra.model.rights import CLUSTERS as HERE
from bfinfra.model.rights import Api, PrivilegePlaces, may
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.vcenter import VCenter

Asked = dict[str, bool]
"""API → whether the read must succeed, because the file has a cluster in this API, or because the API is the
supervisor's main one.
"""
ANY = {TANZU: V1ALPHA1, CLUSTER_API: V1BETA1}
"""Kind of object → the API to read it with if the file has no cluster of that kind."""
LIVES_IN = ("supervisor_namespace",)
WHY_OPTIONAL = "the supervisor, not the plan, refuses what the namespace doesn't offer"
UNDECLARED = (
    "the plan warns of volumes and authorities that an older supervisor drops, instead of refusing them"
)
UNSEEN = "bfinfra doesn't see clusters of the Cluster API that left the file"


class TanzuCluster(kind.Kind[Spec, State]):
    """A Tanzu Kubernetes cluster in a supervisor namespace."""

    document = Document.SINGAPORE_POC
    holds_data = True
    checks = CHECKS
    deadline = 3600
    step_types = (Create, Update, Roll, Drop, Hop, Wait, Delete, Move)
    survey_privileges = (may("list", THINGS, HERE), may("list", CLUSTERS, HERE, optional=UNSEEN))
    resource_privileges = (
        may(
            "list",
            "virtualmachineclassbindings.vmoperator.vmware.com resourcequotas",
            "namespace",
            optional=WHY_OPTIONAL,
        ),
        may(
            "list",
            "tanzukubernetesreleases.run.tanzu.vmware.com storageclasses.storage.k8s.io",
            "supervisor",
            optional=WHY_OPTIONAL,
        ),
        may("get", declared.RESOURCE, "supervisor", optional=UNDECLARED),
        may("list", CLUSTERS, "cluster api"),
    )

    def __init__(self, clusters: Clusters, vcenter: VCenter | None = None) -> None:
        self._clusters = clusters
        self._vcenter = vcenter
        self._environment = fit.Environment()
        self._locator = ClusterLocator(clusters, LIVES_IN)
        self._offers: dict[str, offers.Offer] = {}
        self._undeclared: dict[str, frozenset[str] | None] = {}
        self._authorities: dict[str, str] = {}
        self._forms: dict[str, set[str]] = {}
        """Name → the kinds of objects that a cluster of this name was found as."""

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads one or two lists per supervisor namespace; also what the namespace offers, if a cluster may
        have to be created.
        """
        placed = {name: spec.namespace if spec else None for name, spec in wanted.items()}
        asked = self._asked(wanted, include_unlisted=include_unlisted)
        answers = self._locator.ask(
            placed,
            needs,
            lambda cluster: list(_lists(cluster, asked.get(cluster.key.name, asked[""]))),
            include_unlisted=include_unlisted,
        )
        states: dict[str, State] = {}
        for key, objects in answers.found.items():
            for api, obj in objects:
                name, live = obj["metadata"]["name"], state.of(obj, api, answers.clusters[key])
                if _counts(live, name, wanted, include_unlisted=include_unlisted) and _better(
                    live, states.get(name), wanted.get(name)
                ):
                    self._locator.saw(name, key)
                    self._forms.setdefault(name, set()).add(live.form.kind)
                    states[name] = self._looked_into(
                        live, wanted.get(name), include_unlisted=include_unlisted
                    )
        self._learn(wanted, {key: answers.clusters[key] for key in answers.found}, states)
        if include_unlisted:
            self._survey_environment(wanted, needs, states)
        files = {
            name: {f"trust.{each}": file for each, file in spec.files().items()}
            for name, spec in wanted.items()
            if spec
        }
        gone = {
            name: each
            for name, found in files.items()
            if (spec := wanted[name]) and (each := away(spec, found))
        }
        facts = TanzuClusterFacts(
            dict(self._offers), dict(self._authorities), self._environment, dict(self._undeclared), gone
        )
        return Observation(states, facts, answers.unreadable)

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every cluster of every supervisor namespace, once each: not the Cluster API objects of a
        TanzuKubernetesCluster.
        """
        asked = self._asked({}, include_unlisted=True)[""]
        answers = self._locator.ask(
            {}, needs, lambda cluster: list(_lists(cluster, asked)), include_unlisted=True
        )
        for key, objects in answers.found.items():
            for api, obj in objects:
                live = state.of(obj, api, answers.clusters[key])
                of_ours = live.form.kind == TANZU or obj["spec"]["topology"].get("class") == CLUSTER_CLASS
                if of_ours and not obj["metadata"].get("ownerReferences"):
                    yield description(obj["metadata"]["name"], live)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, updates by server-side apply, deletes; a move deletes first. Raises Awaited if an
        authority's file doesn't exist yet.
        """
        if spec is None:
            return (
                ()
                if state is None or state.going
                else (Delete(name=name, namespace=state.namespace, home=state.home, api=state.api),)
            )
        if state is not None and state.namespace != spec.namespace:
            moved = (Change("namespace", state.namespace, spec.namespace),)
            going = Move(name=name, namespace=state.namespace, home=state.home, api=state.api, changes=moved)
            found: Sequence[Step] = (going, decide.create(name, spec, context))
        elif state is None or state.going:
            found = (decide.create(name, spec, context),)
        else:
            found = decide.update(name, spec, state, context)
        marking = adopting(state.mark if state else None)
        if found and not marking and context.facts and name in context.facts.away:
            field, problem = context.facts.away[name]
            raise held(problem, field, found)
        return found

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: TanzuClusterFacts | None) -> Iterator[Conflict]:
        """More vGPUs than hosts have; fields for which it can't be checked whether the supervisor keeps
        them.
        """
        if facts is None:
            return
        yield from gpus.conflicts("tanzu_cluster", wanted, states, facts.environment)
        for name, unknown in facts.undeclared.items():
            key = Key("tanzu_cluster", name)
            if unknown is None and key in wanted:
                yield declared.unchecked(key, wanted[key])

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The supervisor namespace, by kind of object; what its supervisor offers to all; the
        cluster itself.
        """
        home = needs["namespace"].key
        space, own = (Api(home, home.name),), PLACES[FORMS[spec.api].kind]
        kinds = {word: space if word == own else () for word in PLACES.values()}
        return {
            "namespace": space,
            **kinds,
            "supervisor": (Api(home),),
            OWN: (Api(Key("tanzu_cluster", name)),),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when the cluster runs and every node is ready."""
        if state.phase in ("failed", "updateFailed"):
            return failed("; ".join(state.messages) or f"it is {state.phase} and gives no reason")
        if why := state.missing(spec.control_plane.count + sum(pool.count for pool in spec.workers.values())):
            return waiting(why)
        return (
            Readiness(Ready.READY, note=f"{state.version} at {state.api_server}")
            if state.api_server
            else READY
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in at most one call."""
        guests.run(self._clusters, step, lambda api: FORMS[api].kind)

    def _asked(self, wanted: Mapping[str, Spec | None], *, include_unlisted: bool) -> Mapping[str, Asked]:
        """By namespace: the lists to read; "": for any other namespace. A survey reads both kinds
        of objects.
        """
        kinds = (
            set(ANY)
            if include_unlisted
            else {
                kind for name in wanted for kind in self._forms.get(name, set() if wanted[name] else set(ANY))
            }
        )
        found: dict[str, Asked] = {"": {}}
        for spec in wanted.values():
            if spec is not None:
                found.setdefault(spec.namespace, {})[spec.api] = True
        for apis in found.values():
            apis.update({ANY[kind]: kind == TANZU for kind in kinds - {FORMS[api].kind for api in apis}})
        return found

    def _looked_into(self, live: State, spec: Spec | None, *, include_unlisted: bool) -> State:
        """The state with what the cluster itself reports: its nodes, if it is between two versions or no
        other source has them; objects of others in it, if it would be deleted.
        """
        if include_unlisted and (spec is None or spec.namespace != live.namespace):
            return (
                replace(live, contents=guests.contents(self._clusters, live.endpoint, live.mark))
                if live.endpoint
                else live
            )
        home_only = live.endpoint is None or live.endpoint.kubeconfig is not None
        if (
            spec is None
            or home_only
            or (upgrade.matches(live.version, spec.version) and (include_unlisted or live.nodes is not None))
        ):
            return live
        assert live.endpoint is not None
        return replace(live, nodes=guests.nodes(self._clusters, live.endpoint, live.version))

    def _learn(
        self, wanted: Mapping[str, Spec | None], where: Mapping[Key, Cluster], states: Mapping[str, State]
    ) -> None:
        """Reads what the namespaces offer, for clusters to create or change, and the authorities' files."""
        for name, spec in wanted.items():
            if spec is None:
                continue
            cluster = where.get(Key(LIVES_IN[0], spec.namespace))
            if cluster is not None and (name not in states or spec.namespace not in self._offers):
                self._offers[spec.namespace] = offers.read(cluster.client, cluster.namespace)
            self._undeclared.pop(name, None)
            if cluster is not None and (fields := declared.unproved(spec, states.get(name))):
                self._undeclared[name] = declared.undeclared(cluster.client, spec.api, fields)
            self._authorities.update({str(file.path): _pem(str(file.path)) for file in spec.files().values()})

    def _survey_environment(
        self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, ResolvedRef], states: Mapping[str, State]
    ) -> None:
        """Reads the environment of clusters to create or change, and what a supervisor offers to namespaces
        that don't exist yet.
        """
        if self._vcenter is None or not any(
            spec is not None and _moves(spec, states.get(name)) for name, spec in wanted.items()
        ):
            return
        classes = {name for spec in wanted.values() if spec for name in spec.vm_classes.values()}
        self._environment = fit.read(self._vcenter, needs, classes)
        for name in {
            spec.namespace for spec in wanted.values() if spec is not None
        } & self._environment.absent:
            supervisor = self._environment.supervisor(name)
            if supervisor is not None:
                self._offers[name] = offers.of_new(self._clusters.at(Endpoint(server=supervisor.endpoint)))


def _lists(cluster: Cluster, asked: Asked) -> Iterator[tuple[str, dict[str, Any]]]:
    """(API, object) of a namespace's clusters. An older supervisor lacks the Cluster API, a newer one Tanzu's
    oldest API.
    """
    for api, must in sorted(asked.items(), reverse=True):
        try:
            yield from ((api, obj) for obj in cluster.client.list(api, FORMS[api].kind, cluster.namespace))
        except Missing:
            if api == V1ALPHA1 and V1ALPHA3 not in asked:
                yield from _lists(cluster, {V1ALPHA3: False})
        except Forbidden:
            if must:
                raise


def _moves(spec: Spec, state: State | None) -> bool:
    return (
        state is None or state.mark is None or state.mark.applied != spec.applied() or not state.sized(spec)
    )


def _pem(path: str) -> str:
    try:
        with Path(path).open(encoding="ascii") as file:
            text = file.read(1 << 20)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return f"!it can't be read: {getattr(error, 'strerror', None) or 'it is not text'}"
    return text if "-----BEGIN CERTIFICATE-----" in text else "!no certificate in PEM form in it"


def _counts(state: State, name: str, wanted: Mapping[str, Spec | None], *, include_unlisted: bool) -> bool:
    """Return whether it is a wanted cluster or another one of this site."""
    mine = state.mark is not None and state.mark.address == f"tanzu_cluster/{name}"
    if name not in wanted:
        return include_unlisted and mine
    spec = wanted[name]
    return mine or (
        spec is not None and spec.namespace == state.namespace and FORMS[spec.api].kind == state.form.kind
    )


def _better(live: State, known: State | None, spec: Spec | None) -> bool:
    """Return whether it is the better state of one cluster: the old place of a move rather than the new one,
    the API of its spec rather than another.
    """
    if known is None or spec is None:
        return known is None
    return (live.namespace != spec.namespace) > (known.namespace != spec.namespace) or (
        live.namespace == known.namespace and live.api == spec.api != known.api
    )
