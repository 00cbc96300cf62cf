"""Every answer of the REST API fits the official SDK's type metadata."""

from __future__ import annotations

import pytest
from asking import Rest
from judge import (
    cis_client,
    content_client,
    misfits,
    namespace_management_client,
    namespaces_client,
    storage_client,
    user_client,
    vcenter_client,
)
from namespace_specs import made, supervisor

LISTS = {
    "/api/vcenter/cluster": vcenter_client.Cluster.Summary,
    "/api/vcenter/host": vcenter_client.Host.Summary,
    "/api/vcenter/datacenter": vcenter_client.Datacenter.Summary,
    "/api/vcenter/datastore": vcenter_client.Datastore.Summary,
    "/api/vcenter/network": vcenter_client.Network.Summary,
    "/api/vcenter/folder": vcenter_client.Folder.Summary,
    "/api/vcenter/resource-pool": vcenter_client.ResourcePool.Summary,
    "/api/vcenter/storage/policies": storage_client.Policies.Summary,
    "/api/vcenter/namespace-management/clusters": namespace_management_client.Clusters.Summary,
    "/api/vcenter/namespace-management/virtual-machine-classes": namespace_management_client.VirtualMachineClasses.Info,
    "/api/vcenter/namespaces/instances": namespaces_client.Instances.Summary,
    "/api/vcenter/namespaces-user/namespaces": user_client.Instances.Summary,
}


@pytest.mark.parametrize("path", LISTS)
def test_lists_fit(path: str, rest: Rest) -> None:
    made(rest)
    found = rest.get(path)
    assert found
    assert [misfits(LISTS[path], each) for each in found] == [[]] * len(found)


def test_single_objects_fit(rest: Rest) -> None:
    info = made(rest)
    cluster, store = (
        rest.get("/api/vcenter/cluster")[0]["cluster"],
        rest.get("/api/vcenter/datastore")[0]["datastore"],
    )
    library = rest.get("/api/content/library")[0]
    for kind, value in (
        (namespaces_client.Instances.Info, info),
        (namespaces_client.ResourceQuotaOptionsV1, info["resource_spec"]),
        (namespaces_client.Instances.InfoV2, rest.get("/api/vcenter/namespaces/instances/v2/ns")),
        (namespaces_client.Instances.SummaryV2, rest.get("/api/vcenter/namespaces/instances/v2")[0]),
        (
            namespaces_client.Access.Info,
            rest.get("/api/vcenter/namespaces/instances/ns/access/small.test/devs?type=GROUP"),
        ),
        (
            namespace_management_client.Clusters.Info,
            rest.get(f"/api/vcenter/namespace-management/clusters/{supervisor(rest)}"),
        ),
        (
            namespace_management_client.VirtualMachineClasses.Info,
            rest.get("/api/vcenter/namespace-management/virtual-machine-classes/best-effort-small"),
        ),
        (vcenter_client.Cluster.Info, rest.get(f"/api/vcenter/cluster/{cluster}")),
        (vcenter_client.Datastore.Info, rest.get(f"/api/vcenter/datastore/{store}")),
        (content_client.LibraryModel, rest.get(f"/api/content/library/{library}")),
        (cis_client.Session.Info, rest.get("/api/session")),
    ):
        assert misfits(kind, value) == [], kind


def test_a_supervisor_reports_its_networks_and_its_banner(rest: Rest) -> None:
    info = rest.get(f"/api/vcenter/namespace-management/clusters/{supervisor(rest)}")
    assert (info["login_banner"], info["master_management_network"]["mode"]) == ("", "STATICRANGE")
    vds = info["network_provider"] == "VSPHERE_NETWORK"
    assert [name in info for name in ("workload_networks", "load_balancers", "ncp_cluster_network_info")] == [
        vds,
        vds,
        not vds,
    ]


def test_the_judge_sees_what_is_wrong() -> None:
    assert misfits(vcenter_client.Cluster.Info, {"name": 7, "colour": 1}) == [
        "$.colour: unknown",
        "$.resource_pool: missing",
        "$.name: 7 is no str",
    ]
