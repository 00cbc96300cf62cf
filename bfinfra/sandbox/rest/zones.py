"""vSphere zones of supervisors and namespaces. Source: com.vmware.vcenter.namespaces.Instances and
com.vmware.vcenter.namespace_management.supervisors.Topology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest.errors import Refused

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.rest.routes import Call
    from bfinfra.sandbox.rest.state import RestState

ZONE = {
    "name": str,
    "vm_reservations?": [{"reserved_vm_class": str, "count": int}],
    "cpu_limit_MHz?": int,
    "cpu_reservation_MHz?": int,
    "memory_limit_MiB?": int,
    "memory_reservation_MiB?": int,
    "disallow_unreserved_direct_path_usage?": bool,
}
ZONES = {"zones?": [ZONE]}


def zoned(call: Call) -> bool:
    """Return whether this vCenter's namespaces have zones: from 9.0."""
    return _release(call) >= 9


def need_zones(call: Call) -> None:
    """OPERATION_NOT_FOUND where vCenter has no zones, nor supervisors by an API of their own: before 8.0."""
    if _release(call) < 8:
        raise Refused("OPERATION_NOT_FOUND", "Zones and the API of Supervisors are there from 8.0 on.")


def _release(call: Call) -> int:
    return int(call.state.world.vcenter.version.partition(".")[0])


def supervisor_id(state: RestState, cluster: str) -> str:
    """The id of the supervisor on a cluster, which is not the cluster's."""
    return state.inventory.new_uuid(f"supervisor {cluster}")


def zones_of(state: RestState, cluster: str) -> tuple[str, ...]:
    """The zones of the supervisor on a cluster."""
    return tuple(topology_of(state, cluster))


def topology_of(state: RestState, cluster: str) -> dict[str, list[str]]:
    """The zones of the supervisor on a cluster, with the ids of their clusters. One that was enabled on a
    cluster is in the cluster's zone, which vCenter makes where there is none.
    """
    if made := state.enabled.get(cluster, {}).get("zones"):
        return dict(made)
    found, supervisor = state.supervisors()[cluster]
    first, *others = supervisor.zones or (zone_of(state, found) or cluster,)
    return {first: [cluster], **{each: [] for each in others}}


def zone_of(state: RestState, cluster: Managed) -> str:
    """The zone of a cluster as the world has it; empty if it has none."""
    given = state.inventory.given(cluster)
    return given.zone if given else ""


def every_zone(state: RestState) -> dict[str, list[str]]:
    """Every zone with the ids of its clusters: those of the world, and those of supervisors."""
    found: dict[str, list[str]] = {}
    for cluster in state.inventory.clusters():
        if zone := zone_of(state, cluster):
            found.setdefault(zone, []).append(cluster.moid)
    for moid in state.supervisors():
        for zone, there in topology_of(state, moid).items():
            found.setdefault(zone, list(there))
    return found


def home(state: RestState, cluster: str) -> str:
    """The cluster by which the supervisor on this cluster is kept: any of its clusters names it. The same
    cluster where there is no supervisor.
    """
    there = (
        each
        for each in state.supervisors()
        if any(cluster in clusters for clusters in topology_of(state, each).values())
    )
    return next(there, cluster)


def zones_there(state: RestState, info: dict[str, Any]) -> list[dict[str, Any]]:
    """The zones of a namespace: all of its supervisor's where none were given."""
    return info.get("zones") or [{"name": each} for each in zones_of(state, info["cluster"])]


def with_zones(call: Call, info: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """The namespace's zones: those that are given are set, others stay."""
    if "zones" not in spec:
        return {}
    given = {each["name"]: each for each in spec["zones"]}
    if unknown := sorted(set(given) - {*zones_of(call.state, info["cluster"])}):
        raise Refused("INVALID_ARGUMENT", f"spec.zones: the Supervisor has no {', '.join(unknown)}")
    classes = [row["reserved_vm_class"] for each in given.values() for row in each.get("vm_reservations", [])]
    if odd := [name for name in classes if name not in call.state.vm_classes]:
        raise Refused("INVALID_ARGUMENT", f"spec.zones.vm_reservations: there is no {', '.join(odd)}")
    return {"zones": [*{**{each["name"]: each for each in info.get("zones", [])}, **given}.values()]}
