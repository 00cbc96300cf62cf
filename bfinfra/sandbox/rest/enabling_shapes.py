"""What a request that enables a supervisor by the API of supervisors may hold, by version of vSphere. Source:
Supervisors.EnableOnComputeClusterSpec and EnableOnZonesSpec of com.vmware.vcenter.namespace_management
(vmware-vcenter 8.0.3, 9.0.0 and 9.1.1).
"""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.rest.enabling import ACCOUNT, CIDR, RANGE, SERVER

Shape = dict[str, Any]
DNS = {"servers": [str], "search_domains": [str]}
SERVICES = {"dns?": DNS, "ntp?": {"servers": [str]}}
ADDRESSES = {
    "dhcp_enabled?": bool,
    "gateway_address?": str,
    "ip_assignments?": [{"assignee?": ("POD", "NODE", "SERVICE"), "ranges": [RANGE]}],
}
MANAGEMENT = {
    "network?": str,
    "backing": {"backing": ("NETWORK", "NETWORK_SEGMENT"), "network?": str},
    "services?": SERVICES,
    "ip_management?": ADDRESSES,
    "floating_IP_address?": str,
}
CONTROL_PLANE = {
    "network": MANAGEMENT,
    "login_banner?": str,
    "size?": ("TINY", "SMALL", "MEDIUM", "LARGE"),
    "storage_policy?": str,
}
NETWORK = {
    "network?": str,
    "network_type": ("NSXT", "VSPHERE"),
    "vsphere?": {"dvpg": str},
    "services?": SERVICES,
    "ip_management?": ADDRESSES,
}
PROVIDERS = ("HAPROXY", "NSX", "NSX_ADVANCED")
EDGE = {
    "id?": str,
    "load_balancer_address_ranges?": [RANGE],
    "haproxy?": {"servers": [SERVER], **ACCOUNT},
    "nsx_advanced?": {"server": SERVER, **ACCOUNT, "cloud_name?": str},
    "provider?": PROVIDERS,
}
FOUNDATION = {
    "deployment_target?": {
        "zones?": [str],
        "storage_policy?": str,
        "deployment_size?": ("SMALL", "MEDIUM", "LARGE", "X_LARGE"),
        "availability?": ("ACTIVE_PASSIVE", "SINGLE_NODE"),
    },
    "network_services?": SERVICES,
}
EDGE_UPDATE = {
    "provider": ("VSPHERE_FOUNDATION",),
    "foundation?": {
        "vip_ranges?": [RANGE],
        "deployment_target?": {
            "size?": ("SMALL", "MEDIUM", "LARGE", "X_LARGE"),
            "availability?": ("ACTIVE_PASSIVE", "SINGLE_NODE"),
            "storage_policy?": str,
        },
    },
}


def shape(*, nine: bool, zones: bool) -> Shape:
    """The whole request. `nine`: with what came with 9.0; `zones`: across zones, else on a cluster."""
    control_plane, network, edge = CONTROL_PLANE, NETWORK, EDGE
    if nine:
        private = {"nsx_project?": str, "vpc_connectivity_profile?": str, "default_private_cidrs": [CIDR]}
        control_plane = {**control_plane, "count?": int}
        network = {**network, "network_type": ("NSXT", "VSPHERE", "NSX_VPC"), "nsx_vpc?": private}
        edge = {**edge, "foundation?": FOUNDATION, "provider?": (*PROVIDERS, "NSX_VPC", "VSPHERE_FOUNDATION")}
    storage = {"ephemeral_storage_policy?": str, "image_storage_policy?": str}
    workloads = {
        "network": network,
        "edge": edge,
        "storage?": storage,
        "images?": {"kubernetes_content_library?": str},
    }
    place = {"zones": [str]} if zones else {"zone?": str}
    return {**place, "name": str, "control_plane": control_plane, "workloads": workloads}
