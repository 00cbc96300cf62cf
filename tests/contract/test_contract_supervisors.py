"""Supervisors: enabled, read, changed, disabled; and the notes on their clusters."""

from __future__ import annotations

from typing import Any

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter, zones
from bfinfra.backends.vcenter.policies import StoragePolicies
from bfinfra.backends.vcenter.supervisors import Supervisors
from bfinfra.model.errors import Exists

NONE = "vcsim: a supervisor can't be enabled, changed or disabled"
NOTE = "bfinfra.contract.cluster"


def import_spec(client: VCenter) -> dict[str, Any]:
    """Networking by a distributed switch, as short as can be; the port group's kind is not looked at."""
    inventory, policy = client.inventory.read(), StoragePolicies(client.session, client.rest).list()[0].id
    network = inventory.networks[0].moid
    here = [{"address": "10.6.0.100", "count": 20}]
    account = {"username": "u", "password": "p", "certificate_authority_chain": "pem"}
    primary = {
        "portgroup": network,
        "address_ranges": here,
        "gateway": "10.6.0.1",
        "subnet_mask": "255.255.255.0",
    }
    return {
        "size_hint": "TINY",
        "service_cidr": {"address": "10.96.0.0", "prefix": 23},
        "network_provider": "VSPHERE_NETWORK",
        "master_management_network": {"network": network, "mode": "DHCP"},
        "master_storage_policy": policy,
        "ephemeral_storage_policy": policy,
        "image_storage": {"storage_policy": policy},
        "workload_networks_spec": {
            "supervisor_primary_workload_network": {
                "network": "primary",
                "network_provider": "VSPHERE_NETWORK",
                "vsphere_network": primary,
            }
        },
        "load_balancer_config_spec": {
            "id": "primary",
            "provider": "HA_PROXY",
            "address_ranges": here,
            "ha_proxy_config_create_spec": {"servers": [{"host": "10.6.0.2", "port": 5556}], **account},
        },
    }


@call(
    "supervisors.enable",
    "supervisors.read",
    "supervisors.update",
    "supervisors.disable",
    case="a life; disabled twice",
)
@lacks(NONE)
def test_a_supervisor_is_enabled_changed_and_disabled(vcenter: VCenterSide, account: Account) -> None:
    client = vcenter.open()
    supervisors, (cluster, _) = (
        Supervisors(client.rest),
        client.cluster_notes.read(NOTE, everyone=True)["DC0_C0"],
    )
    assert supervisors.read([cluster]) == {}
    supervisors.enable(cluster, import_spec(client))
    vcenter.closing.append(lambda: supervisors.disable(cluster))
    found = vcenter.until(
        lambda: next(
            (each for each in supervisors.read([cluster]).values() if each.kubernetes == "READY"), None
        )
    )
    assert (found.status, found.endpoint, found.info["size_hint"]) == ("RUNNING", "10.6.0.100", "TINY")
    with account.refused(Exists):
        supervisors.enable(cluster, import_spec(client))
    supervisors.update(cluster, {"master_NTP_servers": ["ntp"]})
    assert supervisors.read([cluster])[cluster].info["master_NTP_servers"] == ["ntp"]
    supervisors.disable(cluster)
    vcenter.until(lambda: not supervisors.read([cluster]))
    supervisors.disable(cluster)


def of_9(client: VCenter, **more: Any) -> dict[str, Any]:
    """The same by the API of supervisors, with the Foundation load balancer."""
    inventory, policy = client.inventory.read(), StoragePolicies(client.session, client.rest).list()[0].id
    network = inventory.networks[0].moid
    assigned = [
        {"assignee": "NODE", "ranges": [{"address": "10.6.0.10", "count": 20}]},
        {"assignee": "SERVICE", "ranges": [{"address": "10.96.0.0", "count": 512}]},
    ]
    inside = {"dhcp_enabled": False, "gateway_address": "10.6.0.1/24", "ip_assignments": assigned}
    return {
        "name": "of-9",
        "control_plane": {
            "network": {
                "backing": {"backing": "NETWORK", "network": network},
                "ip_management": {"dhcp_enabled": True},
            },
            "storage_policy": policy,
        },
        "workloads": {
            "network": {
                "network": "primary",
                "network_type": "VSPHERE",
                "vsphere": {"dvpg": network},
                "ip_management": inside,
            },
            "edge": {
                "provider": "VSPHERE_FOUNDATION",
                "load_balancer_address_ranges": [{"address": "10.6.0.100", "count": 20}],
                "foundation": {},
            },
        },
        **more,
    }


@call("supervisors.enable_on_cluster", "supervisors.enable_on_zones", case="on a cluster, and in its zone")
@lacks(NONE)
def test_a_supervisor_is_enabled_by_the_api_of_supervisors(vcenter: VCenterSide, account: Account) -> None:
    client = vcenter.open()
    supervisors, (cluster, _) = (
        Supervisors(client.rest),
        client.cluster_notes.read(NOTE, everyone=True)["DC0_C0"],
    )
    assert zones.all_zones(client.rest)["rack-1"] == (cluster,)
    vcenter.closing.append(lambda: supervisors.disable(cluster))
    for enable in (
        lambda: supervisors.enable_on_cluster(cluster, of_9(client)),
        lambda: supervisors.enable_on_zones(of_9(client, zones=["rack-1"])),
    ):
        enable()
        assert supervisors.read([cluster])[cluster].info["size_hint"] == "SMALL"
        with account.refused(Exists):
            enable()
        supervisors.disable(cluster)
        vcenter.until(lambda: not supervisors.read([cluster]))


@call("supervisors.namespaces", case="those of one cluster, with their descriptions")
def test_namespaces_of_a_cluster_are_listed(vcenter: VCenterSide) -> None:
    client = vcenter.open()
    clusters = client.cluster_notes.read(NOTE, everyone=True)
    supervisors = Supervisors(client.rest)
    assert supervisors.namespaces(clusters["DC0_C0"][0]) == {}


@call("cluster_notes.noted", case="attributes that begin so, on all clusters, and none where there is none")
def test_notes_on_clusters_are_found_by_how_they_begin(vcenter: VCenterSide) -> None:
    notes = vcenter.open().cluster_notes
    assert notes.noted(NOTE, everyone=False) == {}
    found = notes.noted(NOTE, everyone=True)[vcenter.cluster]
    assert found.notes == {}
    notes.set(found.moid, f"{NOTE}.x", "1")
    assert notes.noted(NOTE, everyone=False)[vcenter.cluster].notes == {f"{NOTE}.x": "1"}
    notes.drop(found.moid, f"{NOTE}.x")


@call("cluster_notes.read", "cluster_notes.set", "cluster_notes.drop", case="none, one, two, none again")
def test_a_note_on_a_cluster_comes_and_goes(vcenter: VCenterSide) -> None:
    notes = vcenter.open().cluster_notes
    assert notes.read(NOTE, everyone=False) == {}
    found = notes.read(NOTE, everyone=True)
    (one, two), texts = sorted(moid for moid, _ in found.values()), {text for _, text in found.values()}
    assert texts == {""}
    for moid in (one, two):
        notes.set(moid, NOTE, f"on {moid}")
    assert dict(notes.read(NOTE, everyone=False).values()) == {one: f"on {one}", two: f"on {two}"}
    notes.drop(one, NOTE)
    assert dict(notes.read(NOTE, everyone=False).values()) == {one: "", two: f"on {two}"}
    notes.drop(two, NOTE)
    assert notes.read(NOTE, everyone=False) == {}
