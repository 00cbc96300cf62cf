"""Clusters of the vSphere Kubernetes Service in the sandbox: what admission rewrites, pools that somebody else
counts, upgrades over minor versions, drift by its writer.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from kinds.unmanaged import Entry, Look, config_map, kube_object
from rights.given import guest, supervisor
from waiting import until

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

CLUSTERS = "/apis/cluster.x-k8s.io/v1beta2/namespaces/team-a/clusters"
POOLS = "/apis/cluster.x-k8s.io/v1beta2/namespaces/team-a/machinedeployments"
ADDRESS = "vks_cluster/ml-01"


class Site:
    """The kind's example, to be changed."""

    def __init__(self, folder: Path, sandbox: Running) -> None:
        self.path, self._sandbox = folder / "site.yaml", sandbox
        self.given: dict[str, Any] = yaml.safe_load(EXAMPLES["vks_cluster"].read_text())

    @property
    def cluster(self) -> dict[str, Any]:
        return self.given["vks_cluster"]["ml-01"]

    def write(self, **changes: Any) -> Site:
        self.cluster.update(changes)
        self.path.write_text(yaml.safe_dump(self.given))
        return self

    def applied(self) -> Site:
        done = apply(self.write().path, self._sandbox)
        assert made(done), endings(done)
        return self

    def steps(self) -> list[str]:
        found = plan(self.write().path, self._sandbox)
        assert not found.problems, found.problems
        return [step.title() for item in found.pending for step in item.steps]

    def drifted(self) -> dict[str, str]:
        return {each.field: each.by for each in drift(self.write().path, self._sandbox).found}

    def refused(self) -> str:
        (problem,) = plan(self.write().path, self._sandbox).problems
        return str(problem)


@pytest.fixture
def site(sandbox: Running, tmp_path: Path) -> Site:
    return Site(tmp_path, sandbox)


def live(sandbox: Running) -> dict[str, Any]:
    found: dict[str, Any] = supervisor(sandbox).call("GET", f"{CLUSTERS}/ml-01")
    return found


def nodes(sandbox: Running) -> dict[str, str]:
    listed = guest(sandbox, "team-a", "ml-01").call("GET", "/api/v1/nodes")["items"]
    return {each["metadata"]["name"]: each["status"]["nodeInfo"]["kubeletVersion"] for each in listed}


def somebody_writes(sandbox: Running, topology: dict[str, Any], by: str = "kubectl-edit") -> None:
    supervisor(sandbox).call("PATCH", f"{CLUSTERS}/ml-01?fieldManager={by}", {"spec": {"topology": topology}})


def test_what_admission_rewrites_is_noted_and_no_drift(site, sandbox):
    site.applied()
    topology = live(sandbox)["spec"]["topology"]
    assert topology["classRef"] == {"name": "builtin-generic-v3.7.0", "namespace": "vmware-system-vks-public"}
    assert topology["version"] == "v1.34.2+vmware.2"
    assert "kubernetes" in [each["name"] for each in topology["variables"]]
    assert site.steps() == []
    assert site.drifted() == {}


def test_a_later_write_sends_the_version_that_it_has_though_the_file_has_its_beginning(site, sandbox):
    site.write(version="v1.34.1").applied()
    assert live(sandbox)["spec"]["topology"]["version"] == "v1.34.1+vmware.1"
    site.write(version="v1.34").applied()
    site.cluster["workers"]["cpu"]["count"] = 2
    site.applied()
    assert live(sandbox)["spec"]["topology"]["version"] == "v1.34.1+vmware.1"
    assert len(nodes(sandbox)) == 3


def test_the_count_of_an_autoscaled_pool_is_nobodys(site, sandbox):
    site.applied()
    assert len(nodes(sandbox)) == 2, "none is owed at min 0"
    supervisor(sandbox).call("PATCH", f"{POOLS}/ml-01-gpu", {"spec": {"replicas": 2}})
    assert until(lambda: len(nodes(sandbox)) == 4)
    assert site.drifted() == {}
    assert site.steps() == []
    site.cluster["workers"]["cpu"]["labels"] = {"team": "a"}
    site.applied()
    assert len([name for name in nodes(sandbox) if "-gpu-" in name]) == 2, "an apply leaves them as they are"


def test_nodes_of_a_pool_have_its_taints_and_labels(site, sandbox):
    site.cluster["workers"]["cpu"] |= {"labels": {"team": "a"}, "taints": ["team=a:NoExecute"]}
    site.applied()
    (node,) = [
        each
        for each in guest(sandbox, "team-a", "ml-01").call("GET", "/api/v1/nodes")["items"]
        if "-cpu-" in each["metadata"]["name"]
    ]
    assert node["metadata"]["labels"]["team"] == "a"
    assert node["spec"]["taints"] == [{"key": "team", "value": "a", "effect": "NoExecute"}]


def test_a_version_goes_up_minor_by_minor_each_through_before_the_next(site, sandbox):
    site.write(version="v1.33.3").applied()
    site.write(version="v1.35")
    assert site.steps() == [
        (
            "update cluster ml-01 in team-a to v1.34.2+vmware.2 on its way; its nodes are replaced one "
            "after the other"
        ),
        "update cluster ml-01 in team-a; its nodes are replaced one after the other",
    ]
    site.applied()
    assert live(sandbox)["spec"]["topology"]["version"] == "v1.35.0+vmware.1"
    assert set(nodes(sandbox).values()) == {"v1.35.0+vmware.1"}
    assert site.steps() == []


def test_a_cluster_can_not_go_back(site):
    site.applied()
    site.write(version="v1.33")
    assert "v1.33 is older" in site.refused()


def test_what_others_change_is_drift_by_their_name_and_is_mended(site, sandbox):
    site.applied()
    pools = live(sandbox)["spec"]["topology"]["workers"]["machineDeployments"]
    changed = copy.deepcopy(pools)
    changed[0]["replicas"] = 2
    changed[1]["metadata"]["annotations"]["cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"] = "9"
    changed[1]["rollout"]["strategy"]["rollingUpdate"] = {"maxSurge": 1, "maxUnavailable": 0}
    somebody_writes(sandbox, {"workers": {"machineDeployments": changed}})
    assert site.drifted() == {
        "workers.cpu.count": "kubectl-edit",
        "workers.gpu.autoscale.max": "kubectl-edit",
        "workers.gpu.rollout.max_surge": "kubectl-edit",
        "workers.gpu.rollout.max_unavailable": "kubectl-edit",
    }
    site.applied()
    assert live(sandbox)["spec"]["topology"]["workers"]["machineDeployments"] == pools
    assert site.drifted() == {}


def test_an_override_that_somebody_puts_on_a_pool_is_drift(site, sandbox):
    site.applied()
    changed = live(sandbox)["spec"]["topology"]["workers"]["machineDeployments"]
    changed[0].setdefault("variables", {}).setdefault("overrides", []).append(
        {"name": "storageClass", "value": "gold"}
    )
    somebody_writes(sandbox, {"workers": {"machineDeployments": changed}})
    assert site.drifted() == {"workers.cpu.storage_class": "kubectl-edit"}


def test_a_pool_of_somebody_else_stays(site, sandbox):
    site.applied()
    pools = live(sandbox)["spec"]["topology"]["workers"]["machineDeployments"]
    theirs = {"class": "node-pool", "name": "theirs", "replicas": 1}
    somebody_writes(sandbox, {"workers": {"machineDeployments": [*pools, theirs]}})
    assert site.drifted() == {}
    site.cluster["workers"]["cpu"]["count"] = 2
    site.applied()
    assert "theirs" in [
        each["name"] for each in live(sandbox)["spec"]["topology"]["workers"]["machineDeployments"]
    ]


def test_a_pool_that_leaves_the_file_goes_with_a_warning(site, sandbox):
    site.applied()
    del site.cluster["workers"]["gpu"]
    assert site.steps() == [
        "remove the node pool gpu of cluster ml-01 in team-a, with what is on its nodes alone"
    ]


def test_values_of_variables_are_sent_as_the_schema_wants_them_and_their_defaults_are_no_drift(site, sandbox):
    site.write(
        variables={
            "kubernetes": {
                "kubeletConfiguration": {"maxPods": 200},
                "certificateRotation": {"enabled": True},
            },
            "resourceConfiguration": {"systemReserved": {"automatic": False, "cpu": "1", "memory": "7Gi"}},
        }
    ).applied()
    values = {each["name"]: each["value"] for each in live(sandbox)["spec"]["topology"]["variables"]}
    assert values["kubernetes"] == {
        "kubeletConfiguration": {"maxPods": 200},
        "certificateRotation": {"enabled": True, "renewalDaysBeforeExpiry": 90},
    }
    assert values["resourceConfiguration"]["systemReserved"] == {
        "automatic": False,
        "cpu": "1",
        "memory": "7Gi",
    }
    assert site.drifted() == {}
    assert site.steps() == []


def test_without_a_spare_gpu_no_node_comes_before_one_goes(site, sandbox):
    site.cluster["workers"] = {"gpu": {"count": 1, "rollout": {"max_surge": 0, "max_unavailable": 1}}}
    site.applied()
    (pool,) = live(sandbox)["spec"]["topology"]["workers"]["machineDeployments"]
    assert pool["rollout"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }
    before = set(nodes(sandbox))
    site.cluster["workers"]["gpu"]["labels"] = {"team": "a"}
    site.applied()
    assert len(nodes(sandbox)) == 2
    assert len(set(nodes(sandbox)) - before) == 1


def test_a_written_class_that_is_newer_moves_the_cluster(site, sandbox):
    site.applied()
    site.write(cluster_class="builtin-generic-v3.7.0")
    assert site.steps() == ["update cluster ml-01 in team-a"], "it is of that class already"
    site.applied()
    assert site.steps() == []


def test_other_kinds_name_it_as_their_cluster(site, sandbox):
    site.given["namespace"] = {"training": {"cluster": "ml-01", "labels": {"team": "a"}}}
    site.applied()
    made_there = guest(sandbox, "team-a", "ml-01").call("GET", "/api/v1/namespaces/training")
    assert made_there["metadata"]["labels"]["team"] == "a"
    assert site.drifted() == {}


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    names = {"name": "builtin-generic-v3.6.0", "namespace": "vmware-system-vks-public"}
    values = [{"name": "vmClass", "value": "best-effort-small"}, {"name": "storageClass", "value": "gold"}]
    topology = {"classRef": names, "version": "v1.34", "controlPlane": {"replicas": 1}, "variables": values}
    body = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"topology": topology},
    }
    kube = supervisor(sandbox)
    look = kube_object(kube, CLUSTERS, body)
    until(lambda: available(kube.call("GET", f"{CLUSTERS}/{name}")))
    return look


def available(cluster: dict[str, Any]) -> bool:
    conditions = cluster.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == ("Available", "True") for each in conditions)


UNMANAGED = Entry(
    at="ml-01",
    plant=unmanaged,
    inside=(
        lambda sandbox: config_map(guest(sandbox, "team-a", "ml-01"), "default"),
        "ConfigMap default/theirs",
    ),
)
CHANGED_FIELDS = (
    {"workers": {"cpu": {"count": 2}}},
    {"workers": {"cpu": {"count": 1, "labels": {"team": "a"}}}},
    {"volumes": {"containerd": {"mount_path": "/var/lib/containerd", "capacity": "10GiB"}}},
    {"os": "photon-5"},
    {"control_plane": {"count": 3}},
    {"variables": {"osConfiguration": {"sshd": {"banner": "hello"}}}},
    {"version": "v1.35"},
    {"network": {"pods": ["100.96.0.0/16"]}},
)
