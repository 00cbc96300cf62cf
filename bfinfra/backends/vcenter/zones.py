"""vSphere zones, and those of supervisors and namespaces. Source:
com.vmware.vcenter.consumption_domains.Zones, com.vmware.vcenter.namespaces.Instances and
com.vmware.vcenter.namespace_management.supervisors.Topology (vmware-vcenter 9.1).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.model.errors import Malformed, Missing

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

ZONES = "/api/vcenter/consumption-domains/zones"
SUPERVISORS = "/api/vcenter/namespace-management/supervisors"
INSTANCES = "/api/vcenter/namespaces/instances"
FIRST = 9
Topology = Mapping[str, tuple[str, ...]]
"""Zone → the ids of its clusters."""


def served(version: str) -> bool:
    """Return whether namespaces of a vCenter of this API version have zones."""
    major = version.partition(".")[0]
    return major.isdigit() and int(major) >= FIRST


def supervisor(rest: Rest, cluster: str) -> str:
    """The id of the supervisor on a cluster, by the cluster's id. Raises Missing."""
    found = next((each for each, there in _topologies(rest) if cluster in _clusters(there)), None)
    if found is None:
        raise Missing(f"no supervisor runs on {cluster}", server=rest.server)
    return found


def of_supervisor(rest: Rest, cluster: str) -> tuple[str, ...]:
    """The zones of the supervisor on a cluster; () if there is none."""
    found = (there for _, there in _topologies(rest) if cluster in _clusters(there))
    return next((tuple(sorted(there)) for there in found), ())


def all_zones(rest: Rest) -> Topology:
    """The zones of a vCenter, whether a supervisor runs in them or not; none if it has no zones."""
    try:
        listed = rest.get(ZONES)
    except Missing:
        return {}
    try:
        names = [str(each["zone"]) for each in listed["items"]]
    except (KeyError, TypeError) as error:
        raise Malformed("the zones can't be understood", server=rest.server, why=repr(error)) from None
    return {name: tuple(map(str, rest.get(f"{ZONES}/cluster/{quote(name)}/associations"))) for name in names}


def of_namespace(rest: Rest, name: str) -> tuple[str, ...]:
    """The zones of a namespace, without those that are being removed from it. Raises Missing."""
    info = rest.get(f"{INSTANCES}/v2/{quote(name)}")
    return tuple(
        sorted(str(each["zone"]) for each in info.get("zones") or () if not each.get("marked_for_removal"))
    )


def remove(rest: Rest, name: str, zone: str) -> None:
    """Mark a zone for removal: vCenter removes it once no VM of the namespace is in it. One that is already
    removed is fine.
    """
    with contextlib.suppress(Missing):
        rest.delete(f"{INSTANCES}/{quote(name)}/zones/{quote(zone)}")


def _topologies(rest: Rest) -> list[tuple[str, Topology]]:
    """Each supervisor: its id and its topology."""
    listed = rest.get(f"{SUPERVISORS}/summaries")
    try:
        return [
            (str(each["supervisor"]), _topology(_topology_rows(rest, str(each["supervisor"]))))
            for each in listed["items"]
        ]
    except (KeyError, TypeError) as error:
        raise Malformed(
            "the topology of supervisors can't be understood", server=rest.server, why=repr(error)
        ) from None


def _topology_rows(rest: Rest, supervisor: str) -> Any:
    return rest.get(f"{SUPERVISORS}/{quote(supervisor)}/topology")


def _topology(rows: Any) -> Topology:
    return {str(each["zone"]): tuple(map(str, each["clusters"])) for each in rows}


def _clusters(topology: Topology) -> set[str]:
    return {cluster for each in topology.values() for cluster in each}
