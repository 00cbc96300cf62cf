"""Enabling, changing and disabling Supervisors. Source: com.vmware.vcenter.namespace_management.Clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.settling import Configuring, configured
from bfinfra.sandbox.rest.shapes import check
from bfinfra.sandbox.rest.supervisors import PATH
from bfinfra.sandbox.rest.zones import home, zoned

if TYPE_CHECKING:
    from bfinfra.sandbox.rest.state import Info, RestState

PRIVILEGE = "Namespaces.Manage"
CIDR = {"address": str, "prefix": int}
RANGE = {"address": str, "count": int}
SERVER = {"host": str, "port": int}
ACCOUNT = {"username": str, "password": str, "certificate_authority_chain": str}
SETTABLE = {
    "size_hint?": ("TINY", "SMALL", "MEDIUM", "LARGE"),
    "master_DNS?": [str],
    "worker_DNS?": [str],
    "master_DNS_search_domains?": [str],
    "master_NTP_servers?": [str],
    "workload_ntp_servers?": [str],
    "login_banner?": str,
    "default_kubernetes_service_content_library?": str,
    "master_storage_policy?": str,
    "ephemeral_storage_policy?": str,
    "image_storage?": {"storage_policy": str},
    "Master_DNS_names?": [str],
    "count?": int,
}
NSX = {
    "pod_cidrs": [CIDR],
    "ingress_cidrs": [CIDR],
    "egress_cidrs": [CIDR],
    "cluster_distributed_switch?": str,
    "nsx_edge_cluster?": str,
    "nsx_tier0_gateway?": str,
    "namespace_subnet_prefix?": int,
    "routed_mode?": bool,
}
VSPHERE = {
    "portgroup": str,
    "ip_assignment_mode?": ("STATICRANGE", "DHCP"),
    "address_ranges": [RANGE],
    "gateway": str,
    "subnet_mask": str,
}
NETWORK = {"network": str, "network_provider": ("VSPHERE_NETWORK",), "vsphere_network?": VSPHERE}
BALANCER = {
    "id": str,
    "provider": ("HA_PROXY", "AVI"),
    "address_ranges": [RANGE],
    "ha_proxy_config_create_spec?": {"servers": [SERVER], **ACCOUNT},
    "avi_config_create_spec?": {"server": SERVER, **ACCOUNT, "cloud_name?": str},
}
MANAGEMENT = {
    "network": str,
    "mode": ("STATICRANGE", "DHCP"),
    "floating_IP?": str,
    "address_range?": {"starting_address": str, "address_count": int, "subnet_mask": str, "gateway": str},
}
WANTED = ("size_hint", "master_storage_policy", "ephemeral_storage_policy", "image_storage")
ENABLE = {
    **{name: each for name, each in SETTABLE.items() if name.removesuffix("?") not in WANTED},
    **{name: SETTABLE[f"{name}?"] for name in WANTED},
    "service_cidr": CIDR,
    "network_provider": ("NSXT_CONTAINER_PLUGIN", "VSPHERE_NETWORK"),
    "master_management_network": MANAGEMENT,
    "ncp_cluster_network_spec?": NSX,
    "workload_networks_spec?": {"supervisor_primary_workload_network": NETWORK, "network_list?": [NETWORK]},
    "load_balancer_config_spec?": BALANCER,
}
MORE = {"pod_cidrs?": [CIDR], "ingress_cidrs?": [CIDR], "egress_cidrs?": [CIDR]}
UPDATE = {
    **SETTABLE,
    "network_provider?": ("NSXT_CONTAINER_PLUGIN", "VSPHERE_NETWORK"),
    "ncp_cluster_network_spec?": MORE,
}
UPDATE_9 = {
    "network_provider?": ("NSXT_CONTAINER_PLUGIN", "VSPHERE_NETWORK", "NSX_VPC"),
    "vpc_cluster_network_spec?": {"default_private_cidrs?": [CIDR]},
}
"""What came with 9.0."""
GUESTS = 40  # addresses for guest clusters, at most
SUPERVISOR = Configuring(
    lambda state: state.enabled,
    "ConfigureSupervisor",
    "vcenter.wcp.systemvm.failed",
    lambda state, cluster: state.notify_supervisor(cluster),
    {"kubernetes_status": "READY"},
    {"kubernetes_status": "ERROR"},
)


@route("POST", PATH + "/{cluster}", "enable")
def enable(call: Call, cluster: str) -> None:
    """Start to enable a supervisor; its status is CONFIGURING until it runs."""
    call.need(PRIVILEGE, cluster, cluster)
    spec = check(call.spec, ENABLE)
    with call.state.lock:
        if cluster not in call.inventory.objects or not call.inventory.objects[cluster].is_a(
            vim.ClusterComputeResource
        ):
            raise missing("The cluster", cluster)
        if home(call.state, cluster) in call.state.supervisors():
            raise Refused("ALREADY_EXISTS", "Workload management is enabled on this cluster.")
        begin(call, cluster, spec)
    resume(call.state, cluster)


def begin(call: Call, cluster: str, spec: Info, **more: object) -> None:
    """Note the supervisor as CONFIGURING, without the passwords; hold the lock. INVALID_ARGUMENT for what
    isn't there.
    """
    _check(call, spec)
    balancer = spec.get("load_balancer_config_spec", {})
    for secret in ("ha_proxy_config_create_spec", "avi_config_create_spec"):
        balancer.get(secret, {}).pop("password", None)
    call.state.enabled[cluster] = {
        "spec": spec,
        "config_status": "CONFIGURING",
        "kubernetes_status": "WARNING",
        "messages": [],
        **more,
    }


@route("PATCH", PATH + "/{cluster}")
def update(call: Call, cluster: str) -> None:
    """Change what is given."""
    call.need(PRIVILEGE, cluster, cluster)
    spec = check(call.spec, {**UPDATE, **(UPDATE_9 if zoned(call) else {})})
    with call.state.lock:
        cluster = home(call.state, cluster)
        if cluster not in call.state.supervisors():
            raise missing("The Supervisor on cluster", cluster)
        more, provider = spec.pop("ncp_cluster_network_spec", None), spec.pop("network_provider", None)
        private = spec.pop("vpc_cluster_network_spec", None)
        _check(call, spec)
        if more is not None:
            _add_networks(call.state, cluster, provider, more)
        if private is not None:
            _set_private(call.state, cluster, provider, private)
        call.state.settings[cluster] = {**call.state.settings.get(cluster, {}), **spec}


@route("POST", PATH + "/{cluster}", "disable")
def disable(call: Call, cluster: str) -> None:
    """Remove it with all that is on it; its status is REMOVING until then."""
    call.need(PRIVILEGE, cluster, cluster)
    with call.state.lock:
        cluster = home(call.state, cluster)
        if cluster not in call.state.supervisors():
            raise missing("The Supervisor on cluster", cluster)
        if cluster not in call.state.enabled:
            raise Refused(
                "UNSUPPORTED", "The sandbox can't disable a Supervisor that its world file describes."
            )
        call.state.enabled[cluster]["config_status"] = "REMOVING"
    resume(call.state, cluster)


def resume(state: RestState, cluster: str) -> None:
    """Continue with one that is not ready; call the hooks of one that runs."""
    status = state.enabled[cluster]["config_status"]
    if status == "CONFIGURING":
        state.clock.after(state.world.durations["supervisor"], lambda: configured(state, cluster, SUPERVISOR))
    elif status == "REMOVING":
        state.clock.after(state.world.durations["delete"], lambda: _removed(state, cluster))
    elif status == "RUNNING":
        state.notify_supervisor(cluster)


def _check(call: Call, spec: Info) -> None:
    """INVALID_ARGUMENT for what isn't there, and for networks that don't belong to the provider."""
    policies = [spec[name] for name in ("master_storage_policy", "ephemeral_storage_policy") if name in spec]
    policies += [spec["image_storage"]["storage_policy"]] if "image_storage" in spec else []
    library = spec.get("default_kubernetes_service_content_library")
    nsx, vds = spec.get("ncp_cluster_network_spec"), spec.get("workload_networks_spec")
    networks = [spec["master_management_network"]["network"]] if "master_management_network" in spec else []
    networks += [vds["supervisor_primary_workload_network"]["vsphere_network"]["portgroup"]] if vds else []
    switches = [each.props["uuid"] for each in call.inventory.of(vim.DistributedVirtualSwitch)]
    named = (
        ("storage policy", policies, call.state.policies()),
        ("content library", [library] if library else [], call.state.libraries),
        ("network", networks, call.inventory.objects),
        (
            "distributed switch",
            [nsx["cluster_distributed_switch"]] if nsx and "cluster_distributed_switch" in nsx else [],
            switches,
        ),
    )
    for what, names, there in named:
        if unknown := [name for name in names if name not in there]:
            raise Refused("INVALID_ARGUMENT", f"spec: there is no {what} {', '.join(unknown)}")
    if "network_provider" in spec and bool(nsx) != (spec["network_provider"] == "NSXT_CONTAINER_PLUGIN"):
        raise Refused(
            "INVALID_ARGUMENT",
            (
                "spec.ncp_cluster_network_spec: is for NSXT_CONTAINER_PLUGIN, and "
                f"{spec['network_provider']} is asked for"
            ),
        )
    provider = spec.get("network_provider")
    if provider == "VSPHERE_NETWORK" and not (vds and spec.get("load_balancer_config_spec")):
        raise Refused(
            "INVALID_ARGUMENT",
            "spec: VSPHERE_NETWORK wants workload_networks_spec and load_balancer_config_spec",
        )
    balancer = spec.get("load_balancer_config_spec") or {}
    if balancer.get("provider") == "HA_PROXY" and not balancer["address_ranges"]:
        raise Refused(
            "INVALID_ARGUMENT", "spec.load_balancer_config_spec.address_ranges: HA_PROXY wants addresses"
        )


def _add_networks(state: RestState, cluster: str, provider: str | None, more: Info) -> None:
    """INVALID_ARGUMENT where one would go: networks can only be added."""
    made = state.enabled.get(cluster)
    if made is None:
        raise Refused(
            "UNSUPPORTED",
            "The sandbox can't change the networks of a Supervisor that its world file describes.",
        )
    now = made["spec"].get("ncp_cluster_network_spec")
    if now is None or provider != "NSXT_CONTAINER_PLUGIN":
        raise Refused(
            "INVALID_ARGUMENT",
            (
                "spec.ncp_cluster_network_spec: is for a Supervisor with NSXT_CONTAINER_PLUGIN, and asks "
                "for network_provider"
            ),
        )
    if gone := [name for name, nets in more.items() if any(net not in nets for net in now[name])]:
        raise Refused(
            "INVALID_ARGUMENT", f"spec.ncp_cluster_network_spec.{gone[0]}: networks can only be added"
        )
    now.update(more)


def _set_private(state: RestState, cluster: str, provider: str | None, more: Info) -> None:
    """Set the networks from which new namespaces get private subnets."""
    now = state.enabled.get(cluster, {}).get("spec", {}).get("vpc_network")
    if now is None or provider != "NSX_VPC":
        raise Refused(
            "INVALID_ARGUMENT",
            "spec.vpc_cluster_network_spec: is for a Supervisor with NSX_VPC, and asks for network_provider",
        )
    now.update(more)


def _removed(state: RestState, cluster: str) -> None:
    with state.lock:
        if state.enabled.get(cluster, {}).get("config_status") != "REMOVING":
            return
        gone = [name for name, info in state.namespaces.items() if info["cluster"] == cluster]
        for name in gone:
            del state.namespaces[name]
        del state.enabled[cluster]
        state.settings.pop(cluster, None)
    for name in gone:
        state.notify(name)
    state.notify_supervisor(cluster)
