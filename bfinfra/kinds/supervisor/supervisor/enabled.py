"""Compares `enable` with a supervisor that runs: what differs, whether it can change, and the body that
changes it. Pure. A field that vCenter doesn't report (older releases, DHCP) counts as equal. Source:
Clusters.Info and UpdateSpec of com.vmware.vcenter.namespace_management (vmware-vcenter 9.1).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bfinfra.kinds.supervisor.supervisor.body import NSX, VPC, Ids, cidr, provider
from bfinfra.kinds.supervisor.supervisor.networking import Addresses, Enable, Vds
from bfinfra.model.compare import Change
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass

Info = Mapping[str, Any]
POLICIES = {
    "control_plane": "master_storage_policy",
    "ephemeral": "ephemeral_storage_policy",
    "images": "image_storage",
}
NETWORKS = {"pods": "pod_cidrs", "ingress": "ingress_cidrs", "egress": "egress_cidrs"}
"""Networks of NSX that can be added to. None can be removed."""
PRIVATE = "enable.vpc.private"
GOES = "vCenter sets it only when workload management is enabled"


@dataclass(frozen=True)
class Fixed:
    """A field that can't change: its dotted name, its live value, its value in the site."""

    field: str
    now: Any
    wanted: Any


def drift(enable: Enable, info: Info, ids: Ids, zones: Sequence[str] = ()) -> Iterator[Change]:
    """The differences that can be changed. Raises Refusal, naming the field, for one that can't.
    `zones`: those across which it runs, where the site names some.
    """
    fixed = (
        *_fixed(enable, info, ids),
        *([Fixed("zones", sorted(zones), sorted(enable.zones))] if enable.zones else []),
    )
    if wrong := next((each for each in fixed if each.now is not None and each.now != each.wanted), None):
        raise Refusal(
            f"its supervisor has {_text(wrong.now)}, not {_text(wrong.wanted)}",
            field=f"enable.{wrong.field}",
            why=GOES,
            next="write that",
        )
    names = {identity: name for name, identity in ids.policies.items()}
    for field, key in POLICIES.items():
        now, wanted = _policy(info.get(key)), getattr(enable.storage, field)
        if now and names.get(now, now) != wanted:
            yield Change(f"enable.storage.{field}", names.get(now, now), wanted)
    yield from _added(enable, info)
    if enable.vpc:
        private = (info.get("vpc_network") or {}).get("default_private_cidrs")
        there, given = sorted(filter(None, map(_network, private or ()))), sorted(enable.vpc.private)
        if there and there != given:
            yield Change(PRIVATE, there, given)


def body(enable: Enable, fields: Iterable[str], ids: Ids) -> dict[str, Any]:
    """The body that changes these dotted fields. Raises KeyError for a policy that doesn't exist."""
    asked, found = set(fields), dict[str, Any]()
    for field, key in POLICIES.items():
        if f"enable.storage.{field}" in asked:
            policy = ids.policies[getattr(enable.storage, field)]
            found[key] = {"storage_policy": policy} if key == "image_storage" else policy
    more = {
        key: [cidr(each) for each in getattr(enable.nsx, field)]
        for field, key in NETWORKS.items()
        if enable.nsx and f"enable.nsx.{field}" in asked
    }
    if more:
        found |= {"network_provider": NSX, "ncp_cluster_network_spec": more}
    if enable.vpc and PRIVATE in asked:
        private = {"default_private_cidrs": [cidr(each) for each in enable.vpc.private]}
        found |= {"network_provider": VPC, "vpc_cluster_network_spec": private}
    return found


def _added(enable: Enable, info: Info) -> Iterator[Change]:
    reported = info.get("ncp_cluster_network_info") or {}
    for field, key in NETWORKS.items() if enable.nsx else ():
        now, wanted = (
            sorted(filter(None, map(_network, reported.get(key) or ()))),
            sorted(getattr(enable.nsx, field)),
        )
        if now and (gone := sorted(set(now) - set(wanted))):
            raise Refusal(
                f"its supervisor has {', '.join(gone)}",
                field=f"enable.nsx.{field}",
                why="networks can be added, but not removed",
                next="write it as well",
            )
        if now and now != wanted:
            yield Change(f"enable.nsx.{field}", now, wanted)


def _fixed(enable: Enable, info: Info, ids: Ids) -> Iterator[Fixed]:
    """All fields that stay as they were enabled, as far as vCenter reports them."""
    chosen = "nsx" if enable.nsx else "vpc" if enable.vpc else "vds"
    yield Fixed(chosen, info.get("network_provider"), provider(enable))
    yield Fixed("services", _network(info.get("service_cidr")), enable.services)
    yield from _management(enable, info.get("master_management_network") or {}, ids.networks)
    if enable.nsx:
        reported = info.get("ncp_cluster_network_info") or {}
        if now := _called(reported.get("cluster_distributed_switch"), enable.nsx.switch, ids.switches):
            yield Fixed("nsx.switch", now, enable.nsx.switch)
        yield Fixed("nsx.edge_cluster", reported.get("nsx_edge_cluster"), enable.nsx.edge_cluster)
        yield Fixed(
            "nsx.tier0", reported.get("nsx_tier0_gateway") if enable.nsx.tier0 else None, enable.nsx.tier0
        )
    if enable.vds:
        yield from _workloads(enable.vds, info, ids.networks)
    if enable.vpc:
        clouds = info.get("vpc_network") or {}
        for field, key, wanted in (
            ("project", "nsx_project", enable.vpc.project),
            ("connectivity_profile", "vpc_connectivity_profile", enable.vpc.connectivity_profile),
        ):
            yield Fixed(f"vpc.{field}", clouds.get(key) if wanted else None, wanted)


def _called(identity: object, text: str, ids: Mapping[str, str]) -> str:
    """What the site calls the object with this id: the `text` that it writes, if that leads there; "" if
    nothing does.
    """
    if ids.get(text) == identity:
        return text
    return next((name for name, each in ids.items() if each == identity), "")


def _management(enable: Enable, reported: Info, networks: Mapping[str, str]) -> Iterator[Fixed]:
    if now := _called(reported.get("network"), enable.management.network, networks):
        yield Fixed("management.network", now, enable.management.network)
    if reported.get("mode"):
        yield Fixed(
            "management.addresses", reported["mode"], "STATICRANGE" if enable.management.addresses else "DHCP"
        )
    if (row := reported.get("address_range")) and enable.management.addresses and enable.management.gateway:
        yield Fixed(
            "management.addresses",
            _row(row.get("starting_address"), row.get("address_count")),
            _plain(enable.management.addresses),
        )
        yield Fixed("management.gateway", _gateway(row), enable.management.gateway)


def _workloads(vds: Vds, info: Info, networks: Mapping[str, str]) -> Iterator[Fixed]:
    primary = (info.get("workload_networks") or {}).get("supervisor_primary_workload_network") or {}
    network = primary.get("vsphere_network") or {}
    yield Fixed("vds.name", primary.get("network"), vds.name)
    if now := _called(network.get("portgroup"), vds.port_group, networks):
        yield Fixed("vds.port_group", now, vds.port_group)
    if network:
        yield Fixed("vds.gateway", _gateway(network), vds.gateway)
        yield Fixed("vds.addresses", _rows(network.get("address_ranges")), _plain(vds.addresses))
    balancer: Info = next(iter(info.get("load_balancers") or ()), {})
    if vds.services and not vds.foundation:  # vCenter doesn't report Avi's own addresses
        yield Fixed("vds.services", _rows(balancer.get("address_ranges")), _plain(vds.services))
    for name, key, wanted in (("haproxy", "ha_proxy_info", vds.haproxy), ("avi", "avi_info", vds.avi)):
        if wanted and (reported := balancer.get(key)):
            yield Fixed(f"vds.{name}.username", reported.get("username"), wanted.username)
    if vds.haproxy and (reported := balancer.get("ha_proxy_info")):
        yield Fixed(
            "vds.haproxy.servers",
            sorted(map(_server, reported.get("servers") or ())),
            sorted(vds.haproxy.servers),
        )
    if vds.avi and (reported := balancer.get("avi_info")):
        yield Fixed("vds.avi.server", _server(reported.get("server") or {}), vds.avi.server)


def _policy(reported: object) -> str:
    return str((reported.get("storage_policy") if isinstance(reported, Mapping) else reported) or "")


def _network(reported: object) -> str | None:
    return f"{reported.get('address')}/{reported.get('prefix')}" if isinstance(reported, Mapping) else None


def _gateway(reported: Info) -> str | None:
    """A gateway with the prefix of its network."""
    try:
        return str(ipaddress.ip_interface(f"{reported['gateway']}/{reported['subnet_mask']}"))
    except (KeyError, ValueError):
        return None


def _plain(addresses: Addresses) -> str:
    return _row(addresses.first, addresses.count)


def _row(first: object, count: object) -> str:
    return f"{count} addresses from {first}"


def _rows(reported: Any) -> str | None:
    return ", ".join(_row(each.get("address"), each.get("count")) for each in reported) if reported else None


def _server(reported: Info) -> str:
    return f"{reported.get('host')}:{reported.get('port')}"


def _text(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
