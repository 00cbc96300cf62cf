"""The Foundation load balancers of supervisors, from 9.0. Source:
com.vmware.vcenter.namespace_management.supervisors.networks.Edges (vmware-vcenter 9.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.backends.vcenter.zones import SUPERVISORS
from bfinfra.model.errors import Malformed
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

PROVIDER = "VSPHERE_FOUNDATION"


@dataclass(frozen=True, slots=True)
class Edge:
    """`supervisor`: its id; `addresses`: ranges that it gives to services, first address and count."""

    supervisor: str
    id: str
    size: str
    availability: str
    storage: str
    addresses: tuple[tuple[str, int], ...]


def foundation(rest: Rest, supervisor: str) -> Edge | None:
    """The Foundation load balancer of a supervisor, by the supervisor's id; None if it has none."""
    listed = rest.get(_path(supervisor))
    try:
        found = next((each for each in listed["edges"] if each["provider"] == PROVIDER), None)
        return _edge(supervisor, found) if found is not None else None
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(
            f"the load balancers of supervisor {supervisor} can't be understood",
            server=rest.server,
            why=repr(error),
        ) from None


def update(rest: Rest, edge: Edge, body: Mapping[str, Any]) -> None:
    """Set the given fields."""
    rest.patch(f"{_path(edge.supervisor)}/{quote(edge.id)}", body)


def _edge(supervisor: str, found: Any) -> Edge:
    own = found["foundation"]
    return Edge(
        supervisor,
        str(found["edge"]),
        str(own["size"]),
        str(own["availability"]),
        str(own["storage_policy"]),
        tuple((str(each["address"]), int(each["count"])) for each in own["vip_ranges"]),
    )


def _path(supervisor: str) -> str:
    return f"{SUPERVISORS}/{quote(supervisor)}/networks/edges"
