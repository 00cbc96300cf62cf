"""Supervisors. Source: com.vmware.vcenter.namespace_management.Clusters."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest.errors import missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.zones import home, supervisor_id, topology_of

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Managed
    from bfinfra.sandbox.world_hosts import Supervisor

PATH = "/vcenter/namespace-management/clusters"
MIB = 2**20
FOUNDATION = "VSPHERE_FOUNDATION"


@route("GET", PATH)
def clusters(call: Call) -> Any:
    """Clusters with vSphere with Tanzu."""
    return [
        {"cluster": moid, "cluster_name": cluster.name, "stats": _stats(call, cluster), **_status(call, moid)}
        for moid, (cluster, _) in call.state.supervisors().items()
    ]


@route("GET", PATH + "/{cluster}")
def cluster(call: Call, cluster: str) -> Any:
    """One supervisor."""
    call.need("System.Read", cluster, cluster)
    found = call.state.supervisors().get(home(call.state, cluster))
    if found is None:
        raise missing("The Supervisor on cluster", cluster)
    return _info(call, *found)


@route("GET", "/vcenter/namespace-management/supervisors/summaries")
def summaries(call: Call) -> Any:
    """Every supervisor by its own id."""
    none = dict.fromkeys(
        ("cpu_used", "cpu_capacity", "memory_used", "memory_capacity", "storage_used", "storage_capacity"), 0
    )
    return {
        "items": [
            {
                "supervisor": supervisor_id(call.state, moid),
                "info": {"name": cluster.name, "stats": none, **_status(call, moid)},
            }
            for moid, (cluster, _) in call.state.supervisors().items()
        ]
    }


@route("GET", "/vcenter/namespace-management/supervisors/{supervisor}/topology")
def topology(call: Call, supervisor: str) -> Any:
    """The zones of a supervisor, with their clusters."""
    for moid in call.state.supervisors():
        if supervisor_id(call.state, moid) == supervisor:
            return [
                {"zone": zone, "clusters": there} for zone, there in topology_of(call.state, moid).items()
            ]
    raise missing("The Supervisor", supervisor)


@route("GET", "/vcenter/namespace-management/software/clusters")
def software(call: Call) -> Any:
    """The version of each supervisor."""
    return [
        {
            "cluster": moid,
            "cluster_name": cluster.name,
            "available_versions": [],
            "current_version": supervisor.version,
            "desired_version": supervisor.version,
            "state": "READY",
            "last_upgraded_date": "2021-06-01T00:00:00.000Z",
        }
        for moid, (cluster, supervisor) in call.state.supervisors().items()
    ]


def _info(call: Call, cluster: Managed, supervisor: Supervisor) -> dict[str, Any]:
    policy = next(iter(call.state.policies()), None)
    certificate = call.state.pki.certificate(supervisor.address)
    content = [
        identity
        for identity, each in call.state.libraries.items()
        if (given := call.inventory.given(cluster)) and each["name"] in given.content
    ]
    info = {
        "size_hint": "SMALL",
        "stat_summary": _stats(call, cluster),
        **_status(call, cluster.moid),
        "messages": [],
        "conditions": [],
        "kubernetes_status_messages": [],
        "api_server_management_endpoint": supervisor.address,
        "api_server_cluster_endpoint": supervisor.address,
        "api_servers": [supervisor.address],
        "tls_endpoint_certificate": certificate,
        "tls_management_endpoint_certificate": certificate,
        "network_provider": supervisor.network_provider,
        "service_cidr": _cidr(supervisor.service_cidr),
        "login_banner": "",
        "master_management_network": _management(call, supervisor),
        "Master_DNS_names": [],
        "master_DNS": [],
        "worker_DNS": [],
        "master_NTP_servers": [],
    }
    if supervisor.network_provider == "NSX_VPC":
        pass  # the request that enabled it contains all fields
    elif supervisor.network_provider == "NSXT_CONTAINER_PLUGIN":
        info["ncp_cluster_network_info"] = {
            "pod_cidrs": [_cidr(supervisor.pod_cidr)],
            "ingress_cidrs": [],
            "egress_cidrs": [],
            "cluster_distributed_switch": "dvs-12",
            "nsx_edge_cluster": call.inventory.new_uuid("edge"),
            "default_ingress_tls_certificate": "",
        }
    else:
        info |= _vds(call, supervisor)
    if policy:
        info |= {
            "master_storage_policy": policy,
            "ephemeral_storage_policy": policy,
            "image_storage": {"storage_policy": policy},
        }
    if content:
        info["default_kubernetes_service_content_library"] = content[0]
    made, settings = call.state.enabled.get(cluster.moid), call.state.settings.get(cluster.moid, {})
    return _as_enabled(info, made, supervisor) | settings if made else info | settings


def _management(call: Call, supervisor: Supervisor) -> dict[str, Any]:
    """The control plane's network: five addresses from the supervisor's own on."""
    network = _subnet(supervisor)
    addresses = {
        "starting_address": supervisor.address,
        "address_count": 5,
        "subnet_mask": str(network.netmask),
        "gateway": str(network[1]),
    }
    return {
        "mode": "STATICRANGE",
        "network": call.inventory.networks()[0].moid,
        "floating_IP": supervisor.address,
        "address_range": addresses,
    }


def _vds(call: Call, supervisor: Supervisor) -> dict[str, Any]:
    """Workloads' network and load balancer, which a supervisor without NSX has."""
    network, first = _subnet(supervisor), ipaddress.ip_address(supervisor.guests[0])
    count = int(ipaddress.ip_address(supervisor.guests[1])) - int(first) + 1
    ranges = [{"address": str(first), "count": count}]
    machines = {
        "portgroup": call.inventory.networks()[0].moid,
        "ip_assignment_mode": "STATICRANGE",
        "address_ranges": [{"address": str(network[100]), "count": 50}],
        "gateway": str(network[1]),
        "subnet_mask": str(network.netmask),
    }
    primary = {
        "network": "primary",
        "network_provider": supervisor.network_provider,
        "vsphere_network": machines,
    }
    account = {
        "servers": [{"host": str(network[9]), "port": 5556}],
        "username": "admin",
        "certificate_authority_chain": call.state.pki.certificate(supervisor.address),
    }
    return {
        "workload_networks": {"supervisor_primary_workload_network": primary, "network_list": [primary]},
        "load_balancers": [
            {"id": "haproxy", "provider": "HA_PROXY", "address_ranges": ranges, "ha_proxy_info": account}
        ],
    }


def _subnet(supervisor: Supervisor) -> Any:
    return ipaddress.ip_network(f"{supervisor.address}/24", strict=False)


def _as_enabled(info: dict[str, Any], made: dict[str, Any], supervisor: Supervisor) -> dict[str, Any]:
    """For an enabled supervisor: the request that enabled it, and its addresses once it runs."""
    spec = made["spec"]
    info |= {name: value for name, value in spec.items() if not name.endswith("_spec")} | {
        "messages": made["messages"]
    }
    if made["config_status"] == "CONFIGURING":
        info |= {"api_server_management_endpoint": "", "api_server_cluster_endpoint": "", "api_servers": []}
    if nsx := spec.get("ncp_cluster_network_spec"):
        info["ncp_cluster_network_info"] |= {
            name: nsx[name]
            for name in (
                "pod_cidrs",
                "ingress_cidrs",
                "egress_cidrs",
                "cluster_distributed_switch",
                "nsx_edge_cluster",
            )
            if name in nsx
        }
    if vds := spec.get("workload_networks_spec"):
        primary = vds["supervisor_primary_workload_network"]
        network = {
            name: value
            for name, value in primary.items()
            if name in ("network", "network_provider", "vsphere_network")
        }
        info["workload_networks"] = {
            "supervisor_primary_workload_network": {
                **network,
                "network_provider": supervisor.network_provider,
            }
        }
    balancer = spec.get("load_balancer_config_spec")
    if balancer and balancer["provider"] == FOUNDATION:
        info["load_balancers"] = []  # only the supervisor's edges report them
    elif balancer:
        account = {
            f"{sort}_info": value
            for sort in ("ha_proxy", "avi")
            if (value := balancer.get(f"{sort}_config_create_spec"))
        }
        ranges = (
            [] if balancer["provider"] == "AVI" else balancer["address_ranges"]
        )  # Avi's own, whatever was given
        info["load_balancers"] = [
            {"id": balancer["id"], "provider": balancer["provider"], "address_ranges": ranges, **account}
        ]
    return info


def _status(call: Call, cluster: str) -> dict[str, str]:
    made = call.state.enabled.get(cluster, {"config_status": "RUNNING", "kubernetes_status": "READY"})
    return {name: made[name] for name in ("config_status", "kubernetes_status")}


def _stats(call: Call, cluster: Managed) -> dict[str, int]:
    given = call.inventory.given(cluster)
    hosts = given.hosts.values() if given else ()
    stores = [
        each
        for name, each in call.inventory.world.datastores.items()
        if cluster.name in each.clusters or not (each.clusters or each.hosts)
    ]
    return {
        "cpu_used": 0,
        "cpu_capacity": sum(host.cores * host.mhz for host in hosts),
        "memory_used": 0,
        "memory_capacity": sum(host.memory for host in hosts) // MIB,
        "storage_used": 0,
        "storage_capacity": sum(store.capacity for store in stores) // MIB,
    }


def _cidr(text: str) -> dict[str, Any]:
    address, _, prefix = text.partition("/")
    return {"address": address, "prefix": int(prefix)}
