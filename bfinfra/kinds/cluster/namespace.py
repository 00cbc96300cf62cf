"""A namespace in a cluster, with the level of Pod Security that its workloads need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from bfinfra.backends.kubernetes.contents import LISTED, LISTED_ON_SUPERVISORS
from bfinfra.backends.kubernetes.marks import SITE, mark_of, mark_only, marked
from bfinfra.kinds.audit import of_field
from bfinfra.kinds.capabilities import namespace
from bfinfra.kinds.cluster.base import spaces
from bfinfra.kinds.cluster.base.kubernetes_objects import Existing, KubernetesObjects
from bfinfra.kinds.cluster_locator import WHOLE, Answers, Cluster, DnsLabel, going, is_named
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description, free_name
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal, RemoteError
from bfinfra.model.kind import LastWriter
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.readiness import READY, Readiness, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.resource import Part
from bfinfra.model.rights import CLUSTERS as EVERYWHERE
from bfinfra.model.rights import Api, PrivilegePlaces, Use, may
from bfinfra.model.step import Disruption, Step

WHY_OPTIONAL = "if a cluster has such objects, the plan can't tell whether a deletion deletes them"
PREFIX = "pod-security.kubernetes.io/"
NAMED = "kubernetes.io/metadata.name"
"""The label by which namespaces are selected. Kubernetes sets it from 1.21 on; earlier nothing does."""
SYSTEM = ("default", "kube-", "tkg-system", "vmware-system")
"""Prefixes of the namespaces that come with a cluster."""
OF_OTHERS = (PREFIX, "bfinfra.io/", "kubernetes.io/")
"""Prefixes of labels that a site can't set."""
MODES = ("enforce", "audit", "warn")
Level = Literal["privileged", "baseline", "restricted"]
Label = Annotated[
    str, StringConstraints(pattern=r"^(([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?)$", max_length=63)
]


class PodSecurity(Part):
    """What pods in the namespace may do, by Pod Security Admission."""

    enforce: Level | None = None
    """Pods above this level are refused."""
    audit: Level | None = None
    """Pods above this level are noted in the audit log."""
    warn: Level | None = None
    """Pods above this level get a warning."""


class Spec(resource.Spec):
    """The desired state of one namespace."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE

    cluster: Annotated[str, Ref(*WHOLE)]
    """Cluster that the namespace is in."""
    namespace: DnsLabel | None = None
    """Its name in the cluster, if that differs from the resource's name."""
    labels: dict[str, Label] = Field(default_factory=dict)
    """Labels besides those of Pod Security."""
    pod_security: PodSecurity = Field(default_factory=PodSecurity)
    """What pods in the namespace may do."""

    def takes(self, name: str) -> Iterator[Taken]:
        """Its name in the cluster."""
        yield conflict.thing(
            "namespace" if self.namespace else "",
            f"the namespace {self.namespace or name}",
            "cluster",
            self.cluster,
        )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The namespace, by its name in the cluster."""
        yield namespace(self.namespace or name, self.cluster, site)


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The namespace as the cluster reports it."""

    cluster: Annotated[str, Ref(*WHOLE)]
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    home: Endpoint
    uid: str = ""
    held: str = ""
    """What holds it while it is being deleted, in the cluster's words."""


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create namespace {namespace} in {cluster}"""

    rights = (may("create", "namespaces", "cluster"),)

    cluster: str
    namespace: str
    home: Endpoint | Unknown
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """label namespace {namespace} in {cluster}"""

    rights = (may("patch", "namespaces", "self"),)

    cluster: str
    namespace: str
    home: Endpoint
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete namespace {namespace} in {cluster} and all that is in it"""

    destructive = True
    rights = (
        may("delete", "namespaces", "self"),
        may("list", LISTED, "cluster"),
        may("list", LISTED_ON_SUPERVISORS, "cluster", optional=WHY_OPTIONAL),
    )
    uses = (Use.DESTROY,)
    cluster: str
    namespace: str
    home: Endpoint


@dataclass(frozen=True, kw_only=True)
class Move(Delete):
    """delete namespace {namespace} in {cluster} and all that is in it, to make it anew elsewhere"""

    disruption = Disruption.REPLACE
    why = "a namespace can't move or be renamed"
    waits_ready = True


class Namespace(KubernetesObjects[Spec, State, list[dict[str, Any]]]):
    """A namespace in a cluster."""

    document = Document.ON_KUBERNETES
    holds_data = True
    step_types = (Create, Update, Delete, Move)
    name, cluster_kinds = "namespace", WHOLE
    survey_privileges = (may("list", "namespaces", EVERYWHERE),)
    resource_privileges = (may("get", "namespaces", "self"),)

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every namespace of every cluster, except the system's."""
        answers = self._locator.ask(
            {}, needs, lambda cluster: cluster.client.list("v1", "Namespace"), include_unlisted=True
        )
        taken: dict[str, object] = {}
        for key, objects in answers.found.items():
            for obj in objects:
                state = _state(obj, answers.clusters[key])
                if not state.namespace.startswith(SYSTEM):
                    name = self._own_name(obj) or free_name(state.namespace, taken)
                    taken[name] = state
                    yield Description(name, _view(name, state), state)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, labels, deletes; a move deletes first."""
        if spec is None:
            return () if state is None or state.going else (_go(Delete, state),)
        if state is not None and (state.cluster, state.namespace) != (spec.cluster, spec.namespace or name):
            now, then = (
                {"cluster": state.cluster, "namespace": state.namespace},
                {"cluster": spec.cluster, "namespace": spec.namespace or name},
            )
            return (_go(Move, state, differences(now, then)), _create(name, spec, context))
        if state is None or state.going:
            return (_create(name, spec, context),)
        found = compare.changes(spec, state.mark, _drift(spec, state))
        manifest = _manifest(name, spec, context)
        if compare.adopting(state.mark):
            manifest = mark_only(manifest, context.mark.committed(spec.applied()), state.uid)
        return (
            (
                Update(
                    cluster=spec.cluster,
                    namespace=state.namespace,
                    home=state.home,
                    manifest=manifest,
                    changes=found,
                ),
            )
            if found
            else ()
        )

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The cluster, as RBAC can't name a namespace before it exists. Privileges on an existing namespace
        are for that one only.
        """
        cluster = needs["cluster"].key
        return {"cluster": (Api(cluster),), "self": (Api(cluster, names=(spec.namespace or name,)),)}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready unless it is being deleted."""
        why = f"the old one is being removed{f': {state.held}' if state.held else ''}"
        return waiting(why) if state.going else READY

    def _writers(self, state: State, fields: Sequence[str]) -> dict[str, LastWriter]:
        obj = self._clusters.at(state.home).get("v1", "Namespace", state.namespace)
        return {
            each: writer for each in fields if (writer := of_field(obj, "metadata", "labels", _label(each)))
        }

    def run(self, step: Step, report: kind.Report) -> None:
        """Runs one step, in one call."""
        match step:
            case Create(home=Endpoint() as home, manifest=manifest):
                self._clusters.at(home).create(manifest)
            case Update(home=home, manifest=manifest):
                self._clusters.at(home).apply(manifest, force=True)  # the plan showed the changes of others
            case Delete(home=home, namespace=namespace):
                self._clusters.at(home).delete("v1", "Namespace", namespace)
            case _:
                raise AssertionError(step)

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> list[dict[str, Any]]:
        """This site's namespaces, and those with a wanted name."""
        places = [("", real) for real in _names(wanted, cluster)]
        return self._listed(cluster, "v1", "Namespace", places, include_unlisted=include_unlisted)

    def _existing(
        self,
        read: list[dict[str, Any]],
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> Iterator[Existing[State]]:
        owners = {("", real): name for real, name in _names(wanted, cluster).items()}
        for obj in read:
            state, name = _state(obj, cluster), self._name(obj, owners)
            spec = wanted.get(name)
            place = (spec.cluster, spec.namespace or name) if spec else None
            fits = place == (state.cluster, state.namespace)
            if name:
                look = include_unlisted and not fits
                yield Existing(name, fits, partial(self._with_contents, state, look=look))

    def _refused(
        self, answers: Answers[Any], wanted: Mapping[str, Spec | None], states: Mapping[str, State]
    ) -> dict[str, Refusal]:
        """Those whose old one is being deleted, and is held or somebody else's. What this site lets go is
        waited for.
        """
        return {
            name: going(f"the namespace {state.namespace} of {state.cluster}", state.held)
            for name, state in states.items()
            if wanted.get(name) is not None and state.going and (state.held or state.mark is None)
        }

    def _with_contents(self, state: State, *, look: bool) -> State:
        if not look:
            return state
        try:
            found = self._clusters.at(state.home).unmanaged(self._site, state.namespace)
        except RemoteError as error:
            found = (
                (
                    "its contents, which can't be read ("
                    f"{'; '.join(filter(None, (error.problems[0].what, error.problems[0].why)))})"
                ),
            )
        return replace(state, contents=found)


def _names(wanted: Mapping[str, Spec | None], cluster: Cluster) -> dict[str, str]:
    """Name in the cluster → resource, of those that the site wants there."""
    return {
        spec.namespace or name: name
        for name, spec in wanted.items()
        if spec and is_named(spec.cluster, cluster.key, WHOLE)
    }


def _create(name: str, spec: Spec, context: PlanContext) -> Create:
    home = context.needs["cluster"].get("endpoint")
    manifest = _manifest(name, spec, context)
    return Create(
        cluster=spec.cluster,
        namespace=spec.namespace or name,
        home=home,
        manifest=manifest,
        changes=differences(None, spec.applied()),
    )


def _go(step: type[Delete], state: State, changes: tuple[Change, ...] = ()) -> Delete:
    return step(cluster=state.cluster, namespace=state.namespace, home=state.home, changes=changes)


def _manifest(name: str, spec: Spec, context: PlanContext) -> dict[str, Any]:
    for label in spec.labels:
        if label.startswith(OF_OTHERS):
            raise Refusal(
                f"the label {label} can't be set by a site",
                field=f"labels.{label}",
                why="it belongs to the system or to bfinfra",
                next="write pod_security: for Pod Security, and choose another name for your own",
            )
    levels = {f"{PREFIX}{mode}": level for mode in MODES if (level := getattr(spec.pod_security, mode))}
    real = spec.namespace or name
    metadata = {"name": real, "labels": {**spec.labels, **levels, NAMED: real}}
    return marked(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata},
        context.mark.committed(spec.applied()),
    )


def _drift(spec: Spec, state: State) -> tuple[Change, ...]:
    """The differences in labels that the site sets or has set; none during an adoption."""
    if compare.adopting(state.mark):
        return ()
    applied = state.applied
    own = {*spec.labels, *(applied.get("labels") or {})}
    modes = {
        mode
        for mode in MODES
        if getattr(spec.pod_security, mode) or (applied.get("pod_security") or {}).get(mode)
    }
    now = {
        "labels": {name: state.labels[name] for name in own if name in state.labels},
        "pod_security": {
            mode: state.labels[PREFIX + mode] for mode in modes if PREFIX + mode in state.labels
        },
    }
    return differences(
        now, {"labels": spec.labels, "pod_security": spec.pod_security.model_dump(exclude_none=True)}
    )


def _state(obj: Mapping[str, Any], cluster: Cluster) -> State:
    metadata = obj["metadata"]
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != SITE}
    return State(
        mark=mark_of(obj),
        cluster=cluster.key.name,
        namespace=metadata["name"],
        labels=labels,
        home=cluster.endpoint,
        uid=str(metadata.get("uid", "")),
        going=(going := bool(metadata.get("deletionTimestamp"))),
        held=spaces.held(obj) if going else "",
    )


def _view(name: str, state: State) -> dict[str, object]:
    """The namespace as a site writes it."""
    levels = {mode: state.labels[PREFIX + mode] for mode in MODES if PREFIX + mode in state.labels}
    labels = {key: value for key, value in state.labels.items() if not key.startswith(OF_OTHERS)}
    other: dict[str, object] = {} if state.namespace == name else {"namespace": state.namespace}
    return {"cluster": state.cluster, **other, "labels": labels, "pod_security": levels}


def _label(field: str) -> str:
    """The label of a field of the spec."""
    what, _, name = field.partition(".")
    return f"{PREFIX}{name}" if what == "pod_security" else name
