"""GPUs that are divided (MIG) and given by resource claims: the DRA driver publishes the parts once it is
restarted, and a node is not given back before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kinds.at_cluster import Site
from kinds.gpu_operator.at_gpus import (
    ADDRESS,
    LAYOUT,
    NOTE,
    STATE,
    cordoned,
    given,
    killed,
    labels,
    made,
    names,
    node,
    phase,
    with_dra_driver,
)
from waiting import until

from bfinfra.model.events import Ending

API, GPU, MIG = "resource.k8s.io/v1", "gpu.nvidia.com", "mig.nvidia.com"
ONE = [{"layout": "all-1g.5gb", "nodes": ["g1"]}]
PARTS = [f"gpu-{card}-mig-1g5gb-19-{start}" for card in (0, 1) for start in range(7)]
pytestmark = [pytest.mark.parametrize("api", ["sandbox"], indirect=True), pytest.mark.thorough]


@pytest.fixture
def server_version() -> str:
    return "v1.34.1"


@pytest.fixture
def site(api: Any, node_gpus: Any, tmp_path: Path) -> Site:
    """With whole GPUs by claims, and a DRA driver of the site's own."""
    found = made(api, tmp_path, allocate="dra")
    with_dra_driver(found, tmp_path).applied()
    return found


def devices(cluster: Any, name: str) -> list[Any]:
    """The devices of a node's slice."""
    return [
        device
        for each in cluster.list(API, "ResourceSlice")
        if each["spec"]["nodeName"] == name and each["spec"]["driver"] == GPU
        for device in each["spec"]["devices"]
    ]


def published(cluster: Any, name: str) -> list[str]:
    return [each["name"] for each in devices(cluster, name)]


def claims(cluster: Any, name: str, of: str, on: str = "g1", profile: str = "") -> None:
    """A pod with a claim of one device, that prints it, or works on if `profile` is empty."""
    exactly: dict[str, Any] = {"deviceClassName": of}
    if profile:
        expression = f"device.attributes['{GPU}'].profile == '{profile}'"
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    cluster.create(
        {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}}
        | {"spec": spec}
    )
    command = {"command": ["nvidia-smi", "-L"]} if profile else {}
    container = {"name": "c", "image": "train:1", "resources": {"claims": [{"name": "gpu"}]}, **command}
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": on},
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        "containers": [container],
        "restartPolicy": "Never" if profile else "Always",
    }
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod})


def ended(outcome: Any) -> Any:
    (found,) = [each for key, each in outcome.endings.items() if str(key) == ADDRESS]
    return found


def plugin(cluster: Any, name: str) -> str:
    """The pod of the DRA driver of a node."""
    (found,) = [
        each["metadata"]["name"]
        for each in cluster.list("v1", "Pod", "default", "app=dra")
        if each["spec"]["nodeName"] == name
    ]
    return str(found)


def test_a_divided_node_is_given_back_once_its_parts_can_be_claimed(site, cluster):
    assert published(cluster, "g1") == ["gpu-0", "gpu-1"]
    given(site, mig_layouts=ONE)
    pod = plugin(cluster, "g1")
    assert site.titles(ADDRESS)[:4] == [
        "cordon node g1 of k, to divide its GPUs as all-1g.5gb",
        "divide the GPUs of node g1 of k as all-1g.5gb",
        f"restart the DRA driver of node g1 of k, pod {pod}, which publishes its GPUs as they were",
        "uncordon node g1 of k",
    ]
    site.applied()
    assert (published(cluster, "g1"), published(cluster, "g2")) == (PARTS, ["gpu-0", "gpu-1"])
    assert (cordoned(cluster, "g1"), NOTE in str(node(cluster, "g1"))) == (False, False)
    assert site.item(ADDRESS).steps == ()
    assert (site.drift().found, site.plan().warnings) == ((), ())


def test_a_pod_has_the_part_of_its_claim(site, cluster):
    given(site, mig_layouts=[{"layout": "all-balanced", "nodes": ["g1"]}]).applied()
    claims(cluster, "small", MIG, profile="2g.10gb")
    until(lambda: phase(cluster, "small") == "Succeeded")
    part = next(each for each in devices(cluster, "g1") if each["name"] == "gpu-0-mig-2g10gb-14-2")
    says = {name: value.get("string") for name, value in part["attributes"].items()}
    assert (says["type"], says["profile"], says["architecture"]) == ("mig", "2g.10gb", "Ampere")
    assert cluster.log("small").splitlines() == [
        f"GPU 0: NVIDIA A100-PCIE-40GB (UUID: {says['parentUUID']})",
        f"  MIG 2g.10gb     Device  0: (UUID: {says['uuid']})",
    ]
    claims(cluster, "whole", GPU)
    until(lambda: "cannot allocate all claims" in str(cluster.get("v1", "Pod", "whole", "default")["status"]))


def test_who_holds_a_part_by_a_claim_is_named_and_waited_for(site, cluster):
    given(site, mig_layouts=ONE).applied()
    claims(cluster, "train", MIG)
    until(lambda: phase(cluster, "train") == "Running")
    given(site, mig_layouts=[{"layout": "all-disabled", "nodes": ["g1"]}])
    title = "wait until the pods that use GPUs of node g1 of k are gone: default/train (no controller)"
    assert title in site.titles(ADDRESS)
    assert ended(site.apply(deadline=1)).ending is Ending.WAITING
    assert (cordoned(cluster, "g1"), published(cluster, "g1")) == (True, PARTS)
    cluster.delete("v1", "Pod", "train", "default")
    site.applied()
    assert (cordoned(cluster, "g1"), published(cluster, "g1")) == (False, ["gpu-0", "gpu-1"])


def test_gpus_that_a_claim_holds_are_not_divided(site, cluster):
    claims(cluster, "train", GPU)
    until(lambda: phase(cluster, "train") == "Running")
    cluster.patch("v1", "Node", "g1", {"metadata": {"labels": {LAYOUT: "all-1g.5gb"}}})
    until(lambda: labels(cluster, "g1").get(STATE) == "failed")


def test_a_layout_that_the_card_can_not_have_fails(site, cluster):
    outcome = given(site, mig_layouts=[{"layout": "all-7g.80gb", "nodes": ["g1"]}]).apply()
    assert ended(outcome).ending is Ending.FAILED
    assert "could not divide the GPUs of g1 as all-7g.80gb" in str(ended(outcome).problem)


def test_parts_that_are_missing_are_drift_and_come_back(site, cluster):
    """Somebody divides the GPUs by hand and back: the DRA driver, restarted in between, publishes no part."""
    given(site, mig_layouts=ONE).applied()
    cluster.patch("v1", "Node", "g1", {"metadata": {"labels": {LAYOUT: "all-disabled"}}})
    until(lambda: labels(cluster, "g1")[STATE] == "success")
    cluster.delete("v1", "Pod", plugin(cluster, "g1"), "default")
    until(lambda: published(cluster, "g1") == ["gpu-0", "gpu-1"])
    cluster.patch("v1", "Node", "g1", {"metadata": {"labels": {LAYOUT: "all-1g.5gb", STATE: None}}})
    until(lambda: labels(cluster, "g1").get(STATE) == "success")
    found = {each.field: (each.now, each.wanted) for each in site.drift().found}
    assert found["nodes.g1.claimable"] == ("whole GPUs", "all-1g.5gb")
    assert names(site.item(ADDRESS).steps)[:3] == ["Cordon", "RestartPlugin", "Uncordon"]
    site.applied()
    assert (published(cluster, "g1"), cordoned(cluster, "g1")) == (PARTS, False)


def test_a_pod_whose_part_is_gone_does_not_start(site, cluster):
    given(site, mig_layouts=ONE).applied()
    cluster.patch("v1", "Node", "g1", {"metadata": {"labels": {LAYOUT: "all-disabled"}}})
    until(lambda: labels(cluster, "g1")[STATE] == "success")
    assert published(cluster, "g1") == PARTS, "the DRA driver was not restarted"
    claims(cluster, "late", MIG)
    until(lambda: "failed to construct MIG device" in str(cluster.list("v1", "Event", "default")))
    assert phase(cluster, "late") == "Pending"


@pytest.mark.parametrize(
    ("at", "ran"), [(2, True), (3, False), (3, True)], ids=["once divided", "before the restart", "after it"]
)
def test_a_run_that_is_killed_around_the_restart_is_finished_by_the_next(site, cluster, at, ran, monkeypatch):
    given(site, mig_layouts=ONE)
    steps = killed(site, monkeypatch, at, ran=ran)
    assert steps == ["Cordon", "Divide", "RestartPlugin"][:at]
    until(lambda: labels(cluster, "g1").get(STATE) not in ("pending", "rebooting"))
    site.applied()
    assert (published(cluster, "g1"), cordoned(cluster, "g1")) == (PARTS, False)
    assert site.item(ADDRESS).steps == ()
