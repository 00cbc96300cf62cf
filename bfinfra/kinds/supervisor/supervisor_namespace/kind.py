"""A namespace on a supervisor: limits, storage, access, VM classes, content libraries. (Solution setup,
figures 5 and 6.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.directory import Found
from bfinfra.backends.vcenter.namespaces import Catalog, Namespaces
from bfinfra.kinds.cluster_locator import going
from bfinfra.kinds.supervisor.supervisor_namespace.checks import CHECKS
from bfinfra.kinds.supervisor.supervisor_namespace.decide import OWN, decide, unknown, view
from bfinfra.kinds.supervisor.supervisor_namespace.spec import Spec
from bfinfra.kinds.supervisor.supervisor_namespace.state import State, SupervisorNamespaceFacts, state_of
from bfinfra.kinds.supervisor.supervisor_namespace.steps import CATALOG, Create, Delete, Move, Update
from bfinfra.model import kind
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Forbidden, Rejected, RemoteError
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import API, READ, ROOT, VCENTER, Api, Entity, PrivilegePlaces, holds, path_in
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.vcenter import VCenter


class SupervisorNamespace(kind.Kind[Spec, State]):
    """A namespace on a supervisor."""

    document = Document.SINGAPORE_POC
    holds_data = True
    checks = CHECKS
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
        """Reads the list of namespaces, then the details of those that the site wants or that have a mark.
        Reads nothing more for a site without namespaces. Without `include_unlisted`, reads only the details
        of the wanted ones.
        """
        names = (
            [name for name, text in self._namespaces.list().items() if name in wanted or _own(name, text)]
            if include_unlisted
            else list(wanted)
        )
        if not names and not any(wanted.values()):
            return Observation({})
        catalog = self._known(wanted, include_unlisted=include_unlisted)
        states = {name: state_of(found) for name, found in self._namespaces.details(names, catalog).items()}
        for name, spec in wanted.items():
            if spec is not None and name in states:
                states[name] = _as_written(states[name], spec, catalog)
        for name, state in states.items():
            spec = wanted.get(name)
            if include_unlisted and (spec is None or spec.cluster != state.cluster):
                states[name] = replace(state, contents=self._contents(state))
        return Observation(
            states,
            SupervisorNamespaceFacts(
                catalog,
                self._subjects(wanted, states) if include_unlisted else {},
                self._namespaces.zones(
                    {spec.cluster for spec in wanted.values() if spec and spec.zones}, catalog
                ),
            ),
            refused={
                name: going(f"the namespace {name}", "; ".join(state.messages) or "vCenter removes it")
                for name, state in states.items()
                if wanted.get(name) is not None and state.going
            },
        )

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every namespace except vSphere's own."""
        names = sorted(name for name in self._namespaces.list() if not name.startswith(OWN))
        catalog = self._namespaces.catalog() if names else Catalog()
        found = self._namespaces.details(names, catalog)
        for name, each in sorted(found.items()):
            yield Description(
                name,
                {"cluster": each.cluster, **view(each.settings)},
                state_of(each),
                left_out=""
                if each.cluster in catalog.supervisors
                else "its supervisor is in another datacenter",
            )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: SupervisorNamespaceFacts | None) -> Iterator[Conflict]:
        """Accounts in access lists that don't exist."""
        subjects = facts.subjects if facts else {}
        for key, spec in wanted.items() if subjects else ():
            for index, entry in enumerate(spec.access if isinstance(spec, Spec) else ()):
                yield from unknown(
                    Spot(key, f"access.{index}.{'group' if entry.group else 'user'}"),
                    entry,
                    subjects.get(entry.account.lower()),
                )

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The vSphere cluster, the root for storage policies, and the namespace's own API."""
        return {
            "cluster": (Entity(path_in(datacenter, "host", spec.cluster), "ClusterComputeResource"),),
            "policies": (ROOT,),
            API: (Api(Key("supervisor_namespace", name), name),),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when it is RUNNING."""
        if state.status == "ERROR":
            return failed("; ".join(state.messages) or "vCenter gives no reason")
        return READY if state.status == "RUNNING" else waiting(state.status.lower())

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one REST call."""
        match step:
            case Create(name=name, cluster=cluster, settings=settings):
                self._namespaces.create(name, cluster, settings)
            case Update(name=name, settings=settings):
                self._namespaces.update(name, settings, step.writes)
            case Delete(name=name):
                self._namespaces.delete(name)

    def _known(self, wanted: Mapping[str, Spec | None], *, include_unlisted: bool) -> Catalog:
        """Return what namespaces may name. A wait reuses it, as only this run's own steps change it."""
        if (
            include_unlisted
            or self._catalog is None
            or any(spec is not None and not _named(spec, self._catalog) for spec in wanted.values())
        ):
            self._catalog = self._namespaces.catalog(spec.cluster for spec in wanted.values() if spec)
        return self._catalog

    def _subjects(
        self, wanted: Mapping[str, Spec | None], states: Mapping[str, State]
    ) -> dict[str, Found | str]:
        """Return what vCenter has for each account's name, or why that is unknown. One request for each
        account that has no access yet.
        """
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
            except (Forbidden, Rejected) as error:
                found[account] = error.problems[0].why or error.problems[0].what
        return found

    def _contents(self, state: State) -> tuple[str, ...]:
        """Clusters and workloads in it that are not this site's."""
        if state.endpoint is None:
            return ()
        try:
            return self._clusters.at(state.endpoint).unmanaged(state.mark.site if state.mark else "")
        except RemoteError as error:
            return (
                (
                    "its contents, which can't be read ( "
                    f"{'; '.join(filter(None, (error.problems[0].what, error.problems[0].why)))})"
                ),
            )


def _as_written(state: State, spec: Spec, catalog: Catalog) -> State:
    """The state with the cluster as the site writes it, if it is that one."""
    meant, at = (catalog.supervisors.get(text) for text in (spec.cluster, state.cluster))
    return replace(state, cluster=spec.cluster) if meant is not None and meant == at else state


def _named(spec: Spec, catalog: Catalog) -> bool:
    """Return whether everything that it names exists, and its supervisor runs."""
    home = catalog.supervisors.get(spec.cluster)
    return (
        home is not None
        and home.running
        and set(spec.storage) <= set(catalog.policies)
        and set(spec.content_libraries) <= set(catalog.libraries)
    )


def _own(name: str, description: str) -> bool:
    """Return whether the mark is the namespace's own, and not copied from another one with the
    description.
    """
    return Mark.own(description, f"supervisor_namespace/{name}") is not None
