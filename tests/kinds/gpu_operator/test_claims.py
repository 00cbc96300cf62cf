"""With resource claims a node with GPUs owes a ResourceSlice of NVIDIA's driver, and no allocatable GPU."""

from __future__ import annotations

from typing import Any

import pytest

from bfinfra.kinds.cluster.base.rendered.objects import Id
from bfinfra.kinds.cluster.base.rendered.state import Thing
from bfinfra.kinds.cluster.gpu_operator.readiness import of_operator
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.kinds.cluster.gpu_operator.state import GpuState, Node
from bfinfra.kinds.cluster.gpu_operator.survey import _slices
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.readiness import READY, Ready
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources

HOME = Endpoint(kubeconfig=Secret("env", "KUBECONFIG", Sources(env={})))
CLAIMS = Spec.model_validate(
    {
        "cluster": "k",
        "allocate": "dra",
        "chart": {"oci": "oci://r.example.com/gpu-operator", "digest": f"sha256:{'0' * 64}"},
    }
)


def state(status: str, **slices: Any) -> GpuState:
    cluster = {"metadata": {"name": "gpu-cluster"}, "status": {"state": status}}
    node = Node("g1", "1", {"nvidia.com/gpu.present": "true"}, cordoned=False, note=None, offers=False)
    return GpuState(
        cluster="k",
        namespace="gpu-operator",
        home=HOME,
        things={Id("nvidia.com", "GPUCluster", "", "gpu-cluster"): Thing(None, cluster)},
        nodes={"g1": node},
        **slices,
    )


def test_a_node_without_a_slice_is_named():
    found = of_operator(CLAIMS, state("ready"), READY)
    assert found.status is Ready.WAITING
    assert found.why == "g1 has no ResourceSlice yet, so its GPUs can't be claimed"
    assert of_operator(CLAIMS, state("ready", slices=frozenset({"g1"})), READY) == READY


@pytest.mark.parametrize(("says", "status"), [("notReady", Ready.WAITING), ("disabled", Ready.FAILED)])
def test_what_the_gpu_cluster_says_counts(says, status):
    assert of_operator(CLAIMS, state(says, slices=frozenset({"g1"})), READY).status is status


def test_slices_of_other_drivers_do_not_count():
    class Cluster:
        def list(self, api: str, kind: str) -> list[Any]:
            assert (api, kind) == ("resource.k8s.io/v1", "ResourceSlice")
            of = [("gpu.nvidia.com", "g1"), ("dra.example.com", "g2"), ("gpu.nvidia.com", None)]
            return [{"spec": {"driver": driver, "nodeName": node}} for driver, node in of]

    assert _slices(Cluster()) == {"g1"}
