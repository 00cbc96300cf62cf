"""The kind supervisor: observe, readiness, run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter import supervisor_edges, zones
from bfinfra.backends.vcenter.content import ContentLibraries
from bfinfra.backends.vcenter.places import meant
from bfinfra.backends.vcenter.policies import StoragePolicies
from bfinfra.backends.vcenter.supervisors import Supervisor, Supervisors
from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.supervisor.base import cluster_notes
from bfinfra.kinds.supervisor.base.cluster_notes import Leave, Take
from bfinfra.kinds.supervisor.supervisor import body, enabled, foundation, supervisors_body
from bfinfra.kinds.supervisor.supervisor.body import FIELDS, Ids, settings
from bfinfra.kinds.supervisor.supervisor.decide import Disable, Enable, State, Update, decide
from bfinfra.kinds.supervisor.supervisor.spec import Spec
from bfinfra.model import kind
from bfinfra.model.awaited import away
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Rejected
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import READY, Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, PrivilegePlaces, holds, path_in
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

__all__ = ["Spec", "State", "SupervisorKind"]
ATTRIBUTE = ATTRIBUTES["supervisor"]


class SupervisorKind(kind.Kind[Spec, State]):
    """A supervisor: vSphere with Tanzu on a cluster."""

    document = Document.CONSOLIDATED
    managed = False
    alone = True
    deadline = 7200
    step_types = (Enable, Update, Take, Disable, Leave)
    survey_privileges = (holds(VCENTER, *READ),)
    resource_privileges = (holds("policies", "StorageProfile.View"),)

    def __init__(self, vcenter: VCenter, site: Site) -> None:
        self._vcenter = vcenter
        self._supervisors = Supervisors(vcenter.rest)
        self._site = site.name
        self._groups = {key.name for key in site.resources if key.kind == "port_group"}

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the notes of all clusters, then the supervisors that the site wants or noted. Resolves names
        only if one is to be enabled or changed.
        """
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        notes = self._vcenter.cluster_notes.read(ATTRIBUTE, everyone=bool(specs), texts=specs)
        marks = {name: Mark.decode(text) for name, (_, text) in notes.items()}
        mine = {
            name
            for name, mark in marks.items()
            if mark and mark.site == self._site and (include_unlisted or name in wanted)
        }
        asked = sorted(name for name in notes if name in specs or name in mine)
        found = self._supervisors.read(notes[name][0] for name in asked)
        states = {}
        for name in asked:
            cluster = notes[name][0]
            if cluster in found or name in mine:
                mark = marks[name]
                applied = (mark.applied if mark else None) or {}
                contents = (
                    self._strange(cluster)
                    if include_unlisted and name not in specs and applied.get("disable") and cluster in found
                    else ()
                )
                state = State(mark=mark, cluster=cluster, found=found.get(cluster), contents=contents)
                states[name] = _uses(self._with_networks(state, specs.get(name)), applied)
        return Observation(states, self._ids(specs, {name: moid for name, (moid, _) in notes.items()}))

    def _with_networks(self, state: State, spec: Spec | None) -> State:
        """The state with the zones and the Foundation load balancer, read if the site sets them."""
        enable = spec.enable if spec else None
        if enable is None or state.found is None:
            return state
        rest = self._vcenter.rest
        places = zones.of_supervisor(rest, state.cluster) if enable.zones else ()
        own = enable.foundation() and state.found.status == "RUNNING"
        edge = supervisor_edges.foundation(rest, zones.supervisor(rest, state.cluster)) if own else None
        return replace(state, zones=places, edge=edge)

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every supervisor, with the fields that can change at any time, without `enable`."""
        notes = self._vcenter.cluster_notes.read(ATTRIBUTE, everyone=True)
        found = self._supervisors.read(moid for moid, _ in notes.values())
        libraries = (
            {each.id: each.name for each in ContentLibraries(self._vcenter.rest).list()} if found else {}
        )
        for name, (cluster, note) in sorted(notes.items()):
            if cluster in found:
                state = State(mark=Mark.decode(note), cluster=cluster, found=found[cluster])
                yield Description(name, _view(found[cluster], libraries), state)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The cluster, and the root for custom attributes and storage policies."""
        return {
            "cluster": (Entity(path_in(datacenter, "host", name), "ClusterComputeResource"),),
            "definitions": (ROOT,),
            "policies": (ROOT,) if spec.enable else (),
        }

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Ready when it is RUNNING and its Kubernetes READY; for a deletion, when it is gone."""
        found = state.found
        if found is None:
            return READY if spec is None else waiting("it doesn't exist yet")
        if spec is None:
            return (
                failed("; ".join(found.messages) or "vCenter gives no reason")
                if found.status == "ERROR"
                else waiting("it is being removed")
            )
        if found.status == "ERROR":
            return failed("; ".join(found.messages) or "vCenter gives no reason")
        if (found.status, found.kubernetes) == ("RUNNING", "READY"):
            return Readiness(Ready.READY, note=found.endpoint)
        return waiting(
            "; ".join((f"{found.status.lower()}, Kubernetes {found.kubernetes.lower()}", *found.messages))
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. The note is written before the supervisor changes."""
        notes = self._vcenter.cluster_notes
        match step:
            case Enable(cluster=name, moid=cluster, spec=spec, note=note):
                enable = self._enabling(name, cluster, spec)
                notes.set(cluster, ATTRIBUTE, note)
                enable()
            case Update(cluster=name, moid=cluster, spec=spec, note=note):
                updates = self._updates(name, cluster, spec, step.changes)
                notes.set(cluster, ATTRIBUTE, note)
                for update in updates:
                    update()
            case Disable(moid=cluster):
                self._supervisors.disable(cluster)
            case _:
                cluster_notes.run(step, notes, ATTRIBUTE)

    def _updates(
        self, name: str, cluster: str, spec: Spec, changes: Sequence[Change]
    ) -> Sequence[Callable[[], None]]:
        """The calls that change it: of its settings and of `enable`, then of its load balancer."""
        ids, fields = self._ids({name: spec}, {}), [change.field for change in changes]
        rest, vds = self._vcenter.rest, spec.enable.vds if spec.enable else None
        try:
            fixed = enabled.body(spec.enable, fields, ids) if spec.enable else {}
            changed = {**settings(spec, ids.libraries), **fixed}
            balancer = foundation.body(vds, fields, ids) if vds else {}
        except KeyError as error:
            raise self._went(error) from None
        calls: list[Callable[[], None]] = []
        if changed:
            calls.append(lambda: self._supervisors.update(cluster, changed))
        if balancer and (edge := supervisor_edges.foundation(rest, zones.supervisor(rest, cluster))):
            calls.append(lambda: supervisor_edges.update(rest, edge, balancer))
        return calls

    def _went(self, error: KeyError) -> Rejected:
        return Rejected(
            f"there is no {error.args[0]}",
            server=self._vcenter.server,
            why="it was deleted meanwhile",
            next="plan again",
        )

    def _enabling(self, name: str, cluster: str, spec: Spec) -> Callable[[], None]:
        """The call that enables it, with its whole body."""
        ids, enable, server = self._ids({name: spec}, {}), spec.enable, self._supervisors
        assert enable is not None
        try:
            if not supervisors_body.asked(enable, ids.version):
                return functools.partial(server.enable, cluster, body.enabling(spec, ids))
            whole = supervisors_body.enabling(name, spec, ids)
        except KeyError as error:
            raise self._went(error) from None
        except OSError as error:
            raise Rejected(
                f"{error.filename} can't be read",
                why=error.strerror or "",
                next="correct enable.vds, authority",
            ) from None
        if enable.zones:
            return functools.partial(server.enable_on_zones, whole)
        return functools.partial(server.enable_on_cluster, cluster, whole)

    def _ids(self, specs: Mapping[str, Spec], clusters: Mapping[str, str]) -> Ids:
        """The ids of what the specs name. Reads only the lists that are needed."""
        enabled = [spec.enable for spec in specs.values() if spec.enable]
        rest = self._vcenter.rest
        return Ids(
            clusters,
            {each.name: each.id for each in StoragePolicies(self._vcenter.session, rest).list()}
            if enabled
            else {},
            {each.name: each.id for each in ContentLibraries(rest).list()}
            if any(spec.content_library for spec in specs.values())
            else {},
            self._networks([text for spec in specs.values() for _, text in spec.networks()])
            if enabled
            else {},
            self._switches([each.nsx.switch for each in enabled if each.nsx]),
            {name: gone for name, spec in specs.items() if (gone := away(spec, spec.entrances()))},
            zones.all_zones(rest) if any(each.zones for each in enabled) else {},
            self._vcenter.about()[1],
        )

    def _networks(self, texts: Sequence[str]) -> Mapping[str, str]:
        """The ids of networks by what the site calls them; its own port groups are those with its mark."""
        found = {
            text: each.moid for text, each in meant(self._vcenter.inventory.read().networks, texts).items()
        }
        if unclear := {*texts} & self._groups - found.keys():
            for group in self._vcenter.switches.read(context=False).groups:
                mark = Mark.owner_in(group.description)
                if mark and (name := mark.name_of(self._site, "port_group")) in unclear:
                    found[name] = group.moid
        return found

    def _switches(self, texts: Sequence[str]) -> Mapping[str, str]:
        """The UUIDs of distributed switches by what the site calls them; none if it names none."""
        if not texts:
            return {}
        there = self._vcenter.switches.read(context=False)
        uuids = {each.moid: each.uuid for each in there.switches}
        return {text: uuids[each.moid] for text, each in meant(there.things, texts).items()}

    def _strange(self, cluster: str) -> tuple[str, ...]:
        """Namespaces on it that this site didn't make."""
        found = self._supervisors.namespaces(cluster)
        return tuple(
            f"namespace {name}" for name, text in sorted(found.items()) if Mark.site_in(text) != self._site
        )


def _view(found: Supervisor, libraries: Mapping[str, str]) -> dict[str, object]:
    """The fields that can change at any time, as a site writes them. `libraries`: names by id."""
    values = {ours: found.info.get(field) for field, ours in FIELDS.items()}
    view: dict[str, object] = {
        "size": str(values["size"]).lower() if values["size"] else None,
        "dns": {
            ours.removeprefix("dns."): value
            for ours, value in values.items()
            if ours.startswith("dns.") and value
        },
        "ntp": values["ntp"],
        "content_library": libraries.get(str(values["content_library"])),
        "login_banner": values["login_banner"],
    }
    return {field: value for field, value in view.items() if value}


def _uses(state: State, applied: Mapping[str, object]) -> State:
    """The state with what the applied spec uses, which is deleted after the supervisor if destroy disables
    it.
    """
    if not applied.get("disable"):
        return state
    spec = Spec.model_validate(
        {name: value for name, value in applied.items() if name in ("enable", "content_library")}
    )
    nsx = spec.enable.nsx if spec.enable else None
    return replace(
        state,
        networks=tuple(name for _, name in spec.networks()),
        policies=tuple(dict.fromkeys(name for _, name in spec.policies())),
        switch=nsx.switch if nsx else None,
        content_library=spec.content_library,
    )
