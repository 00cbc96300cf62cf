"""Supervisors that were enabled through the API, in the form of the world file."""

from __future__ import annotations

import ipaddress
from typing import Any

from bfinfra.sandbox.world_hosts import Supervisor

Info = dict[str, Any]
GUESTS = 40  # addresses for guest clusters, at most


def supervisor_of(spec: Info) -> Supervisor:
    """Return the world file's entry of a supervisor that was enabled: its address is the first one for
    services.
    """
    nsx = spec.get("ncp_cluster_network_spec")
    if nsx:
        net = ipaddress.ip_network(
            f"{nsx['ingress_cidrs'][0]['address']}/{nsx['ingress_cidrs'][0]['prefix']}", strict=False
        )
        first, count = net[1], net.num_addresses - 2
    elif clouds := spec.get("vpc_network"):  # NSX's own addresses, which vCenter doesn't report
        private = clouds["default_private_cidrs"][0]
        net = ipaddress.ip_network(f"{private['address']}/{private['prefix']}", strict=False)
        first, count = net[1], net.num_addresses - 2
    else:
        first, count = _services(spec)
    last = first + max(1, min(count - 1, GUESTS))
    service = f"{spec['service_cidr']['address']}/{spec['service_cidr']['prefix']}"
    return Supervisor(
        address=str(first),
        guests=(str(first + 1), str(last)),
        network_provider=spec["network_provider"],
        service_cidr=service,
    )


def _services(spec: Info) -> tuple[ipaddress.IPv4Address, int]:
    """First of the load balancer's addresses, and how many: those given, or Avi's own, which we take at the
    end of the workload network.
    """
    balancer = spec["load_balancer_config_spec"]
    if balancer["provider"] == "AVI":
        network = spec["workload_networks_spec"]["supervisor_primary_workload_network"]["vsphere_network"]
        net = ipaddress.IPv4Network(f"{network['gateway']}/{network['subnet_mask']}", strict=False)
        count = min(GUESTS + 1, net.num_addresses // 4)
        return net.broadcast_address - count, count
    return ipaddress.IPv4Address(balancer["address_ranges"][0]["address"]), balancer["address_ranges"][0][
        "count"
    ]
