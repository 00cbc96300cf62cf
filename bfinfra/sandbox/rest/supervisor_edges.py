"""Zones of vCenter, and load balancers of Supervisors. Source: com.vmware.vcenter.consumption_domains.Zones
and com.vmware.vcenter.namespace_management.supervisors.networks.Edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest.enabling import PRIVILEGE
from bfinfra.sandbox.rest.enabling_anew import PATH
from bfinfra.sandbox.rest.enabling_shapes import EDGE_UPDATE
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check
from bfinfra.sandbox.rest.supervisors import FOUNDATION
from bfinfra.sandbox.rest.zones import every_zone, need_zones, supervisor_id, zoned, zones_of

if TYPE_CHECKING:
    from bfinfra.sandbox.rest.state import Info

ZONES = "/vcenter/consumption-domains/zones"
PROVIDERS = {"HA_PROXY": "HAPROXY", "AVI": "AVI"}


@route("GET", ZONES)
def zones(call: Call) -> Any:
    """Every zone."""
    need_zones(call)
    return {"items": [{"zone": zone, "info": {"description": ""}} for zone in every_zone(call.state)]}


@route("GET", ZONES + "/cluster/{zone}/associations")
def associations(call: Call, zone: str) -> Any:
    """The clusters of a zone."""
    need_zones(call)
    found = every_zone(call.state)
    if zone not in found:
        raise missing("The zone", zone)
    return found[zone]


@route("GET", PATH + "/{supervisor}/networks/edges")
def edges(call: Call, supervisor: str) -> Any:
    """The load balancers of a supervisor."""
    cluster = _cluster(call, supervisor)
    call.need("System.Read", cluster, cluster)
    made = call.state.enabled.get(cluster)
    balancer = made["spec"].get("load_balancer_config_spec") if made else None
    if made is None or balancer is None:
        return {"edges": []}
    found = {"edge": balancer["id"], "name": balancer["id"]}
    if balancer["provider"] == FOUNDATION:
        own = _foundation(call, cluster, made)
        return {"edges": [{**found, "provider": FOUNDATION, "foundation": own}]}
    if account := balancer.get("ha_proxy_config_create_spec"):
        own = {"address_ranges": balancer["address_ranges"], **account}
        return {"edges": [{**found, "provider": "HAPROXY", "haproxy": own}]}
    return {"edges": [{**found, "provider": "AVI", "avi": balancer["avi_config_create_spec"]}]}


@route("PATCH", PATH + "/{supervisor}/networks/edges/{edge}")
def update(call: Call, supervisor: str, edge: str) -> None:
    """Change what is given of a Foundation load balancer."""
    cluster = _cluster(call, supervisor)
    call.need(PRIVILEGE, cluster, cluster)
    spec = check(call.spec, EDGE_UPDATE)
    with call.state.lock:
        made = call.state.enabled.get(cluster)
        balancer = made["spec"].get("load_balancer_config_spec") if made else None
        if made is None or balancer is None or balancer["id"] != edge:
            raise missing("The edge", edge)
        if balancer["provider"] != FOUNDATION or "foundation" not in spec:
            raise Refused("INVALID_ARGUMENT", f"spec.provider: the edge {edge} is no {FOUNDATION}")
        given = spec["foundation"].get("deployment_target", {})
        policy = given.get("storage_policy")
        if policy is not None and policy not in call.state.policies():
            raise Refused("INVALID_ARGUMENT", f"spec.foundation: there is no storage policy {policy}")
        renamed = {("deployment_size" if name == "size" else name): value for name, value in given.items()}
        now = made["edge"] or {}
        made["edge"] = {**now, "deployment_target": {**now.get("deployment_target", {}), **renamed}}
        balancer["address_ranges"] = spec["foundation"].get("vip_ranges", balancer["address_ranges"])


def _foundation(call: Call, cluster: str, made: Info) -> Info:
    """What vCenter reports of one: what was requested, else its own choice."""
    spec, target = made["spec"], (made["edge"] or {}).get("deployment_target", {})
    ranges = spec["load_balancer_config_spec"]["address_ranges"]
    network = spec["workload_networks_spec"]["supervisor_primary_workload_network"]["network"]
    return {
        "runtime": {
            "conditions": [],
            "version": "1.0.0",
            "vips_allocated": 1,
            "vips_available": sum(each["count"] for each in ranges) - 1,
        },
        "interfaces": [
            {"personas": ["MANAGEMENT"], "network": "management"},
            {"personas": ["WORKLOAD", "FRONTEND"], "network": network},
        ],
        "vip_ranges": ranges,
        "vip_subnets": [],
        "size": target.get("deployment_size", "SMALL"),
        "availability": target.get("availability", "ACTIVE_PASSIVE"),
        "zones": list(zones_of(call.state, cluster))[:1],
        "storage_policy": target.get("storage_policy", spec["master_storage_policy"]),
        "dns_servers": spec.get("master_DNS", []),
        "dns_search_domains": spec.get("master_DNS_search_domains", []),
        "ntp_servers": spec.get("master_NTP_servers", []),
    }


def _cluster(call: Call, supervisor: str) -> str:
    if not zoned(call):
        raise Refused("OPERATION_NOT_FOUND", "edges of Supervisors are there from 9.0")
    found = (each for each in call.state.supervisors() if supervisor_id(call.state, each) == supervisor)
    cluster = next(found, None)
    if cluster is None:
        raise missing("The Supervisor", supervisor)
    return cluster
