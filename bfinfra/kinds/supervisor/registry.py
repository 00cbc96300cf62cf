"""The registry of a supervisor: Harbor, with a project for each namespace. (Solution setup: images in the
embedded registry.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from bfinfra.backends.vcenter.policies import StoragePolicies
from bfinfra.backends.vcenter.registries import Registries, Registry
from bfinfra.backends.vcenter.supervisors import Supervisors
from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.named import nowhere
from bfinfra.kinds.supervisor.base import cluster_notes
from bfinfra.kinds.supervisor.base.cluster_notes import RIGHTS, Leave, OnCluster, Take
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
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, PrivilegePlaces, Use, holds, path_in
from bfinfra.model.site import Site
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest
from bfinfra.model.units import Bytes, bytes_text

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

ATTRIBUTE = ATTRIBUTES["registry"]
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
    """The desired state of one registry."""

    cluster: Cluster
    """Cluster whose supervisor it belongs to, of this site or existing. The supervisor must use NSX, and has
    one registry.
    """
    policy: Policy
    """Storage policy of its images. An existing registry must have this one."""
    storage: Annotated[Bytes, AfterValidator(_whole)] | None = None
    """Space for images; empty: vCenter's default, 200GiB, or that of an existing registry. An existing
    registry must have this size.
    """
    delete: bool = False
    """Whether destroy deletes it, with every image. If not, it stays, whoever created it."""

    def takes(self, name: str) -> Iterator[Taken]:
        """Its supervisor, which has one registry."""
        yield conflict.thing("cluster", f"the registry of {self.cluster}", "supervisor")


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """A cluster with a note of this site, or one that the site names. `found`: its registry, None if there is
    none.
    """

    cluster: Cluster
    policy: Policy | None = None
    moid: str = ""
    found: Registry | None = None

    @property
    def authority(self) -> str | None:
        """PEM of the authority that signed its certificate; None while vCenter doesn't report it."""
        return (self.found.authority or None) if self.found is not None else None


@dataclass(frozen=True)
class RegistryFacts:
    """Name → id of clusters and of policies; the networking of supervisors and the registries, by
    cluster id.
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
    waits_ready = True
    rights = (MANAGE,)
    uses = (Use.DESTROY,)
    id: str


class RegistryKind(kind.Kind[Spec, State]):
    """The Harbor registry that a supervisor embeds."""

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
        """Reads the notes of all clusters, and the registries only if one is wanted or noted."""
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        texts = [spec.cluster for spec in specs.values()]
        notes = self._vcenter.cluster_notes.read(ATTRIBUTE, everyone=bool(specs), texts=texts)
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
        """Every embedded registry; none if vCenter has no such service."""
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
        """Creates the registry, or manages an existing one. On deletion removes the note, and deletes the
        registry only if the site asks for it.
        """
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
        """The cluster, and the root for custom attributes and storage policies."""
        return {
            "cluster": (Entity(path_in(datacenter, "host", spec.cluster), "ClusterComputeResource"),),
            "definitions": (ROOT,),
            "policies": (ROOT,),
        }

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Ready when it is RUNNING; for a deletion, when it is gone."""
        found = state.found
        if found is None:
            return READY if spec is None else waiting("it doesn't exist yet")
        if found.status == "ERROR":
            return failed(found.detail or "vCenter gives no reason")
        if spec is not None and found.status in ("RUNNING", "WARNING"):
            return Readiness(Ready.READY, note="; ".join(filter(None, (found.url, found.detail))))
        return waiting(found.status.lower())

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. The note is written before the registry changes."""
        notes = self._vcenter.cluster_notes
        match step:
            case Create(moid=moid, policy=policy, storage=storage, note=note):
                identity = self._policies().get(policy)
                if identity is None:
                    raise Rejected(
                        f"there is no storage policy {policy}",
                        server=self._vcenter.server,
                        why="it was deleted meanwhile",
                        next="plan again",
                    )
                notes.set(moid, ATTRIBUTE, note)
                self._registries.create(moid, identity, storage)
            case Delete(id=identity):
                self._registries.delete(identity)
            case _:
                cluster_notes.run(step, notes, ATTRIBUTE)

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
        """Projects other than those of this site's namespaces."""
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
    """Raises Refusal for a spec that can't work. What this site creates first counts as existing."""
    facts: RegistryFacts = context.facts
    made = {need.key for need in context.needs.values() if need.spec is not None}
    if spec.cluster not in facts.clusters:
        raise nowhere("cluster", spec.cluster, "cluster", facts.clusters)
    networking = facts.networking.get(facts.clusters[spec.cluster])
    if networking is None and Key("supervisor", spec.cluster) not in made:
        raise Refusal(
            f"no supervisor runs on {spec.cluster}",
            field="cluster",
            why="a registry belongs to a supervisor",
            next="enable one: kind supervisor",
        )
    if networking not in (None, NSX):
        raise Refusal(
            f"the supervisor on {spec.cluster} uses the networking {networking}",
            field="cluster",
            why="the embedded registry needs NSX",
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
        f"the registry of {spec.cluster} is managed by another resource",
        "cluster",
    )
    if state is not None and state.mark is not None and state.cluster != spec.cluster:
        raise Refusal(
            f"the registry belongs to {state.cluster}",
            field="cluster",
            why="a registry can't move to another cluster",
            next="write a resource of another name for the other one",
        )
    _check_existing(spec, state, facts)


def _check_existing(spec: Spec, state: State | None, facts: RegistryFacts) -> None:
    """Raises Refusal if an existing registry differs: vCenter creates and deletes registries, and can't
    change them.
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
            f"its images are stored with the policy {', '.join(sorted(held))}",
            field="policy",
            why="vCenter can't change a registry",
            next="write that, or delete the registry and create it again",
        )
    if held and spec.storage not in (None, held[spec.policy]):
        raise Refusal(
            f"it has space for {bytes_text(held[spec.policy])}",
            field="storage",
            why="vCenter can't change a registry",
            next="write that, or delete the registry and create it again",
        )
