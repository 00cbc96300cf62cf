"""vSphere zones of supervisors and namespaces. Source: com.vmware.vcenter.namespaces.Instances and
com.vmware.vcenter.namespace_management.supervisors.Topology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest.errors import Refused

if TYPE_CHECKING:
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
    return int(call.state.world.vcenter.version.partition(".")[0]) >= 9


def supervisor_id(state: RestState, cluster: str) -> str:
    """The id of the supervisor on a cluster, which is not the cluster's."""
    return state.inventory.new_uuid(f"supervisor {cluster}")


def zones_of(state: RestState, cluster: str) -> tuple[str, ...]:
    """The zones of the supervisor on a cluster."""
    return state.supervisors()[cluster][1].zones or (cluster,)


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
