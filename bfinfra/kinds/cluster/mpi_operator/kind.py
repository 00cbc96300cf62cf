"""The kind mpi_operator: observe, steps, readiness, run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, ClassVar

from bfinfra.backends.kubernetes.errors import NotServed
from bfinfra.backends.kubernetes.marks import mark_of, mark_only, marked, ours
from bfinfra.kinds.cluster.base.field_diffs import field_diffs
from bfinfra.kinds.cluster.base.kubernetes_objects import ObjectsByName
from bfinfra.kinds.cluster.mpi_operator import definition
from bfinfra.kinds.cluster.mpi_operator.manifests import KINDS, NAME, manifests
from bfinfra.kinds.cluster.mpi_operator.spec import Spec
from bfinfra.kinds.cluster_locator import WHOLE, Cluster, api_of, is_named, real_name
from bfinfra.model import compare, resource
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Report
from bfinfra.model.mark import Mark, common
from bfinfra.model.readiness import READY, Readiness, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import CLUSTERS as EVERYWHERE
from bfinfra.model.rights import Api, PrivilegePlaces, Right, Use, may
from bfinfra.model.step import Step

__all__ = ["MpiOperator", "Spec", "State"]
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
ROLE = "clusterroles.rbac.authorization.k8s.io"
ROLES = f"{ROLE} clusterrolebindings.rbac.authorization.k8s.io"
Object = dict[str, Any]


@dataclass(frozen=True)
class Thing:
    """One live object."""

    mark: Mark | None
    manifest: Mapping[str, Any]
    going: bool = False


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The live objects of an operator, by `Deployment/mpi-operator`."""

    cluster: Annotated[str, Ref(*WHOLE)]
    namespace: Annotated[str, Ref("namespace", optional=True)]
    api: str
    home: Endpoint
    things: Mapping[str, Thing] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create {what} in {cluster}"""

    rights: ClassVar[tuple[Right, ...]] = (
        may("create", DEFINITIONS, "cluster"),
        may("create", ROLES, "cluster"),
        may("escalate", ROLE, "cluster"),
        may("bind", ROLE, "roles"),
        may("create", "serviceaccounts deployments.apps", "namespace"),
    )
    """No resource name can limit `escalate` here, as a new object has none yet."""

    what: str
    cluster: str
    home: Endpoint | Unknown
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Update(Create):
    """change {what} in {cluster}"""

    rights = (
        may("patch", DEFINITIONS, "definition"),
        may("patch", ROLES, "roles"),
        may("escalate bind", ROLE, "roles"),
        may("patch", "serviceaccounts deployments.apps", "namespace"),
    )


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete {what} from {cluster}"""

    destructive = True
    rights = (
        may("delete", DEFINITIONS, "definition"),
        may("get delete", ROLES, "roles"),
        may("get delete", "serviceaccounts deployments.apps", "namespace"),
    )
    uses = (Use.DESTROY,)

    what: str
    cluster: str
    home: Endpoint
    api_version: str
    namespace: str


class MpiOperator(ObjectsByName[Spec, State]):
    """The Kubeflow MPI operator."""

    name, cluster_kinds, old_place_first = "mpi_operator", WHOLE, False
    document = Document.PVRDMA
    undescribed = "its objects come from a release, and don't tell which"
    step_types = (Create, Update, Delete)
    survey_privileges = (may("get", DEFINITIONS, EVERYWHERE), may("list", definition.NAME, EVERYWHERE))
    resource_privileges = (
        may("get", ROLES, "roles"),
        may("get", "serviceaccounts deployments.apps", "namespace"),
    )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates what is missing, changes what differs, deletes the definition last."""
        if spec is None:
            return () if state is None else tuple(_removal(state))
        namespace = real_name(spec.namespace, spec.cluster, context.needs.get("namespace"))
        if state is not None:
            _stays(spec, state, namespace)
        return tuple(_steps(spec, state, namespace, context))

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Its namespace, and its cluster-wide objects by name. RBAC can't limit creation by name."""
        cluster = needs["cluster"].key
        own = (api_of(needs["cluster"], spec.namespace, needs.get("namespace")),)
        return {
            "cluster": (Api(cluster),),
            "definition": (Api(cluster, names=(definition.NAME,)),),
            "roles": (Api(cluster, names=(NAME,)),),
            "namespace": own,
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when the cluster serves its jobs and its pod runs."""
        if any(thing.going for thing in state.things.values()):
            return waiting("the old one is being removed")
        if not self._serves_jobs(spec, state):
            return waiting("the cluster does not serve MPI jobs yet")
        deployment = state.things.get(f"Deployment/{NAME}")
        available = deployment and (deployment.manifest.get("status") or {}).get("availableReplicas")
        return READY if available else waiting("its pod isn't ready yet")

    def _serves_jobs(self, spec: Spec, state: State) -> bool:
        """Return whether its definition is established and jobs can be listed, which is later than discovery
        shows them.
        """
        thing = state.things.get(f"CustomResourceDefinition/{definition.NAME}")
        conditions = (thing.manifest.get("status") or {}).get("conditions") or () if thing else ()
        if not any((each["type"], each["status"]) == ("Established", "True") for each in conditions):
            return False
        cluster, api = self._clusters.at(state.home), f"{definition.GROUP}/{spec.api}"
        if not cluster.serves(api, definition.KIND):
            return False
        cluster.list(api, definition.KIND, name=NAME)  # the wait continues if this fails
        return True

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one call."""
        match step:
            case Update(home=Endpoint() as home, manifest=manifest):
                self._clusters.at(home).apply(manifest, force=True)  # the plan showed the changes of others
            case Create(home=Endpoint() as home, manifest=manifest):
                self._clusters.at(home).create(manifest)
            case Delete(home=home, what=what):
                thing, _, name = what.partition("/")
                self._clusters.at(home).delete(step.api_version, thing, name, step.namespace)
            case _:
                raise AssertionError(step)

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> dict[str, State]:
        found: dict[str, State] = {}
        here = any(
            spec is not None and is_named(spec.cluster, cluster.key, WHOLE) for spec in wanted.values()
        )
        if (
            include_unlisted
            and not here
            and not self._versions(cluster, definition.GROUP, include_unlisted=True)
        ):
            return found  # without its definition there is no operator of ours
        crd = cluster.client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition.NAME)
        mark = mark_of(crd) if crd else None
        name = mark.name_of(self._site, self.name) if mark else None
        if mark and name and (include_unlisted or name in wanted):
            found[name] = self._state(
                cluster,
                crd,
                str((mark.applied or {}).get("namespace") or _namespace(wanted.get(name), needs)),
                gone=wanted.get(name) is None,
            )
        for name, spec in wanted.items():
            if (
                spec is not None
                and name not in found
                and is_named(spec.cluster, cluster.key, WHOLE)
                and (state := self._state(cluster, crd, _namespace(spec, needs))).things
            ):
                found[name] = state
        return found

    def _state(self, cluster: Cluster, crd: Object | None, namespace: str, *, gone: bool = False) -> State:
        objects = [crd, *(cluster.client.get(api, thing, NAME, namespace) for api, thing in KINDS)]
        kinds = ("CustomResourceDefinition", *(thing for _, thing in KINDS))
        there = {
            f"{k}/{o['metadata']['name']}": Thing(mark_of(o), o, bool(o["metadata"].get("deletionTimestamp")))
            for k, o in zip(kinds, objects, strict=True)
            if o
        }
        served = crd["spec"]["versions"][0]["name"] if crd else ""
        return State(
            mark=common([thing.mark for thing in there.values()]),
            cluster=cluster.key.name,
            namespace=namespace,
            api=served,
            home=cluster.endpoint,
            things=there,
            contents=self._jobs(cluster, served) if gone and crd else (),
        )

    def _jobs(self, cluster: Cluster, version: str) -> tuple[str, ...]:
        """Other people's jobs, which are deleted with the definition."""
        if version not in cluster.client.versions(definition.GROUP):
            return ()
        try:
            found = cluster.client.list(f"{definition.GROUP}/{version}", definition.KIND)
        except NotServed:  # the definition was just deleted
            return ()
        return tuple(
            f"MPIJob {o['metadata']['namespace']}/{o['metadata']['name']}"
            for o in found
            if not ours(o, self._site)
        )


def _namespace(spec: Spec | None, needs: Mapping[Key, ResolvedRef]) -> str:
    return (
        real_name(spec.namespace, spec.cluster, needs.get(Key("namespace", spec.namespace))) if spec else NAME
    )


def _stays(spec: Spec, state: State, namespace: str) -> None:
    """Raises Refusal for a change that would delete and create the definition again, and so
    delete all jobs.
    """
    for name, now, then in (
        ("cluster", state.cluster, spec.cluster),
        ("namespace", state.namespace, namespace),
        ("api", state.api, spec.api),
    ):
        if now and now != then:
            raise Refusal(
                f"an MPI operator can't change from {now} to {then}",
                field=name,
                why="every MPI job in the cluster would be deleted with its definition",
                next="remove it and its jobs from the file, apply, and add them again",
            )


def _steps(spec: Spec, state: State | None, namespace: str, context: PlanContext) -> Iterator[Step]:
    mark = context.mark.committed(spec.applied())
    home = state.home if state else context.needs["cluster"].get("endpoint")
    changed = compare.changes(spec, state.mark if state else None)
    adopting = compare.adopting(state.mark if state else None)
    for manifest in manifests(spec, namespace):
        what = f"{manifest['kind']}/{manifest['metadata']['name']}"
        thing = state.things.get(what) if state else None
        if adopting:
            context.mark.refuse_others(thing.mark if thing else None, f"the cluster has {what} already")
            if thing is not None and thing.mark != mark:
                marking = mark_only(manifest, mark, str(thing.manifest["metadata"].get("uid", "")))
                yield Update(what=what, cluster=spec.cluster, home=home, manifest=marking, changes=changed)
        elif thing is None or thing.going:
            lacks = (Change(what, None, "as in the file"),) if state else ()
            yield Create(
                what=what,
                cluster=spec.cluster,
                home=home,
                manifest=marked(manifest, mark),
                changes=(*lacks, *changed),
            )
        else:
            moved = tuple(
                Change(f"{what}.{c.field}", c.now, c.wanted) for c in field_diffs(manifest, thing.manifest)
            )
            if moved or thing.mark is None or thing.mark.applied != mark.applied:
                yield Update(
                    what=what,
                    cluster=spec.cluster,
                    home=home,
                    manifest=marked(manifest, mark),
                    changes=(*moved, *changed),
                )


def _removal(state: State) -> Iterator[Step]:
    apis = {thing: api for api, thing in KINDS}
    for what, thing in reversed(list(state.things.items())):
        kind_ = what.partition("/")[0]
        if not thing.going:
            yield Delete(
                what=what,
                cluster=state.cluster,
                home=state.home,
                api_version=apis.get(kind_, "apiextensions.k8s.io/v1"),
                namespace=str(thing.manifest["metadata"].get("namespace") or ""),
            )
