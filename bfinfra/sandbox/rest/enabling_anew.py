"""Enabling Supervisors by the API of supervisors, on a cluster or across zones. Source:
com.vmware.vcenter.namespace_management.Supervisors, from 8.0.0.1 on.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.rest.enabling import PRIVILEGE, begin, resume
from bfinfra.sandbox.rest.enabling_shapes import shape
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check
from bfinfra.sandbox.rest.zones import every_zone, home, need_zones, supervisor_id, zone_of, zoned

if TYPE_CHECKING:
    from bfinfra.sandbox.rest.state import Info

PATH = "/vcenter/namespace-management/supervisors"
PARTS = {"VSPHERE": "vsphere", "NSX_VPC": "nsx_vpc"}
EDGES = {
    "HAPROXY": "haproxy",
    "NSX_ADVANCED": "nsx_advanced",
    "VSPHERE_FOUNDATION": "foundation",
    "NSX_VPC": "",
}
LEAST = 16  # addresses of the largest private network


@route("POST", PATH + "/{cluster}", "enable_on_compute_cluster")
def on_cluster(call: Call, cluster: str) -> str:
    """Start to enable a supervisor on one cluster; its id."""
    need_zones(call)
    call.need(PRIVILEGE, cluster, cluster)
    spec = check(call.spec, shape(nine=zoned(call), zones=False))
    with call.state.lock:
        found = call.inventory.objects.get(cluster)
        if found is None or not found.is_a(vim.ClusterComputeResource):
            raise missing("The cluster", cluster)
        _free(call, [cluster])
        zone = zone_of(call.state, found)
        if zone and len(every_zone(call.state)[zone]) > 1:
            raise Refused("UNSUPPORTED", f"Zone {zone} has several clusters: enable the Supervisor on zones.")
        _begin(call, cluster, spec, {zone or cluster: [cluster]})
    resume(call.state, cluster)
    return supervisor_id(call.state, cluster)


@route("POST", PATH, "enable_on_zones")
def on_zones(call: Call) -> str:
    """Start to enable a supervisor across zones; its id."""
    need_zones(call)
    spec = check(call.spec, shape(nine=zoned(call), zones=True))
    with call.state.lock:
        there = every_zone(call.state)
        if gone := [zone for zone in spec["zones"] if zone not in there]:
            raise missing("The zone", ", ".join(gone))
        if len(set(spec["zones"])) not in (1, 3):
            raise Refused("INVALID_ARGUMENT", "spec.zones: only one or three zones are supported")
        zones = {zone: there[zone] for zone in spec["zones"]}
        clusters = [cluster for each in zones.values() for cluster in each]
        if not all(zones.values()):
            raise Refused("INVALID_ARGUMENT", "spec.zones: a zone has no cluster")
        for cluster in clusters:
            call.need(PRIVILEGE, cluster, cluster)
        _free(call, clusters)
        _begin(call, clusters[0], spec, zones)
    resume(call.state, clusters[0])
    return supervisor_id(call.state, clusters[0])


def _free(call: Call, clusters: list[str]) -> None:
    running = call.state.supervisors()
    if any(home(call.state, each) in running for each in clusters):
        raise Refused("ALREADY_EXISTS", "Workload management is enabled on this cluster.")


def _begin(call: Call, cluster: str, spec: Info, zones: dict[str, list[str]]) -> None:
    """Keep it as the API of clusters would, for which all reading is."""
    workloads, plane = spec["workloads"], spec["control_plane"]
    network, edge, at = workloads["network"], workloads["edge"], "spec.workloads"
    kind = network["network_type"]
    if kind not in PARTS or PARTS[kind] not in network or {*PARTS.values()} & {*network} != {PARTS[kind]}:
        raise Refused("INVALID_ARGUMENT", f"{at}.network: {kind} wants what is its own, and nothing else")
    provider = edge.get("provider", "")
    given = {name for name in EDGES.values() if name in edge}
    if provider not in EDGES or given != {EDGES[provider]} - {""}:
        raise Refused("INVALID_ARGUMENT", f"{at}.edge: {provider} wants what is its own, and nothing else")
    if (kind == "NSX_VPC") != (provider == "NSX_VPC"):
        raise Refused("INVALID_ARGUMENT", f"{at}.edge.provider: {provider} is not for {kind}")
    if provider in ("HAPROXY", "VSPHERE_FOUNDATION") and not edge.get("load_balancer_address_ranges"):
        raise Refused(
            "INVALID_ARGUMENT", f"{at}.edge.load_balancer_address_ranges: {provider} wants addresses"
        )
    if "storage_policy" not in plane:
        raise Refused("INVALID_ARGUMENT", "spec.control_plane.storage_policy: is required")
    kept = {
        **_plane(plane),
        **_services(network, "worker"),
        **_storage(workloads.get("storage", {}), plane["storage_policy"]),
        **_library(workloads.get("images", {})),
        "service_cidr": _inner(network),
        **(_vsphere(network, edge) if kind == "VSPHERE" else _clouds(network["nsx_vpc"])),
    }
    begin(call, cluster, kept, zones=zones, edge=edge.get("foundation"))


def _plane(plane: Info) -> Info:
    network = plane["network"]
    backing = network["backing"]
    if backing["backing"] != "NETWORK" or "network" not in backing:
        raise Refused("UNSUPPORTED", "The sandbox has networks only as a management network's backing.")
    kept: Info = {"network": backing["network"], "mode": "DHCP"}
    own = _assigned(network, "NODE", "spec.control_plane.network")
    if own:
        gateway = ipaddress.ip_interface(network["ip_management"]["gateway_address"])
        kept |= {
            "mode": "STATICRANGE",
            "address_range": {
                "starting_address": own[0]["address"],
                "address_count": own[0]["count"],
                "subnet_mask": str(gateway.netmask),
                "gateway": str(gateway.ip),
            },
        }
    banner = {"login_banner": plane["login_banner"]} if "login_banner" in plane else {}
    services = _services(network, "master")
    return {
        "size_hint": plane.get("size", "SMALL"),
        "master_management_network": kept,
        "master_storage_policy": plane["storage_policy"],
        **services,
        **banner,
    }


def _services(network: Info, whose: str) -> Info:
    services = network.get("services", {})
    kept: Info = {}
    if "dns" in services:
        kept[f"{whose}_DNS"] = services["dns"]["servers"]
        if whose == "master":
            kept["master_DNS_search_domains"] = services["dns"]["search_domains"]
    if "ntp" in services:
        name = "master_NTP_servers" if whose == "master" else "workload_ntp_servers"
        kept[name] = services["ntp"]["servers"]
    return kept


def _storage(storage: Info, control_plane: str) -> Info:
    return {
        "ephemeral_storage_policy": storage.get("ephemeral_storage_policy", control_plane),
        "image_storage": {"storage_policy": storage.get("image_storage_policy", control_plane)},
    }


def _library(images: Info) -> Info:
    library = images.get("kubernetes_content_library")
    return {"default_kubernetes_service_content_library": library} if library else {}


def _assigned(network: Info, assignee: str, at: str) -> list[Info]:
    """The ranges of an assignee. INVALID_ARGUMENT for those of machines outside of the gateway's network."""
    how = network.get("ip_management", {})
    ranges: list[Info] = [
        each
        for given in how.get("ip_assignments", [])
        if given.get("assignee") == assignee
        for each in given["ranges"]
    ]
    if assignee == "NODE" and how.get("dhcp_enabled", True) is False:
        if "gateway_address" not in how or not ranges:
            raise Refused(
                "INVALID_ARGUMENT", f"{at}.ip_management: without DHCP it wants gateway and addresses"
            )
        net = ipaddress.ip_interface(how["gateway_address"]).network
        ends = [
            ipaddress.ip_address(each["address"]) + more for each in ranges for more in (0, each["count"] - 1)
        ]
        if any(end not in net for end in ends):
            raise Refused("INVALID_ARGUMENT", f"{at}.ip_management: an address is not in {net}")
    return ranges


def _inner(network: Info) -> Info:
    """The network of services: one range that is a network."""
    ranges = _assigned(network, "SERVICE", "spec.workloads.network")
    if len(ranges) != 1:
        raise Refused("INVALID_ARGUMENT", "spec.workloads.network.ip_management: SERVICE wants one range")
    first, count = ipaddress.IPv4Address(ranges[0]["address"]), ranges[0]["count"]
    nets = list(ipaddress.summarize_address_range(first, first + count - 1))
    if len(nets) != 1:
        raise Refused("INVALID_ARGUMENT", "spec.workloads.network.ip_management: SERVICE wants a network")
    return {"address": str(first), "prefix": nets[0].prefixlen}


def _vsphere(network: Info, edge: Info) -> Info:
    nodes = _assigned(network, "NODE", "spec.workloads.network")
    how = network.get("ip_management", {})
    if how.get("dhcp_enabled", True):
        raise Refused("UNSUPPORTED", "The sandbox has static workload networks only.")
    gateway = ipaddress.ip_interface(how["gateway_address"])
    own = {
        "portgroup": network["vsphere"]["dvpg"],
        "ip_assignment_mode": "STATICRANGE",
        "address_ranges": nodes,
        "gateway": str(gateway.ip),
        "subnet_mask": str(gateway.netmask),
    }
    name = network.get("network", "primary")
    primary = {"network": name, "network_provider": "VSPHERE_NETWORK", "vsphere_network": own}
    return {
        "network_provider": "VSPHERE_NETWORK",
        "workload_networks_spec": {"supervisor_primary_workload_network": primary},
        "load_balancer_config_spec": _balancer(edge, name),
    }


def _balancer(edge: Info, network: str) -> Info:
    names = {"HAPROXY": "HA_PROXY", "NSX_ADVANCED": "AVI"}
    sorts = {"haproxy": "ha_proxy_config_create_spec", "nsx_advanced": "avi_config_create_spec"}
    return {
        "id": edge.get("id", network),
        "provider": names.get(edge["provider"], edge["provider"]),
        "address_ranges": edge.get("load_balancer_address_ranges", []),
        **{sorts[name]: edge[name] for name in sorts if name in edge},
    }


def _clouds(vpc: Info) -> Info:
    nets = [
        ipaddress.ip_network(f"{each['address']}/{each['prefix']}") for each in vpc["default_private_cidrs"]
    ]
    if not any(net.num_addresses >= LEAST for net in nets):
        raise Refused(
            "INVALID_ARGUMENT",
            f"spec.workloads.network.nsx_vpc.default_private_cidrs: one has to have {LEAST} addresses",
        )
    project = vpc.get("nsx_project", "/orgs/default/projects/default")
    profile = vpc.get("vpc_connectivity_profile", f"{project}/vpc-connectivity-profiles/default")
    return {
        "network_provider": "NSX_VPC",
        "vpc_network": {
            "nsx_project": project,
            "vpc_connectivity_profile": profile,
            "default_private_cidrs": vpc["default_private_cidrs"],
            "auto_created": True,
        },
    }
