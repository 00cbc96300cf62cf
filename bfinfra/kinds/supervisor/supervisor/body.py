"""The request bodies of a supervisor by the API of clusters, in vCenter's words. Pure, except that it reveals
secrets.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.kinds.supervisor.supervisor.networking import Addresses, Balancer, Enable, Nsx, Vds
from bfinfra.kinds.supervisor.supervisor.spec import Spec
from bfinfra.model.awaited import Away
from bfinfra.model.records import dataclass

NSX, VDS, VPC = "NSXT_CONTAINER_PLUGIN", "VSPHERE_NETWORK", "NSX_VPC"
FIELDS = {  # vCenter's word → bfinfra's
    "size_hint": "size",
    "master_DNS": "dns.control_plane",
    "worker_DNS": "dns.workloads",
    "master_DNS_search_domains": "dns.search",
    "master_NTP_servers": "ntp",
    "login_banner": "login_banner",
    "default_kubernetes_service_content_library": "content_library",
}


@dataclass(frozen=True)
class Ids:
    """The ids of all that a spec can name, by what the site calls it, and files that don't exist yet."""

    clusters: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)
    away: Mapping[str, Away] = field(default_factory=dict)
    """By cluster: the load balancer's authority or password, if its file doesn't exist yet."""
    zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """vSphere zone → ids of its clusters."""
    version: str = ""
    """Version of vCenter's API, such as 9.0.0.0."""


def provider(enable: Enable) -> str:
    """The network provider, as vCenter names it."""
    return NSX if enable.nsx else VPC if enable.vpc else VDS


def cidr(text: str) -> dict[str, Any]:
    """A network as vCenter writes it."""
    net = ipaddress.ip_network(text)
    return {"address": str(net.network_address), "prefix": net.prefixlen}


def settings(spec: Spec, libraries: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the spec that can change at any time."""
    fields = {
        "size_hint": spec.size.upper() if spec.size else None,
        "master_DNS": spec.dns.control_plane,
        "worker_DNS": spec.dns.workloads,
        "master_DNS_search_domains": spec.dns.search,
        "master_NTP_servers": spec.ntp,
        "login_banner": spec.login_banner,
        "default_kubernetes_service_content_library": libraries.get(
            spec.content_library, spec.content_library
        )
        if spec.content_library
        else None,
    }
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if value is not None
    }


def enabling(spec: Spec, ids: Ids) -> dict[str, Any]:
    """The body that enables a supervisor. Raises KeyError for a name that doesn't exist, SecretMissing,
    OSError.
    """
    enable = spec.enable
    assert enable is not None
    storage, management = enable.storage, enable.management
    meet: dict[str, Any] = {"network": ids.networks[management.network], "mode": "DHCP"}
    if management.addresses and management.gateway:
        gateway = ipaddress.ip_interface(management.gateway)
        meet["mode"] = "STATICRANGE"
        meet["address_range"] = {
            "starting_address": management.addresses.first,
            "address_count": management.addresses.count,
            "subnet_mask": str(gateway.netmask),
            "gateway": str(gateway.ip),
        }
    return {
        "size_hint": "SMALL",
        **settings(spec, ids.libraries),
        "service_cidr": cidr(enable.services),
        "network_provider": provider(enable),
        "master_management_network": meet,
        "master_storage_policy": ids.policies[storage.control_plane],
        "ephemeral_storage_policy": ids.policies[storage.ephemeral],
        "image_storage": {"storage_policy": ids.policies[storage.images]},
        **(_nsx(enable.nsx, ids) if enable.nsx else {}),
        **(_vds(enable.vds, ids) if enable.vds else {}),
    }


def account(each: Balancer) -> dict[str, str]:
    """The account of a load balancer. Raises SecretMissing, OSError."""
    return {
        "username": each.username,
        "password": each.password.reveal(),
        "certificate_authority_chain": each.authority.path.read_text(),
    }


def server(address: str) -> dict[str, Any]:
    """A server as vCenter writes it."""
    host, _, port = address.rpartition(":")
    return {"host": host, "port": int(port)}


def addresses(each: Addresses) -> dict[str, Any]:
    """A range of addresses as vCenter writes it."""
    return {"address": each.first, "count": each.count}


def _nsx(nsx: Nsx, ids: Ids) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: [cidr(each) for each in getattr(nsx, part)]
        for name, part in (("pod_cidrs", "pods"), ("ingress_cidrs", "ingress"), ("egress_cidrs", "egress"))
    }
    tier0 = {"nsx_tier0_gateway": nsx.tier0} if nsx.tier0 else {}
    return {
        "ncp_cluster_network_spec": {
            **found,
            "cluster_distributed_switch": ids.switches[nsx.switch],
            "nsx_edge_cluster": nsx.edge_cluster,
            **tier0,
        }
    }


def _vds(vds: Vds, ids: Ids) -> dict[str, Any]:
    gateway = ipaddress.ip_interface(vds.gateway)
    network = {
        "portgroup": ids.networks[vds.port_group],
        "ip_assignment_mode": "STATICRANGE",
        "address_ranges": [addresses(vds.addresses)],
        "gateway": str(gateway.ip),
        "subnet_mask": str(gateway.netmask),
    }
    primary = {"network": vds.name, "network_provider": VDS, "vsphere_network": network}
    balancer: dict[str, Any] = {
        "id": vds.name,
        "address_ranges": [addresses(vds.services)] if vds.services else [],
    }
    if vds.haproxy:
        balancer |= {
            "provider": "HA_PROXY",
            "ha_proxy_config_create_spec": {
                "servers": [server(each) for each in vds.haproxy.servers],
                **account(vds.haproxy),
            },
        }
    if vds.avi:
        cloud = {"cloud_name": vds.avi.cloud} if vds.avi.cloud else {}
        balancer |= {
            "provider": "AVI",
            "avi_config_create_spec": {"server": server(vds.avi.server), **account(vds.avi), **cloud},
        }
    return {
        "workload_networks_spec": {"supervisor_primary_workload_network": primary},
        "load_balancer_config_spec": balancer,
    }
