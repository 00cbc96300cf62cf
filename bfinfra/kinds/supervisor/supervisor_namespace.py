"""A namespace on a supervisor: limits, storage, access, VM classes, content libraries. (Solution setup,
figures 5 and 6.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.backends.kubernetes.contents import LISTED, LISTED_ON_SUPERVISORS
from bfinfra.backends.vcenter.directory import Found
from bfinfra.backends.vcenter.namespaces import Catalog, Grant, Namespace, Namespaces, Settings
from bfinfra.model import compare, kind, resource
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Denied, Refusal, Rejected, RemoteError
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, above, below
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness, failed, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.resource import Part
from bfinfra.model.rights import API, READ, ROOT, VCENTER, Api, Entity, PrivilegePlaces, Use, holds, may
from bfinfra.model.step import Disruption, Step
from bfinfra.model.suggest import nearest
from bfinfra.model.units import Limit, Megahertz, bytes_text, megahertz_text

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.vcenter import VCenter

Account = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+$")]

CONFIGURE = holds("cluster", "Namespaces.Configure")
CATALOG = holds("policies", "StorageProfile.View")
MADE = ("vm_class", "content_library", "storage_policy", "supervisor")
Cluster = Annotated[str, Ref("supervisor", optional=True)]
Policy = Annotated[str, Ref("storage_policy", optional=True)]


class Limits(Part):
    """What all that runs in the namespace may use together."""

    cpu: Megahertz | None = None
    """Such as 48GHz."""
    memory: Limit | None = None
    """Such as 384GiB."""
    storage: Limit | None = None
    """Over all storage policies, such as 2TiB."""


class Access(Part):
    """One user or group and what they may do."""

    user: Account | None = None
    """`name@domain`."""
    group: Account | None = None
    """`name@domain`."""
    role: Literal["view", "edit", "owner"]
    """view: look; edit: make clusters and workloads; owner: also delete the namespace."""

    @property
    def account(self) -> str:
        """The user's or the group's."""
        return self.user or self.group or ""

    @model_validator(mode="after")
    def _one(self) -> Access:
        if (self.user is None) == (self.group is None):
            raise ValueError("give either user or group")
        return self


class Spec(resource.Spec):
    """What a user writes for one supervisor namespace."""

    cluster: Cluster
    """Name of the vSphere cluster whose supervisor holds the namespace: one that this site enables, or that
    is there anyway.
    """
    description: str = ""
    """Free text; bfinfra keeps its mark in the last line under it."""
    limits: Limits = Limits()
    """What all that runs in the namespace may use together."""
    storage: dict[Policy, Limit | None] = Field(default_factory=dict)
    """Storage policy → the most that may be claimed of it; empty = no limit of its own. Policies of this
    site, or there anyway.
    """
    access: tuple[Access, ...] = ()
    """Who may do what in the namespace."""
    vm_classes: tuple[Annotated[str, Ref("vm_class", optional=True)], ...] = ()
    """VM classes that clusters in the namespace may use: of this site, or there anyway."""
    content_libraries: tuple[Annotated[str, Ref("content_library", optional=True)], ...] = ()
    """Content libraries whose images VMs in the namespace may use: of this site, or there anyway."""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """What vCenter says. `endpoint` is set once the namespace runs."""

    status: str
    messages: tuple[str, ...] = ()
    cluster: Cluster
    settings: Settings
    vm_classes: tuple[Annotated[str, Ref("vm_class", optional=True)], ...] = ()
    content_libraries: tuple[Annotated[str, Ref("content_library", optional=True)], ...] = ()
    policies: tuple[Policy, ...] = ()
    creator: str = ""
    endpoint: Endpoint | None = None


@dataclass(frozen=True, slots=True)
class SupervisorNamespaceFacts:
    """What namespaces may name. `subjects`: accounts that shall be given access and have none yet, in small
    letters, each with what there is of this name, or with why that can't be asked.
    """

    catalog: Catalog
    subjects: Mapping[str, Found | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create namespace {name} on {cluster}"""

    rights = (CONFIGURE,)

    name: str
    cluster: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """update namespace {name}"""

    rights = (CONFIGURE,)

    name: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete namespace {name} and all that is in it"""

    destructive = True
    rights = (CONFIGURE, CATALOG, may("list", f"{LISTED} {LISTED_ON_SUPERVISORS}", API))
    uses = (Use.DESTROY,)
    name: str


@dataclass(frozen=True, kw_only=True)
class Move(Delete):
    """delete namespace {name} and all that is in it, to make it anew on another cluster"""

    disruption = Disruption.REPLACE
    why = "a namespace can't move to another cluster"
    settles = True


class SupervisorNamespace(kind.Kind[Spec, State]):
    """A namespace on a supervisor."""

    document = Document.SINGAPORE_POC
    deadline = 900
    step_types = (Create, Update, Delete, Move)
    alone = True
    survey_privileges = (holds(VCENTER, *READ),)
    resource_privileges = (CATALOG,)

    def __init__(self, vcenter: VCenter, clusters: Clusters) -> None:
        self._namespaces = Namespaces(vcenter)
        self._directory = vcenter.directory
        self._clusters = clusters
        self._catalog: Catalog | None = None

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """One list, then the details of what is wanted or carries a mark; a site without namespaces asks no
        more than the list.

        While one waits for some: their details, and no more.
        """
        names = (
            [name for name, text in self._namespaces.list().items() if name in wanted or _own(name, text)]
            if include_unlisted
            else list(wanted)
        )
        if not names and not any(wanted.values()):
            return Observation({})
        catalog = self._known(wanted, include_unlisted=include_unlisted)
        states = {name: _state(found) for name, found in self._namespaces.details(names, catalog).items()}
        for name, state in states.items():
            spec = wanted.get(name)
            if include_unlisted and (spec is None or spec.cluster != state.cluster):
                states[name] = replace(state, contents=self._contents(state))
        return Observation(
            states,
            SupervisorNamespaceFacts(catalog, self._subjects(wanted, states) if include_unlisted else {}),
        )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Create, patch, replace when the cluster changes, delete."""
        going = state is not None and state.status == "REMOVING"
        if spec is None:
            return () if state is None or going else (Delete(name=name),)
        _check(name, spec, context)
        create = Create(
            name=name,
            cluster=spec.cluster,
            settings=_settings(spec, context.mark),
            changes=compare.differences(None, spec.applied()),
        )
        if state is None or going:
            return (create,)
        if spec.cluster != state.cluster:
            return Move(name=name, changes=(Change("cluster", state.cluster, spec.cluster),)), create
        found = compare.changes(spec, state.mark, _drift(spec, state, context.mark))
        return (Update(name=name, settings=_settings(spec, context.mark), changes=found),) if found else ()

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: SupervisorNamespaceFacts | None) -> Iterator[Conflict]:
        """Access for somebody who isn't there."""
        subjects = facts.subjects if facts else {}
        for key, spec in wanted.items() if subjects else ():
            for index, entry in enumerate(spec.access if isinstance(spec, Spec) else ()):
                yield from _unknown(
                    Spot(key, f"access.{index}.{'group' if entry.group else 'user'}"),
                    entry,
                    subjects.get(entry.account.lower()),
                )

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The vSphere cluster, the root for storage policies, and its own API."""
        return {
            "cluster": (Entity(f"/{datacenter}/host/{spec.cluster}", "ClusterComputeResource"),),
            "policies": (ROOT,),
            API: (Api(Key("supervisor_namespace", name), name),),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """RUNNING."""
        if state.status == "ERROR":
            return failed("; ".join(state.messages) or "vCenter gives no reason")
        return READY if state.status == "RUNNING" else waiting(state.status.lower())

    def run(self, step: Step, report: Report) -> None:
        """One REST call."""
        match step:
            case Create(name=name, cluster=cluster, settings=settings):
                self._namespaces.create(name, cluster, settings)
            case Update(name=name, settings=settings):
                self._namespaces.update(name, settings)
            case Delete(name=name):
                self._namespaces.delete(name)

    def _known(self, wanted: Mapping[str, Spec | None], *, include_unlisted: bool) -> Catalog:
        """What namespaces may name: that does not change while one waits for them, but by what this run makes
        for them first.
        """
        if (
            include_unlisted
            or self._catalog is None
            or any(spec is not None and not _named(spec, self._catalog) for spec in wanted.values())
        ):
            self._catalog = self._namespaces.catalog()
        return self._catalog

    def _subjects(
        self, wanted: Mapping[str, Spec | None], states: Mapping[str, State]
    ) -> dict[str, Found | str]:
        """One question for each account that the namespace doesn't let in yet, or that nobody may ask."""
        due = {
            entry.account.lower()
            for name, spec in wanted.items()
            if spec
            for entry in spec.access
            if name not in states
            or not any(
                (grant.account.lower(), grant.group) == (entry.account.lower(), bool(entry.group))
                for grant in states[name].settings.access
            )
        }
        found: dict[str, Found | str] = {}
        for account in sorted(due):
            try:
                found[account] = self._directory.find(account)
            except (Denied, Rejected) as error:
                found[account] = error.problems[0].why or error.problems[0].what
        return found

    def _contents(self, state: State) -> tuple[str, ...]:
        """Clusters and workloads inside that are not this site's."""
        if state.endpoint is None:
            return ()
        try:
            return self._clusters.at(state.endpoint).unmanaged(state.mark.site if state.mark else "")
        except RemoteError as error:
            return (
                (
                    "whatever is in it (it can't be asked: "
                    f"{'; '.join(filter(None, (error.problems[0].what, error.problems[0].why)))})"
                ),
            )


def _named(spec: Spec, catalog: Catalog) -> bool:
    """Whether all that it names is there, its supervisor running."""
    home = catalog.supervisors.get(spec.cluster)
    return (
        home is not None
        and home.running
        and set(spec.storage) <= set(catalog.policies)
        and set(spec.content_libraries) <= set(catalog.libraries)
    )


def _unknown(at: Spot, entry: Access, found: Found | str | None) -> Iterator[Conflict]:
    """What is wrong with an account, if anything. `found`: None where it has access already."""
    what, other = ("group", "user") if entry.group else ("user", "group")
    if isinstance(found, str):
        yield Conflict(
            at,
            f"vCenter doesn't say whether there is a {what} {entry.account}",
            why=found,
            next="check it by hand",
            stops=False,
        )
    elif found is not None and getattr(found, other) and not getattr(found, what):
        yield Conflict(
            at,
            f"{entry.account} is a {other}",
            why=f"there is no {what} of this name",
            next=f"write: {other}: {entry.account}",
        )
    elif found is not None and not getattr(found, what):
        yield Conflict(
            at,
            f"there is no {what} {entry.account}",
            why="none of vCenter's directories knows it",
            next=nearest(entry.account, found.groups if entry.group else found.users),
        )


def _own(name: str, description: str) -> bool:
    """Whether its mark is its own, and not copied from another one with the description."""
    return Mark.own(description, f"supervisor_namespace/{name}") is not None


def _state(found: Namespace) -> State:
    running = found.status == "RUNNING" and found.endpoint
    return State(
        mark=Mark.decode(found.settings.description),
        status=found.status,
        messages=found.messages,
        cluster=found.cluster,
        settings=found.settings,
        vm_classes=found.settings.vm_classes,
        content_libraries=found.settings.libraries,
        policies=tuple(found.settings.storage),
        creator=found.creator,
        endpoint=Endpoint(server=found.endpoint, namespace=found.name) if running else None,
    )


def _settings(spec: Spec, mark: Mark) -> Settings:
    return Settings(
        description=below(spec.description, mark.seal(spec.applied())),
        cpu=spec.limits.cpu,
        memory=spec.limits.memory,
        total_storage=spec.limits.storage,
        storage=dict(sorted(spec.storage.items())),
        access=tuple(
            sorted(Grant(entry.account, entry.group is not None, entry.role) for entry in spec.access)
        ),
        vm_classes=tuple(sorted(spec.vm_classes)),
        libraries=tuple(sorted(spec.content_libraries)),
    )


def _view(settings: Settings) -> dict[str, Any]:
    """The settings as a site writes them."""
    return {
        "description": above(settings.description),
        "limits": {
            "cpu": settings.cpu and megahertz_text(settings.cpu),
            "memory": settings.memory and bytes_text(settings.memory),
            "storage": settings.total_storage and bytes_text(settings.total_storage),
        },
        "storage": {
            name: "no limit" if limit is None else bytes_text(limit)
            for name, limit in settings.storage.items()
        },
        "access": [
            {"group" if grant.group else "user": grant.account, "role": grant.role}
            for grant in settings.access
        ],
        "vm_classes": list(settings.vm_classes),
        "content_libraries": list(settings.libraries),
    }


def _drift(spec: Spec, state: State, mark: Mark) -> Sequence[Change]:
    """Where the world differs, in what is written or was; vCenter may add the creator to the access list by
    itself.
    """
    wanted = _settings(spec, mark)
    added = [
        grant
        for grant in state.settings.access
        if grant.account == state.creator and grant not in wanted.access
    ]
    world = replace(
        state.settings, access=tuple(grant for grant in state.settings.access if grant not in added)
    )
    managed = spec.model_fields_set | set((state.mark.applied or {}) if state.mark else {})
    return [
        change
        for change in compare.differences(_view(world), _view(wanted))
        if change.field.partition(".")[0] in managed
    ]


def _check(name: str, spec: Spec, context: PlanContext) -> None:
    """Refusal for whatever vCenter would refuse, or silently never grant. What this site makes first counts
    as there.
    """
    catalog: Catalog = context.facts.catalog
    made = {
        kind: {
            need.key.name
            for need in context.needs.values()
            if need.key.kind == kind and need.spec is not None
        }
        for kind in MADE
    }
    if spec.cluster not in catalog.supervisors and spec.cluster not in made["supervisor"]:
        raise Refusal(
            f"no supervisor runs on a cluster {spec.cluster}",
            field="cluster",
            why="namespaces live on supervisors",
            next=nearest(spec.cluster, catalog.supervisors),
        )
    _known("storage policy", "storage", spec.storage, {*catalog.policies, *made["storage_policy"]})
    _known("VM class", "vm_classes", spec.vm_classes, {*catalog.vm_classes, *made["vm_class"]})
    _known(
        "content library",
        "content_libraries",
        spec.content_libraries,
        {*catalog.libraries, *made["content_library"]},
    )
    if name.startswith("vmware-system"):
        raise Refusal("names that begin with vmware-system are vSphere's own", next="choose another name")
    for policy, limit in spec.storage.items():
        if limit is not None and spec.limits.storage is not None and limit > spec.limits.storage:
            raise Refusal(
                (
                    f"{bytes_text(limit)} of {policy} can't fit into the namespace's "
                    f"{bytes_text(spec.limits.storage)}"
                ),
                field=f"storage.{policy}",
                next="raise limits.storage, or lower this",
            )


def _known(what: str, where: str, names: Iterable[str], known: Collection[str]) -> None:
    for index, name in enumerate(names):
        if name not in known:
            raise Refusal(
                f"there is no {what} {name}",
                field=f"{where}.{name if where == 'storage' else index}",
                next=nearest(name, known),
            )
