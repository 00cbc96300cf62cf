"""The registry that comes with a supervisor: Harbor, a project for each namespace. (Solution setup: images in
the embedded registry.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from bfinfra.backends.vcenter.policies import StoragePolicies
from bfinfra.backends.vcenter.registries import Registries, Registry
from bfinfra.backends.vcenter.supervisors import Supervisors
from bfinfra.kinds.supervisor import base
from bfinfra.kinds.supervisor.base import RIGHTS, Leave, OnCluster, Take
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.compare import differences
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description, free_name
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal, Rejected
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import READY, Readiness, Ready, failed, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, PrivilegePlaces, Use, holds
from bfinfra.model.site import Site
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest
from bfinfra.model.units import Bytes, bytes_text

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

ATTRIBUTE = "bfinfra.registry"
NSX = "NSXT_CONTAINER_PLUGIN"
MIB = 2**20
Cluster = Annotated[str, Ref("supervisor", optional=True)]
Policy = Annotated[str, Ref("storage_policy", optional=True)]
MANAGE = holds("cluster", "ContentLibrary.ManageClusterRegistryResource")


def _whole(number: int) -> int:
    if number < MIB or number % MIB:
        raise ValueError("storage is given in whole MiB")
    return number


class Spec(resource.Spec):
    """What a user writes for one registry."""

    cluster: Cluster
    """Cluster whose supervisor it belongs to, with NSX: one that this site enables, or that is there anyway.
    A supervisor has one registry.
    """
    policy: Policy
    """Storage policy of its images; where the registry is there it must be so."""
    storage: Annotated[Bytes, AfterValidator(_whole)] | None = None
    """Room for images; empty: vCenter's own, 200GiB, or what there is. Where the registry is there it must be
    so.
    """
    delete: bool = False
    """Whether destroy deletes it, with every image; else it stays as it is, whoever made it."""

    def takes(self, name: str) -> Iterator[Taken]:
        """Its supervisor: there is one registry."""
        yield conflict.thing("cluster", f"the registry of {self.cluster}", "supervisor")


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """A cluster with a note of ours, or with a registry that is wanted. `found`: None where there is none."""

    cluster: Cluster
    policy: Policy | None = None
    moid: str = ""
    found: Registry | None = None

    @property
    def authority(self) -> str | None:
        """PEM of the authority that its certificate is signed by; None where it doesn't tell it yet."""
        return (self.found.authority or None) if self.found is not None else None


@dataclass(frozen=True)
class RegistryFacts:
    """Clusters and policies, name → id; the networking of supervisors, by the id of their cluster; registries
    likewise.
    """

    clusters: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    networking: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Create(OnCluster):
    """make the registry of {cluster}"""

    rights = (MANAGE, *RIGHTS)
    policy: str
    storage: int | None
    note: str


@dataclass(frozen=True, kw_only=True)
class Delete(OnCluster):
    """delete the registry of {cluster} with every image"""

    destructive = True
    settles = True
    rights = (MANAGE,)
    uses = (Use.DESTROY,)
    id: str


class RegistryKind(kind.Kind[Spec, State]):
    """The embedded Harbor of a supervisor."""

    document = Document.SINGAPORE_POC
    managed = False
    alone = True
    deadline = 3600
    step_types = (Create, Take, Delete, Leave)
    survey_privileges = (holds(VCENTER, *READ),)
    resource_privileges = (holds("policies", "StorageProfile.View"),)

    def __init__(self, vcenter: VCenter, site: Site) -> None:
        self._vcenter = vcenter
        self._registries = Registries(vcenter.rest)
        self._site = site.name

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """The notes on all clusters; the registries only where one is wanted or noted."""
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        notes = self._vcenter.cluster_notes.read(ATTRIBUTE, everyone=bool(specs))
        marks = {cluster: mark for cluster, (_, text) in notes.items() if (mark := Mark.decode(text))}
        homes = {
            name: cluster for cluster, mark in marks.items() if (name := mark.name_of(self._site, "registry"))
        }
        asked = {name: cluster for name, cluster in homes.items() if include_unlisted or name in wanted} | {
            name: spec.cluster for name, spec in specs.items() if name not in homes
        }
        found = self._registries.list() if asked else {}
        states = {}
        for name, cluster in asked.items():
            moid = notes[cluster][0] if cluster in notes else ""
            if name in homes or moid in found:
                states[name] = self._state(
                    cluster,
                    moid,
                    found.get(moid),
                    marks.get(cluster),
                    going=include_unlisted and name not in specs,
                )
        return Observation(states, self._facts(specs, {name: moid for name, (moid, _) in notes.items()}))

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every embedded registry; none where there is no such service."""
        found = self._registries.list()
        if not found:
            return
        policies = {identity: name for name, identity in self._policies().items()}
        taken: dict[str, object] = {}
        notes = self._vcenter.cluster_notes.read(ATTRIBUTE, everyone=True)
        for cluster, (moid, note) in sorted(notes.items()):
            if (registry := found.get(moid)) is not None:
                policy, storage = next(iter(registry.storage.items()), ("", 0))
                state = State(mark=Mark.decode(note), cluster=cluster, moid=moid, found=registry)
                name = free_name(f"registry-{cluster}", taken)
                taken[name] = cluster
                fields = {"cluster": cluster, "policy": policies.get(policy, policy)}
                yield Description(name, {**fields, **({"storage": storage} if storage else {})}, state)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Make it, or look after the one that is there; leave it, or delete it where the site says so."""
        if spec is None:
            return () if state is None or state.mark is None else _release(state)
        facts: RegistryFacts = context.facts
        _check(spec, state, context)
        note = context.mark.committed(spec.applied()).encode()
        if state is None or state.found is None:
            step = Create(
                cluster=spec.cluster,
                moid=facts.clusters[spec.cluster],
                policy=spec.policy,
                storage=spec.storage,
                note=note,
                changes=differences(None, spec.applied()),
            )
            return (step,)
        if state.found.status == "DELETING":
            raise Refusal(
                f"the registry of {spec.cluster} is being deleted", next="apply again once it is gone"
            )
        if state.mark == Mark.decode(note):
            return ()
        return (
            Take(
                cluster=spec.cluster,
                moid=state.moid,
                what="registry",
                note=note,
                changes=compare.changes(spec, state.mark) if state.mark else (),
            ),
        )

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The cluster; custom attributes and storage policies are the root's."""
        return {
            "cluster": (Entity(f"/{datacenter}/host/{spec.cluster}", "ClusterComputeResource"),),
            "definitions": (ROOT,),
            "policies": (ROOT,),
        }

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """RUNNING; on its way out: gone."""
        found = state.found
        if found is None:
            return READY if spec is None else waiting("it is not there yet")
        if found.status == "ERROR":
            return failed(found.detail or "vCenter gives no reason")
        if spec is not None and found.status in ("RUNNING", "WARNING"):
            return Readiness(Ready.READY, note="; ".join(filter(None, (found.url, found.detail))))
        return waiting(found.status.lower())

    def run(self, step: Step, report: Report) -> None:
        """The note first, then what it is about."""
        notes = self._vcenter.cluster_notes
        match step:
            case Create(moid=moid, policy=policy, storage=storage, note=note):
                identity = self._policies().get(policy)
                if identity is None:
                    raise Rejected(
                        f"there is no storage policy {policy}",
                        server=self._vcenter.server,
                        why="it went meanwhile",
                        next="plan again",
                    )
                notes.set(moid, ATTRIBUTE, note)
                self._registries.create(moid, identity, storage)
            case Delete(id=identity):
                self._registries.delete(identity)
            case _:
                base.run(step, notes, ATTRIBUTE)

    def _state(
        self, cluster: str, moid: str, found: Registry | None, mark: Mark | None, *, going: bool
    ) -> State:
        applied = (mark.applied if mark else None) or {}
        goes = bool(applied.get("delete"))
        contents = self._strange(found, moid) if going and goes and found is not None else ()
        return State(
            mark=mark,
            cluster=cluster,
            moid=moid,
            found=found,
            contents=contents,
            policy=applied.get("policy") if goes else None,
        )

    def _strange(self, found: Registry, moid: str) -> tuple[str, ...]:
        """Projects but those of this site's own namespaces."""
        spaces = Supervisors(self._vcenter.rest).namespaces(moid)
        own = {name for name, text in spaces.items() if Mark.site_in(text) == self._site}
        return tuple(f"project {name}" for name in self._registries.projects(found.id) if name not in own)

    def _facts(self, specs: Mapping[str, Spec], clusters: Mapping[str, str]) -> RegistryFacts:
        homes = {moid for spec in specs.values() if (moid := clusters.get(spec.cluster))}
        networking = {
            moid: str(each.info.get("network_provider"))
            for moid, each in Supervisors(self._vcenter.rest).read(homes).items()
        }
        return RegistryFacts(clusters, self._policies() if specs else {}, networking)

    def _policies(self) -> dict[str, str]:
        return {
            each.name: each.id for each in StoragePolicies(self._vcenter.session, self._vcenter.rest).list()
        }


def _release(state: State) -> Sequence[Step]:
    assert state.mark is not None
    at: dict[str, Any] = {"cluster": state.cluster, "moid": state.moid}
    goes = (
        (Delete(id=state.found.id, **at),)
        if state.found is not None and (state.mark.applied or {}).get("delete")
        else ()
    )
    return (*goes, Leave(what="registry", **at))


def _check(spec: Spec, state: State | None, context: PlanContext) -> None:
    """Refusal for what can't be. What this site makes first counts as there."""
    facts: RegistryFacts = context.facts
    made = {need.key for need in context.needs.values() if need.spec is not None}
    if spec.cluster not in facts.clusters:
        raise Refusal(
            f"there is no cluster {spec.cluster}", field="cluster", next=nearest(spec.cluster, facts.clusters)
        )
    networking = facts.networking.get(facts.clusters[spec.cluster])
    if networking is None and Key("supervisor", spec.cluster) not in made:
        raise Refusal(
            f"no supervisor runs on {spec.cluster}",
            field="cluster",
            why="a registry belongs to one",
            next="enable it: kind supervisor",
        )
    if networking not in (None, NSX):
        raise Refusal(
            f"the supervisor on {spec.cluster} has networking by {networking}",
            field="cluster",
            why="the embedded registry wants NSX",
            next="use a registry of its own, and registry_credential",
        )
    if spec.policy not in facts.policies and Key("storage_policy", spec.policy) not in made:
        raise Refusal(
            f"there is no storage policy {spec.policy}",
            field="policy",
            next=nearest(spec.policy, facts.policies),
        )
    context.mark.refuse_others(
        state.mark if state is not None else None,
        f"the registry of {spec.cluster} is looked after by another",
        "cluster",
    )
    if state is not None and state.mark is not None and state.cluster != spec.cluster:
        raise Refusal(
            f"the registry is that of {state.cluster}",
            field="cluster",
            why="a registry can't move",
            next="give the other one another name",
        )
    _check_standing(spec, state, facts)


def _check_standing(spec: Spec, state: State | None, facts: RegistryFacts) -> None:
    """Refusal for what a registry that is there can't become: vCenter makes and deletes them, and changes
    none.
    """
    names = {identity: name for name, identity in facts.policies.items()}
    held = {
        names.get(policy, policy): room
        for policy, room in (
            state.found.storage if state is not None and state.found is not None else {}
        ).items()
    }
    if held and spec.policy not in held:
        raise Refusal(
            f"its images are stored by {', '.join(sorted(held))}",
            field="policy",
            why="vCenter changes no registry",
            next="write what is there, or have it deleted and made anew",
        )
    if held and spec.storage not in (None, held[spec.policy]):
        raise Refusal(
            f"it has room for {bytes_text(held[spec.policy])}",
            field="storage",
            why="vCenter changes no registry",
            next="write what is there, or have it deleted and made anew",
        )
