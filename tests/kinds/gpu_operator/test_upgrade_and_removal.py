"""Upgrades and removals in order, and what the plan says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kinds.at_cluster import Site
from kinds.gpu_operator.at_gpus import ADDRESS, drivers, given, made, names, offered, policy
from waiting import until

from bfinfra.engine.guard import Allow, objections
from bfinfra.model.events import Ending

pytestmark = [pytest.mark.parametrize("api", ["sandbox"], indirect=True), pytest.mark.thorough]
NEW = {"version": "590.44.01"}


@pytest.fixture
def site(api: Any, node_gpus: Any, tmp_path: Path) -> Site:
    return made(api, tmp_path, driver={"version": "580.95.05"})


def upgrading(site: Site, *, by_operator: bool) -> None:
    """Whether the rendering lets the operator restart drivers."""
    path = site.folder / "operator/operator.yaml"
    policy = f"driver: {{enabled: true, upgradePolicy: {{autoUpgrade: {str(by_operator).lower()}}}}}"
    path.write_text(path.read_text().replace("driver: {enabled: true}", policy))


def images(cluster: Any) -> set[str]:
    pods = [cluster.get("v1", "Pod", name, "default") for name in drivers(cluster).values()]
    return {pod["spec"]["containers"][0]["image"] for pod in pods}


def test_a_newer_driver_that_the_operator_installs_takes_an_allowance_and_is_waited_for(site, cluster):
    upgrading(site, by_operator=True)
    site.applied()
    plan = given(site, driver=NEW).plan()
    titles = site.titles(ADDRESS)
    assert titles[0] == (
        "change ClusterPolicy cluster-policy in k; the operator then restarts the driver on g1, g2"
    )
    (problem,) = objections(plan, Allow())
    assert "the plan needs a restart of gpu_operator/gpus" in str(problem)
    site.applied()
    assert images(cluster) == {"nvcr.io/nvidia/driver:590.44.01-ubuntu24.04"}
    assert offered(cluster, "g1") == {"nvidia.com/gpu": "2"}


def test_a_newer_driver_that_the_operator_leaves_is_restarted_by_bfinfra_with_leave(site, cluster):
    upgrading(site, by_operator=False)
    site.applied()
    given(site, driver=NEW, restart_drivers="if_needed")
    assert names(site.item(ADDRESS).steps) == ["Update", "RestartDriver", "RestartDriver", "Commit"]
    assert "which is of the earlier driver" in site.titles(ADDRESS)[1]
    site.applied()
    assert images(cluster) == {"nvcr.io/nvidia/driver:590.44.01-ubuntu24.04"}
    assert policy(cluster)["status"]["state"] == "ready"


def test_without_leave_it_says_which_drivers_are_old(site, cluster):
    upgrading(site, by_operator=False)
    site.applied()
    outcome = given(site, driver=NEW).apply(deadline=1)
    (ended,) = [each for key, each in outcome.endings.items() if str(key) == ADDRESS]
    assert ended.ending is Ending.WAITING
    for pod in drivers(cluster).values():
        cluster.delete("v1", "Pod", pod, "default")
    site.applied()
    assert images(cluster) == {"nvcr.io/nvidia/driver:590.44.01-ubuntu24.04"}


def test_a_newer_operator_is_ready_before_its_policy_changes(site, cluster):
    site.applied()
    path = site.folder / "operator/operator.yaml"
    path.write_text(path.read_text().replace("gpu-operator:v26.7.0", "gpu-operator:v26.7.1"))
    given(site, metrics=True)
    assert site.titles(ADDRESS)[:2] == [
        "change Deployment default/gpu-operator in k, and wait until they are ready",
        "change ClusterPolicy cluster-policy in k",
    ]
    site.applied()
    assert cluster.get("apps/v1", "DaemonSet", "nvidia-dcgm-exporter", "default")


def test_its_operands_are_gone_before_the_operator_goes(site, cluster):
    site.applied()
    titles = [step.title() for step in site.item(ADDRESS, destroy=True).steps]
    assert [title.partition(",")[0] for title in titles] == [
        "delete ClusterPolicy cluster-policy from k",
        "delete Deployment default/gpu-operator",
        "delete CustomResourceDefinition clusterpolicies.nvidia.com from k",
        "delete the record bfinfra-gpu-operator-gpus from namespace default of k",
    ]
    site.applied(destroy=True)
    assert cluster.list("apps/v1", "DaemonSet", "default") == []
    assert drivers(cluster) == {}


def test_a_removal_that_was_killed_waits_for_the_operands_that_are_left(site, cluster):
    site.applied()
    found = policy(cluster)
    orphan = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": "nvidia-left",
            "finalizers": ["example.com/slow"],
            "ownerReferences": [
                {
                    "apiVersion": found["apiVersion"],
                    "kind": found["kind"],
                    "name": found["metadata"]["name"],
                    "uid": found["metadata"]["uid"],
                }
            ],
        },
        "spec": {
            "selector": {"matchLabels": {"app": "left"}},
            "template": {
                "metadata": {"labels": {"app": "left"}},
                "spec": {"containers": [{"name": "c", "image": "x"}], "nodeSelector": {"no": "node"}},
            },
        },
    }
    cluster.create(orphan)
    cluster.delete("nvidia.com/v1", "ClusterPolicy", "cluster-policy")
    until(lambda: not cluster.get("apps/v1", "DaemonSet", "nvidia-driver-daemonset", "default"))
    item = site.item(ADDRESS, destroy=True)
    assert item.steps[0].title() == "wait until the operator's operands in k are gone: nvidia-left"
    outcome = site.apply(destroy=True, deadline=1)
    (ended,) = [each for key, each in outcome.endings.items() if str(key) == ADDRESS]
    assert "the operator's operands are still there: nvidia-left" in str(ended.problem)
    assert cluster.get("apps/v1", "Deployment", "gpu-operator", "default")
    cluster.patch("apps/v1", "DaemonSet", "nvidia-left", {"metadata": {"finalizers": None}}, "default")
    site.applied(destroy=True)
