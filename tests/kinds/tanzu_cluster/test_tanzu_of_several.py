"""Several nodes and several pools, as each API of Tanzu clusters gets them."""

from __future__ import annotations

from typing import Any

import pytest
from kinds.of_several import of_several

from bfinfra.kinds.supervisor.tanzu_cluster import v1alpha1, v1alpha2, v1beta1
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec

NODES = {"vm_class": "small", "storage_class": "gold"}


def spec(control_plane: int, **workers: int) -> Spec:
    return Spec.model_validate(
        {
            "namespace": "team-a",
            "api": "cluster.x-k8s.io/v1beta1",
            "version": "v1.20",
            "control_plane": {**NODES, "count": control_plane},
            "workers": {name: {**NODES, "count": count} for name, count in workers.items()},
        }
    )


def topology(api: Any, wanted: Spec) -> dict[str, Any]:
    found: dict[str, Any] = api.body(wanted, "v1.20", {})["topology"]
    return found


@of_several("tanzu_cluster.control_plane.count", "tanzu_cluster.workers.count")
@pytest.mark.parametrize(("control_plane", "workers"), [(1, 2), (3, 5)])
def test_a_cluster_has_as_many_nodes_as_the_site_says(control_plane: int, workers: int) -> None:
    wanted = spec(control_plane, w=workers)
    first = topology(v1alpha1, wanted)
    assert (first["controlPlane"]["count"], first["workers"]["count"]) == (control_plane, workers)
    for api, field in ((v1alpha2, "nodePools"), (v1beta1, "workers")):
        found = topology(api, wanted)
        assert found["controlPlane"]["replicas"] == control_plane
        (pool,) = found[field] if api is v1alpha2 else found[field]["machineDeployments"]
        assert pool["replicas"] == workers


@of_several("tanzu_cluster.workers")
def test_each_pool_is_made_with_its_own_nodes() -> None:
    wanted = spec(1, cpu=2, gpu=3)
    pools = {"v1alpha2": topology(v1alpha2, wanted)["nodePools"]}
    pools["v1beta1"] = topology(v1beta1, wanted)["workers"]["machineDeployments"]
    for found in pools.values():
        assert {pool["name"]: pool["replicas"] for pool in found} == {"cpu": 2, "gpu": 3}
