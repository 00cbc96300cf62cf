"""What a cluster's status is taken to say: conditions and counts of what was written last, never a phase."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bfinfra.kinds.cluster_locator import Cluster
from bfinfra.kinds.supervisor.vks_cluster import manifest, state
from bfinfra.kinds.supervisor.vks_cluster.manifest import V1BETA1, V1BETA2
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.refs import Key

HERE = Cluster(Key("supervisor_namespace", "ml"), Endpoint(server="10.0.0.1", namespace="ml"), None)  # type: ignore[arg-type]  # nobody asks it
AWAITED = ("TopologyReconciled", "ControlPlaneInitialized", "RemoteConnectionProbe", "Available")


def written(**changes: Any) -> Spec:
    return Spec.model_validate(
        {
            "namespace": "ml",
            "cluster_class": "builtin-generic-v3.7.0",
            "version": "v1.34.2",
            "vm_class": "small",
            "storage_class": "gold",
            "control_plane": {"count": 1},
            "workers": {"cpu": {"count": 2}, "gpu": {"autoscale": {"min": 0, "max": 4}}},
            **changes,
        }
    )


def condition(kind: str, status: str = "True", generation: int = 3, why: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "R", "message": why, "observedGeneration": generation}


def count(wanted: int, **other: int) -> dict[str, int]:
    fields = ("desiredReplicas", "replicas", "upToDateReplicas", "availableReplicas")
    return {**dict.fromkeys(fields, wanted), **other}


def observed(
    api: str = V1BETA2, *, status: dict[str, Any] | None = None, workers: Any = None, **conditions: Any
) -> Any:
    by_type = {kind: condition(kind) for kind in AWAITED} | conditions
    newer = {"conditions": list(by_type.values()), "controlPlane": count(1), "workers": workers or count(2)}
    found = {
        "phase": "Provisioned",
        "observedGeneration": 3,
        **(newer if api == V1BETA2 else {"v1beta2": newer}),
        **(status or {}),
    }
    spec = {**manifest.body(written(), api, {}), "controlPlaneEndpoint": {"host": "10.0.0.9", "port": 6443}}
    metadata = {"name": "ml-01", "namespace": "ml", "generation": 3}
    return state.of({"metadata": metadata, "spec": spec, "status": found}, api, HERE)


@pytest.mark.parametrize("api", [V1BETA2, V1BETA1])
def test_it_is_through_where_all_conditions_are_true_and_all_nodes_are_as_written(api):
    assert observed(api).missing(written()) == ""


def test_a_phase_says_nothing():
    assert observed(status={"phase": "Provisioned", "conditions": []}).missing(written())
    assert observed(status={"phase": "Failed"}).missing(written()) == ""


def test_what_was_written_last_must_have_been_seen():
    assert observed(status={"observedGeneration": 2}).missing(written()) == "accepted"


def test_a_condition_of_before_the_last_write_says_nothing():
    """Each condition is by a controller of its own; that of the topology sees an upgrade later than others."""
    stale = observed(TopologyReconciled=condition("TopologyReconciled", generation=2))
    assert "TopologyReconciled: not updated since the last write" in stale.missing(written())


def test_that_a_control_plane_was_made_once_stays_so():
    """Cluster API says it once, and not again for each write."""
    assert (
        observed(ControlPlaneInitialized=condition("ControlPlaneInitialized", generation=1)).missing(
            written()
        )
        == ""
    )


def test_the_reason_of_a_false_condition_is_reported():
    found = observed(Available=condition("Available", "False", why="* WorkersAvailable: 1 of 2"))
    assert found.missing(written()).endswith("Available: * WorkersAvailable: 1 of 2")


@pytest.mark.parametrize(
    "workers", [count(2, upToDateReplicas=1), count(2, replicas=3), count(2, availableReplicas=0), count(1)]
)
def test_nodes_that_are_old_missing_or_too_many_are_waited_for(workers):
    assert observed(workers=workers).missing(written())


def pool(name: str, wanted: int, *, generation: int = 2, **status: int) -> dict[str, Any]:
    labels = {"topology.cluster.x-k8s.io/deployment-name": name}
    counts = {field: count(wanted)[field] for field in ("replicas", "upToDateReplicas", "availableReplicas")}
    return {
        "metadata": {"labels": labels, "generation": 2},
        "spec": {"replicas": wanted},
        "status": {"observedGeneration": generation, **counts, **status},
    }


@pytest.mark.parametrize(
    ("pools", "says"),
    [
        ([pool("cpu", 2), pool("gpu", 3)], ""),
        ([pool("cpu", 3), pool("gpu", 0)], "pool cpu: 3 of 3 nodes"),
        ([pool("cpu", 2, replicas=3), pool("gpu", 0)], "pool cpu: 2 of 2 nodes"),
        ([pool("cpu", 2, generation=1), pool("gpu", 0)], "pool cpu: 0 of 2 nodes"),
        ([pool("cpu", 2)], "pool gpu does not exist yet"),
    ],
)
def test_each_pool_is_waited_for_as_the_clusters_own_sums_come_later(pools, says):
    found = replace(observed(), pools=state.pools_of(pools))
    assert found.missing(written()) == says


def test_an_autoscaled_pool_may_have_any_number_of_nodes():
    assert observed(workers=count(5)).missing(written()) == ""


@pytest.mark.parametrize("api", [V1BETA2, V1BETA1])
def test_what_is_written_is_seen_again_in_the_same_words(api):
    spec = written(
        os="ubuntu-24.04",
        volumes={"containerd": {"mount_path": "/var/lib/containerd", "capacity": "200GiB"}},
        workers={
            "gpu": {
                "vm_class": "h100",
                "autoscale": {"min": 0, "max": 4},
                "labels": {"team": "a"},
                "taints": ["nvidia.com/gpu:NoSchedule"],
                "zone": "zone-1",
                "rollout": {"max_surge": 0, "max_unavailable": 1},
            }
        },
    )
    view = manifest.view(manifest.body(spec, api, {}), api)
    pool = view["workers"]["gpu"]
    assert pool["autoscale"] == {"min": 0, "max": 4}
    assert (pool["labels"], pool["taints"]) == ({"team": "a"}, ["nvidia.com/gpu:NoSchedule"])
    assert (pool["zone"], pool["os"], pool["vm_class"]) == ("zone-1", "ubuntu-24.04", "h100")
    assert pool["rollout"] == {"max_surge": 0, "max_unavailable": 1}
    assert "count" not in pool
    assert view["volumes"]["containerd"]["capacity"] == "200GiB"
