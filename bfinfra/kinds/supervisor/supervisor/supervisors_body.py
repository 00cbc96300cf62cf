"""The request bodies of a supervisor by the API of supervisors, in vCenter's words. Pure, except that it
reveals secrets. Source: Supervisors.EnableOnComputeClusterSpec and EnableOnZonesSpec of
com.vmware.vcenter.namespace_management (vmware-vcenter 8.0.3, 9.0 and 9.1).
"""

from __future__ import annotations

import ipaddress
from typing import Any

from bfinfra.kinds.supervisor.supervisor.body import Ids, account, addresses, cidr, server
from bfinfra.kinds.supervisor.supervisor.networking import Enable, Foundation, Management, Vds, Vpc
from bfinfra.kinds.supervisor.supervisor.spec import Spec
from bfinfra.model.errors import Refusal

Body = dict[str, Any]
FIRST = {"zones": 8, "vpc": 9, "vds.foundation": 9}
"""Field of `enable` → the first release of vSphere that has it."""


def major(version: str) -> int:
    """The release of vSphere that an API version is of; 0 where it can't be told."""
    number = version.partition(".")[0]
    return int(number) if number.isdigit() else 0


def asked(enable: Enable, version: str) -> bool:
    """Return whether a supervisor is enabled by the API of supervisors: with zones, and from 9.0 on, where
    that of clusters is deprecated. NSX is always enabled by the API of clusters.
    """
    return not enable.nsx and (bool(enable.zones) or major(version) >= FIRST["vpc"])


def refuse_newer(enable: Enable, version: str) -> None:
    """Raises Refusal for a field that this version of vCenter doesn't have."""
    given = {"zones": enable.zones, "vpc": enable.vpc, "vds.foundation": enable.foundation()}
    for field, value in given.items():
        if value and major(version) < FIRST[field]:
            raise Refusal(
                f"vCenter {version} doesn't have it",
                field=f"enable.{field}",
                why=f"it came with vSphere {FIRST[field]}.0",
                next="leave it out, or upgrade vCenter",
            )


def enabling(name: str, spec: Spec, ids: Ids) -> Body:
    """The body that enables a supervisor. Raises KeyError for a name that doesn't exist, SecretMissing,
    OSError.
    """
    enable = spec.enable
    assert enable is not None
    library = (
        {"kubernetes_content_library": ids.libraries[spec.content_library]} if spec.content_library else {}
    )
    banner = {"login_banner": spec.login_banner} if spec.login_banner is not None else {}
    return {
        "name": name,
        **({"zones": list(enable.zones)} if enable.zones else {}),
        "control_plane": {
            "network": _management(enable.management, spec, ids),
            "size": (spec.size or "small").upper(),
            "storage_policy": ids.policies[enable.storage.control_plane],
            **banner,
        },
        "workloads": {
            "network": _workloads(enable, spec, ids),
            "edge": _edge(enable.vds, ids) if enable.vds else {"provider": "NSX_VPC"},
            "storage": {
                "ephemeral_storage_policy": ids.policies[enable.storage.ephemeral],
                "image_storage_policy": ids.policies[enable.storage.images],
            },
            **({"images": library} if library else {}),
        },
    }


def _management(management: Management, spec: Spec, ids: Ids) -> Body:
    static: Body = {"dhcp_enabled": True}
    if management.addresses and management.gateway:
        static = _static(management.gateway, _assigned("NODE", addresses(management.addresses)))
    search = spec.dns.search or ()
    return {
        "backing": {"backing": "NETWORK", "network": ids.networks[management.network]},
        "ip_management": static,
        **_services(spec.dns.control_plane, search, spec.ntp),
    }


def _workloads(enable: Enable, spec: Spec, ids: Ids) -> Body:
    services = ipaddress.ip_network(enable.services)
    inner = _assigned("SERVICE", {"address": str(services.network_address), "count": services.num_addresses})
    if enable.vds:
        machines = _assigned("NODE", addresses(enable.vds.addresses))
        found = {
            "network": enable.vds.name,
            "network_type": "VSPHERE",
            "vsphere": {"dvpg": ids.networks[enable.vds.port_group]},
            "ip_management": _static(enable.vds.gateway, machines, inner),
        }
    else:
        assert enable.vpc is not None
        found = {
            "network_type": "NSX_VPC",
            "nsx_vpc": _vpc(enable.vpc),
            "ip_management": {"dhcp_enabled": False, "ip_assignments": [inner]},
        }
    return {**found, **_services(spec.dns.workloads, (), None)}


def _vpc(vpc: Vpc) -> Body:
    paths = {"nsx_project": vpc.project, "vpc_connectivity_profile": vpc.connectivity_profile}
    return {
        "default_private_cidrs": [cidr(each) for each in vpc.private],
        **{name: path for name, path in paths.items() if path is not None},
    }


def _edge(vds: Vds, ids: Ids) -> Body:
    given = {"load_balancer_address_ranges": [addresses(vds.services)]} if vds.services else {}
    if vds.haproxy:
        servers = [server(each) for each in vds.haproxy.servers]
        return {**given, "provider": "HAPROXY", "haproxy": {"servers": servers, **account(vds.haproxy)}}
    if vds.avi:
        cloud = {"cloud_name": vds.avi.cloud} if vds.avi.cloud else {}
        avi = {"server": server(vds.avi.server), **account(vds.avi), **cloud}
        return {"provider": "NSX_ADVANCED", "nsx_advanced": avi}
    assert vds.foundation is not None
    target = _target(vds.foundation, ids)
    return {
        **given,
        "provider": "VSPHERE_FOUNDATION",
        "foundation": {"deployment_target": target} if target else {},
    }


def _target(foundation: Foundation, ids: Ids) -> dict[str, str]:
    fields = {
        "deployment_size": foundation.size and foundation.size.upper(),
        "availability": foundation.availability and foundation.availability.upper(),
        "storage_policy": ids.policies[foundation.storage] if foundation.storage else None,
    }
    return {name: value for name, value in fields.items() if value}


def _static(gateway: str, *assigned: Body) -> Body:
    return {"dhcp_enabled": False, "gateway_address": gateway, "ip_assignments": list(assigned)}


def _assigned(assignee: str, addresses: Body) -> Body:
    return {"assignee": assignee, "ranges": [addresses]}


def _services(servers: tuple[str, ...] | None, search: tuple[str, ...], ntp: tuple[str, ...] | None) -> Body:
    dns = (
        {"dns": {"servers": list(servers or ()), "search_domains": list(search)}} if servers or search else {}
    )
    time = {"ntp": {"servers": list(ntp)}} if ntp else {}
    return {"services": {**dns, **time}} if dns or time else {}
