"""With resource claims a node with GPUs owes a ResourceSlice of NVIDIA's driver, and no allocatable GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kinds.gpu_operator.at_gpus import LAYOUT, STATE, names

from bfinfra.kinds.cluster.base.rendered.objects import Id
from bfinfra.kinds.cluster.base.rendered.state import Thing
from bfinfra.kinds.cluster.gpu_operator.layouts import readiness, steps
from bfinfra.kinds.cluster.gpu_operator.readiness import of_operator
from bfinfra.kinds.cluster.gpu_operator.rights import of_spec
from bfinfra.kinds.cluster.gpu_operator.spec import Layout, Spec
from bfinfra.kinds.cluster.gpu_operator.state import GpuState, Node, Note, Plugin
from bfinfra.kinds.cluster.gpu_operator.survey import _by_claims, _divides, _options, _pools, _slices, _users
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.readiness import READY, Ready, waiting
from bfinfra.model.rights import Use, may
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
    found = of_operator(CLAIMS, state("ready", slices={}), READY)
    assert found.status is Ready.WAITING
    assert found.why == "g1 has no ResourceSlice yet, so its GPUs can't be claimed"
    assert of_operator(CLAIMS, state("ready", slices={"g1": ({},)}), READY) == READY


@pytest.mark.parametrize(("says", "status"), [("notReady", Ready.WAITING), ("disabled", Ready.FAILED)])
def test_what_the_gpu_cluster_says_counts(says, status):
    assert of_operator(CLAIMS, state(says, slices={"g1": ({},)}), READY).status is status


GPUS = [{"name": "gpu-0"}]


def of(node: str | None, driver: str = "gpu.nvidia.com", **fields: Any) -> Any:
    pool = {"name": str(node), "generation": 1, "resourceSliceCount": 1, **fields.pop("pool", {})}
    return {"spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": GPUS, **fields}}


@pytest.mark.parametrize(
    ("slices", "nodes"),
    [
        ([of("g1"), of("g2")], {"g1", "g2"}),
        ([of("g1", "dra.example.com")], set()),
        ([of("g1", "compute-domain.nvidia.com")], set()),
        ([of(None)], set()),
        ([of("g1", devices=[])], set()),
        ([of("g1", pool={"resourceSliceCount": 2})], set()),
        ([of("g1", pool={"resourceSliceCount": 2}), of("g1", pool={"resourceSliceCount": 2})], {"g1"}),
        ([of("g1"), of("g1", pool={"generation": 2, "resourceSliceCount": 2})], set()),
    ],
    ids=[
        "two nodes",
        "another driver",
        "compute domains",
        "no node",
        "no device",
        "a part of a pool",
        "a whole pool",
        "a part of a newer pool",
    ],
)
def test_a_node_s_gpus_can_be_claimed_once_its_pool_is_whole(slices, nodes):
    class Cluster:
        def list(self, api: str, kind: str) -> list[Any]:
            assert (api, kind) == ("resource.k8s.io/v1", "ResourceSlice")
            return slices

    assert set(_slices(_pools(Cluster()))) == nodes


def part(card: str, profile: str) -> Any:
    text = {"type": "mig", "parentUUID": card, "profile": profile}
    return {"name": "part", "attributes": {name: {"string": value} for name, value in text.items()}}


def test_what_each_gpu_is_divided_into_is_read_from_its_parts():
    class Cluster:
        def list(self, api: str, kind: str) -> list[Any]:
            assert (api, kind) == ("resource.k8s.io/v1", "ResourceSlice")
            first = [part("a", "1g.5gb"), part("b", "3g.20gb"), *GPUS]
            two = {"pool": {"resourceSliceCount": 2}}
            return [of("g1", devices=first, **two), of("g1", devices=[part("a", "1g.5gb")], **two)]

    assert _slices(_pools(Cluster()))["g1"] == ({}, {"1g.5gb": 2}, {"3g.20gb": 1})


def test_gpus_that_the_dra_driver_divides_itself_are_refused():
    counters = [{"counterSet": "gpu-0-counter-set", "counters": {"memory": {"value": "4864Mi"}}}]
    assert _divides([{"devices": [{**part("a", "1g.5gb"), "consumesCounters": counters}]}])
    assert not _divides([{"devices": [part("a", "1g.5gb")]}, {"sharedCounters": []}])
    with pytest.raises(Refusal) as refused:
        list(steps(DIVIDED, state("ready", slices={"g1": ({},)}, dynamic=frozenset({"g1"}))))
    assert "the DRA driver of node g1 divides its GPUs as they are claimed" in str(refused.value)


SMALL = {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 4}}
LARGE = {"device-filter": "0x233010DE", **SMALL, "mig-devices": {"1g.10gb": 7}}
WHOLE = {"devices": "all", "mig-enabled": False}


@pytest.mark.parametrize(
    ("entries", "options"),
    [
        ([WHOLE], ({},)),
        ([SMALL, LARGE], ({"1g.10gb": 4}, {"1g.10gb": 7})),
        ([{**SMALL, "devices": [0]}, WHOLE], ()),
        ([{**SMALL, "mig-devices": {}}, WHOLE], ()),
        ([], ()),
        ("odd", ()),
    ],
    ids=["whole", "by card", "single GPUs", "no part", "empty", "odd"],
)
def test_a_layout_says_what_a_gpu_may_be_divided_into(entries, options):
    assert tuple(_options(entries)) == options


@pytest.mark.parametrize(
    ("found", "stale"),
    [
        (({},), True),
        (({"1g.10gb": 4},), False),
        (({"1g.10gb": 4}, {"1g.10gb": 7}), False),
        (({"1g.10gb": 4}, {}), True),
        (({"1g.10gb": 3},), True),
        ((), False),
    ],
)
def test_a_slice_is_stale_if_a_gpu_is_not_divided_as_its_layout_says(found, stale):
    known = {"all-1g.10gb": ({"1g.10gb": 4}, {"1g.10gb": 7})}
    labels = {"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "success"}
    node = Node("g1", "1", labels, cordoned=False, note=None, offers=False)
    assert state("ready", slices={"g1": found}, layouts=known).stale(node) is stale


DIVIDED = CLAIMS.model_copy(update={"mig_layouts": (Layout(layout="all-1g.5gb", nodes=("g1",)),)})
OLD, NEW = (Plugin("dra", f"plugin-{each}", each) for each in ("old", "new"))


@pytest.mark.parametrize(
    ("plugin", "restarted", "next_step", "waits"),
    [
        (OLD, "", "RestartPlugin", ""),
        (OLD, "old", "RestartPlugin", ""),
        (None, "old", "AwaitSlice", "the DRA driver of g1 does not run again yet"),
        (NEW, "old", "AwaitSlice", "the DRA driver of g1 publishes whole GPUs, not all-1g.5gb"),
        (None, "", "AwaitSlice", "the DRA driver of g1 publishes whole GPUs, not all-1g.5gb"),
    ],
    ids=["once divided", "killed before the restart", "it goes", "it comes back", "there is none"],
)
def test_the_dra_driver_of_a_divided_node_is_restarted_once(plugin, restarted, next_step, waits):
    labels = {"nvidia.com/gpu.present": "true", LAYOUT: "all-1g.5gb", STATE: "success"}
    note = Note("poc gpu_operator/gpus", cordoned=False, restarted=restarted)
    node = Node("g1", "1", labels, cordoned=True, note=note, offers=False, plugin=plugin)
    found = replace(
        state("ready", slices={"g1": ({},)}, layouts={"all-1g.5gb": ({"1g.5gb": 7},)}),
        owner=note.by,
        nodes={"g1": node},
    )
    assert names(steps(DIVIDED, found)) == [next_step, "Uncordon"]
    assert readiness(DIVIDED, found) == (waiting(waits) if waits else READY)


def test_to_restart_the_dra_driver_takes_a_right_on_pods_of_all_namespaces():
    assert (Use.APPLY, may("delete", "pods", "objects")) in of_spec(DIVIDED)
    plugged = DIVIDED.model_copy(update={"allocate": "device_plugin"})
    assert (Use.APPLY, may("delete", "pods", "objects")) not in of_spec(plugged)


def pod(uid: str, **spec: Any) -> Any:
    return {"metadata": {"name": uid, "namespace": "n", "uid": uid}, "spec": {"nodeName": "g1", **spec}}


def claimed(uid: str, driver: str = "gpu.nvidia.com", **result: Any) -> Any:
    results = [{"driver": driver, "pool": "g1", "device": "gpu-0", **result}]
    users = [{"resource": "pods", "name": uid, "uid": uid}]
    return {"status": {"allocation": {"devices": {"results": results}}, "reservedFor": users}}


def test_pods_with_gpus_by_claims_are_users_of_their_node():
    class Cluster:
        def list(self, api: str, kind: str) -> list[Any]:
            assert (api, kind) == ("resource.k8s.io/v1", "ResourceClaim")
            return [
                claimed("train"),
                claimed("other", "dra.example.com"),
                claimed("watches", adminAccess=True),
                {"status": {}},
            ]

    claims = _by_claims(Cluster())
    found = _users([pod("train"), pod("other"), pod("watches"), pod("idle")], claims)
    assert [str(user) for user in found["g1"]] == ["n/train"]
