"""Several nodes, several pools, and how many nodes of a pool are replaced at a time, as the supervisor gets it."""

from __future__ import annotations

from typing import Any

import pytest
from kinds.of_several import of_several

from bfinfra.kinds.supervisor.vks_cluster import manifest
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec

V1BETA2, V1BETA1 = "cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"
LEAST, MOST, GPUS = (
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size",
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size",
    "capacity.cluster-autoscaler.kubernetes.io/gpu-count",
)


@pytest.fixture(params=[V1BETA2, V1BETA1])
def api(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def topology(api: str, workers: dict[str, dict[str, Any]], control_plane: int = 1) -> dict[str, Any]:
    spec = Spec.model_validate(
        {
            "namespace": "ml",
            "cluster_class": "builtin-generic-v3.6.0",
            "version": "v1.34",
            "vm_class": "small",
            "storage_class": "gold",
            "control_plane": {"count": control_plane},
            "workers": workers,
        }
    )
    found: dict[str, Any] = manifest.body(spec, api, {})["topology"]
    return found


def pools(api: str, **workers: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in topology(api, workers)["workers"]["machineDeployments"]}


@of_several("vks_cluster.control_plane.count")
def test_a_control_plane_has_as_many_nodes_as_the_site_says(api: str) -> None:
    for count in (1, 3, 5):
        assert topology(api, {}, count)["controlPlane"]["replicas"] == count


@of_several("vks_cluster.workers", "vks_cluster.workers.count")
def test_each_pool_has_as_many_nodes_as_the_site_says(api: str) -> None:
    found = pools(api, cpu={"count": 2}, gpu={"count": 3}, spare={"count": 0})
    assert {name: each["replicas"] for name, each in found.items()} == {"cpu": 2, "gpu": 3, "spare": 0}


@of_several(
    "vks_cluster.workers.autoscale.min",
    "vks_cluster.workers.autoscale.max",
    "vks_cluster.workers.autoscale.gpus",
)
def test_the_autoscaler_gets_the_limits_of_each_pool(api: str) -> None:
    limits = {"few": {"min": 2, "max": 3, "gpus": 4}, "many": {"min": 3, "max": 9, "gpus": 8}}
    found = pools(api, **{name: {"autoscale": each} for name, each in limits.items()})
    for name, each in limits.items():
        notes = found[name]["metadata"]["annotations"]
        assert (notes[LEAST], notes[MOST], notes[GPUS]) == tuple(map(str, each.values()))
        assert "replicas" not in found[name]


@of_several("vks_cluster.workers.rollout.max_surge", "vks_cluster.workers.rollout.max_unavailable")
def test_each_pool_replaces_as_many_nodes_at_a_time_as_it_may(api: str) -> None:
    given: dict[str, dict[str, int | str]] = {
        "careful": {"max_surge": 2, "max_unavailable": 3},
        "tight": {"max_surge": 0, "max_unavailable": 2},
        "shares": {"max_surge": "50%", "max_unavailable": "25%"},
    }
    found = pools(api, **{name: {"count": 4, "rollout": each} for name, each in given.items()})
    for name, each in given.items():
        pool = found[name]["rollout"] if api == V1BETA2 else found[name]
        assert pool["strategy"]["rollingUpdate"] == {
            "maxSurge": each["max_surge"],
            "maxUnavailable": each["max_unavailable"],
        }
