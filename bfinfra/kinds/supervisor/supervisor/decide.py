"""The steps of a supervisor. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from bfinfra.backends.vcenter.supervisor_edges import Edge
from bfinfra.backends.vcenter.supervisors import Supervisor
from bfinfra.kinds.named import ambiguous, nowhere
from bfinfra.kinds.supervisor.base.cluster_notes import RIGHTS, Leave, OnCluster, Take
from bfinfra.kinds.supervisor.supervisor import enabled, foundation
from bfinfra.kinds.supervisor.supervisor.body import FIELDS, Ids, settings
from bfinfra.kinds.supervisor.supervisor.networking import Group, Policy
from bfinfra.kinds.supervisor.supervisor.spec import Spec
from bfinfra.kinds.supervisor.supervisor.supervisors_body import refuse_newer
from bfinfra.model import compare, resource
from bfinfra.model.awaited import held
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref
from bfinfra.model.rights import Use, holds
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest

MANAGE = holds("cluster", "Namespaces.Manage")
MADE = ("storage_policy", "content_library", "port_group", "distributed_switch")


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """A cluster with a note of this site, or one that the site names. `found`: its supervisor, None if there
    is none. `zones` and `edge`: its zones and its Foundation load balancer, read where the site sets any. The
    other fields: what it uses, which is deleted after it.
    """

    cluster: str
    found: Supervisor | None = None
    zones: tuple[str, ...] = ()
    edge: Edge | None = None
    networks: tuple[Group, ...] = ()
    policies: tuple[Policy, ...] = ()
    switch: Annotated[str, Ref("distributed_switch", optional=True)] | None = None
    content_library: Annotated[str, Ref("content_library", optional=True)] | None = None


@dataclass(frozen=True, kw_only=True)
class Enable(OnCluster):
    """enable workload management on {cluster}"""

    rights = (MANAGE, *RIGHTS)
    spec: Spec
    note: str


@dataclass(frozen=True, kw_only=True)
class Update(OnCluster):
    """change the supervisor on {cluster}"""

    rights = (MANAGE, *RIGHTS)
    spec: Spec
    note: str


@dataclass(frozen=True, kw_only=True)
class Disable(OnCluster):
    """disable workload management on {cluster}, with every namespace on it"""

    destructive = True
    waits_ready = True
    rights = (MANAGE,)
    uses = (Use.DESTROY,)


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """Enables a supervisor, or manages an existing one. On deletion removes the note, and disables the
    supervisor only if the site asks for it.
    """
    if spec is None:
        return () if state is None or state.mark is None else tuple(_release(name, state))
    ids: Ids = context.facts
    if name not in ids.clusters:
        raise nowhere("cluster", name, "", ids.clusters)
    context.mark.refuse_others(
        state.mark if state is not None else None, "its supervisor is managed by another site"
    )
    _check(name, spec, ids, context)
    note = context.mark.committed(spec.applied()).encode()
    if state is None or state.found is None:
        if spec.enable is None:
            raise Refusal(
                f"no supervisor runs on {name}",
                field="enable",
                why="the site doesn't say how to enable it",
                next="write enable, or enable workload management there by hand",
            )
        enabling = Enable(
            cluster=name,
            moid=ids.clusters[name],
            spec=spec,
            note=note,
            changes=differences(None, spec.applied()),
        )
        if name in ids.away:
            field, problem = ids.away[name]
            raise held(problem, field, (enabling,))
        return (enabling,)
    if state.found.status == "REMOVING":
        raise Refusal(f"the supervisor on {name} is being removed", next="apply again once it is gone")
    drift = (
        *_drift(spec, state.found, ids),
        *(enabled.drift(spec.enable, state.found.info, ids, state.zones) if spec.enable else ()),
        *(
            foundation.drift(spec.enable.vds, state.edge, ids)
            if spec.enable and spec.enable.vds and state.edge
            else ()
        ),
    )
    found = compare.changes(spec, state.mark, drift) if state.mark else drift
    at: dict[str, Any] = {"cluster": name, "moid": state.cluster, "note": note, "changes": found}
    if drift:
        return (Update(spec=spec, **at),)
    return () if state.mark == Mark.decode(note) else (Take(what="supervisor", **at),)


def _release(name: str, state: State) -> Iterator[Step]:
    assert state.mark is not None
    if state.found is not None and (state.mark.applied or {}).get("disable"):
        yield Disable(cluster=name, moid=state.cluster)
    yield Leave(cluster=name, moid=state.cluster, what="supervisor")


def _drift(spec: Spec, found: Supervisor, ids: Ids) -> Iterator[Change]:
    """The fields that the site sets and that differ. The order of name servers counts."""
    names = {identity: name for name, identity in ids.libraries.items()}
    for field, wanted in settings(spec, ids.libraries).items():
        now = found.info.get(field)
        if now != wanted:
            shown = [
                names.get(each, each.lower() if field == "size_hint" else each)
                if isinstance(each, str)
                else each
                for each in (now, wanted)
            ]
            yield Change(FIELDS[field], *shown)


def _check(name: str, spec: Spec, ids: Ids, context: PlanContext) -> None:
    """Raises Refusal for a name that doesn't exist. What this site creates first counts as existing."""
    made = {
        kind: {
            need.key.name
            for need in context.needs.values()
            if need.key.kind == kind and need.spec is not None
        }
        for kind in MADE
    }
    switch = [("enable.nsx.switch", spec.enable.nsx.switch)] if spec.enable and spec.enable.nsx else []
    library = [("content_library", spec.content_library)] if spec.content_library else []
    _known("storage policy", spec.policies(), ids.policies, made["storage_policy"])
    _known("network", spec.networks(), ids.networks, made["port_group"])
    _known("distributed switch", switch, ids.switches, made["distributed_switch"])
    _known("content library", library, ids.libraries, made["content_library"])
    if spec.enable:
        refuse_newer(spec.enable, ids.version)
        _check_zones(name, spec.enable.zones, ids)


def _check_zones(name: str, zones: Sequence[str], ids: Ids) -> None:
    """Raises Refusal for a zone that doesn't exist, and if the cluster is in none of them."""
    _known("vSphere zone", [(f"enable.zones.{n}", zone) for n, zone in enumerate(zones)], ids.zones, set())
    if zones and not any(ids.clusters[name] in ids.zones[zone] for zone in zones):
        raise Refusal(
            f"{name} is in none of these zones",
            field="enable.zones",
            why="a supervisor has the name of a cluster on which it runs",
            next="name a cluster of one of the zones, or add the cluster to one",
        )


def _known(what: str, named: Iterable[tuple[str, str]], there: Mapping[str, object], made: set[str]) -> None:
    for field, name in named:
        if name not in there and name not in made:
            raise ambiguous(what, name, field, there) or Refusal(
                f"there is no {what} {name}", field=field, next=nearest(name, {*there, *made})
            )
