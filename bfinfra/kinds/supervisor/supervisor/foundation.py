"""Compares the Foundation load balancer of a running supervisor with the site, and makes the body that
changes it. Pure. Source: Edges of com.vmware.vcenter.namespace_management.supervisors.networks
(vmware-vcenter 9.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bfinfra.backends.vcenter.supervisor_edges import PROVIDER, Edge
from bfinfra.kinds.supervisor.supervisor.body import Ids, addresses
from bfinfra.kinds.supervisor.supervisor.networking import Vds
from bfinfra.model.compare import Change

Body = dict[str, Any]
OWN = "enable.vds.foundation"
SERVICES = "enable.vds.services"


def drift(vds: Vds, edge: Edge, ids: Ids) -> Iterator[Change]:
    """The fields that the site sets and that differ."""
    own = vds.foundation
    assert own is not None
    names = {identity: name for name, identity in ids.policies.items()}
    fields = (
        ("size", edge.size.lower(), own.size),
        ("availability", edge.availability.lower(), own.availability),
        ("storage", names.get(edge.storage, edge.storage), own.storage),
    )
    for field, now, wanted in fields:
        if wanted is not None and now != wanted:
            yield Change(f"{OWN}.{field}", now, wanted)
    if vds.services and list(edge.addresses) != [(vds.services.first, vds.services.count)]:
        now = ", ".join(f"{count} addresses from {first}" for first, count in edge.addresses)
        yield Change(SERVICES, now, f"{vds.services.count} addresses from {vds.services.first}")


def body(vds: Vds, fields: Iterable[str], ids: Ids) -> Body:
    """The body that changes these dotted fields; empty where none is the load balancer's. Raises KeyError for
    a policy that doesn't exist.
    """
    own, asked = vds.foundation, set(fields)
    if own is None:
        return {}
    known = {
        "size": own.size and own.size.upper(),
        "availability": own.availability and own.availability.upper(),
    }
    target = {name: value for name, value in known.items() if value and f"{OWN}.{name}" in asked}
    if own.storage and f"{OWN}.storage" in asked:
        target["storage_policy"] = ids.policies[own.storage]
    changed: Body = {"deployment_target": target} if target else {}
    if vds.services and SERVICES in asked:
        changed["vip_ranges"] = [addresses(vds.services)]
    return {"provider": PROVIDER, "foundation": changed} if changed else {}
