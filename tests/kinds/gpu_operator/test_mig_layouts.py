"""GPUs of nodes are divided one node after the other: cordoned, emptied, labelled, waited for, uncordoned; at
whatever instant a run ends, the next one goes on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kinds.at_cluster import Site
from kinds.gpu_operator.at_gpus import (
    ADDRESS,
    LAYOUT,
    LICENSED,
    NOTE,
    STATE,
    VGPU,
    cordoned,
    deployed,
    given,
    killed,
    labels,
    made,
    names,
    node,
    offered,
    phase,
    pods_of,
    work,
)
from kinds.of_several import of_several
from waiting import until

from bfinfra.engine.guard import Allow, objections
from bfinfra.model.errors import SiteError
from bfinfra.model.events import Ending

pytestmark = [pytest.mark.parametrize("api", ["sandbox"], indirect=True), pytest.mark.thorough]
WHOLE = [{"layout": "all-1g.5gb", "nodes": ["g1", "g2"]}]
ONE = [{"layout": "all-1g.5gb", "nodes": ["g1"]}]
PARTS = {"nvidia.com/mig-1g.5gb": "14"}


@pytest.fixture
def server_version() -> str:
    return "v1.34.1"


@pytest.fixture
def site(api: Any, node_gpus: Any, tmp_path: Path) -> Site:
    found = made(api, tmp_path, mig="mixed")
    found.begun(node_gpus)
    return found


def ended(outcome: Any) -> Any:
    (found,) = [each for key, each in outcome.endings.items() if str(key) == ADDRESS]
    return found


def noted(cluster: Any, name: str) -> Any:
    text = (node(cluster, name)["metadata"].get("annotations") or {}).get(NOTE)
    return json.loads(text) if text else None


@of_several("gpu_operator.mig_layouts.nodes")
def test_nodes_are_divided_one_after_the_other(site, cluster):
    given(site, mig_layouts=WHOLE)
    assert site.titles(ADDRESS) == [
        "cordon node g1 of k, to divide its GPUs as all-1g.5gb",
        "divide the GPUs of node g1 of k as all-1g.5gb",
        "uncordon node g1 of k",
        "cordon node g2 of k, to divide its GPUs as all-1g.5gb",
        "divide the GPUs of node g2 of k as all-1g.5gb",
        "uncordon node g2 of k",
        "note in bfinfra-gpu-operator-gpus what was applied",
    ]
    outcome = site.applied()
    assert (ended(outcome).ending, labels(cluster, "g1")[STATE]) == (Ending.DONE, "success")
    for name in ("g1", "g2"):
        assert offered(cluster, name) == PARTS
        assert (cordoned(cluster, name), noted(cluster, name)) == (False, None)
    assert site.item(ADDRESS).steps == ()
    assert site.drift().found == ()


def test_a_label_changed_by_hand_is_drift_and_is_put_right(site, cluster):
    given(site, mig_layouts=ONE).applied()
    cluster.patch("v1", "Node", "g1", {"metadata": {"labels": {LAYOUT: "all-disabled"}}})
    until(lambda: offered(cluster, "g1") == {"nvidia.com/gpu": "2"})
    found = {each.field: (each.now, each.wanted) for each in site.drift().found}
    assert found["nodes.g1.layout"] == ("all-disabled (success)", "all-1g.5gb")
    site.applied()
    assert offered(cluster, "g1") == PARTS


def test_without_leave_it_waits_for_pods_and_names_them(site, cluster):
    deployed(cluster, "train", "g1")
    work(cluster, "alone", "g1")
    (pod,) = [each["metadata"]["name"] for each in pods_of(cluster, "train")]
    given(site, mig_layouts=ONE)
    (title,) = [title for title in site.titles(ADDRESS) if title.startswith("wait")]
    assert "pods that use GPUs of node g1 of k are gone: default/alone (no controller), " in title
    assert f"default/{pod} (ReplicaSet " in title
    assert not objections(site.plan(), Allow())
    outcome = site.apply(deadline=1)
    assert ended(outcome).ending is Ending.WAITING
    assert "default/alone: it has no controller, and would not come back" in str(ended(outcome).problem)
    assert (cordoned(cluster, "g1"), labels(cluster, "g1").get(LAYOUT)) == (True, None)
    cluster.delete("v1", "Pod", "alone", "default")
    cluster.delete("apps/v1", "Deployment", "train", "default")
    site.applied()
    assert (cordoned(cluster, "g1"), offered(cluster, "g1")) == (False, PARTS)


def test_with_leave_pods_are_evicted(site, cluster):
    deployed(cluster, "train", "g1")
    plan = given(site, mig_layouts=ONE, drain="if_needed").plan()
    (problem,) = objections(plan, Allow())
    assert "the plan needs a restart of gpu_operator/gpus" in str(problem)
    assert "pods with GPUs are evicted, and start anew where GPUs are free" in str(problem)
    assert not objections(plan, Allow(every_disruption=True))
    site.applied()
    assert offered(cluster, "g1") == PARTS
    assert {pod["spec"].get("nodeName") for pod in pods_of(cluster, "train")} == {None}, "it waits for a GPU"


def test_pods_that_an_eviction_does_not_move_are_left_and_named(site, cluster):
    work(cluster, "alone", "g1")
    given(site, mig_layouts=ONE, drain="if_needed")
    assert "AwaitPods" in names(site.item(ADDRESS).steps)
    assert "default/alone" in str(ended(site.apply(deadline=1)).problem)
    assert phase(cluster, "alone") == "Running"


def test_a_disruption_budget_is_heeded_and_named(site, cluster):
    deployed(cluster, "train", "g1")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "train"}}}
    cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "train"},
            "spec": budget,
        }
    )
    outcome = given(site, mig_layouts=ONE, drain="if_needed").apply()
    assert ended(outcome).ending is Ending.WAITING
    assert "can't be evicted from g1" in str(ended(outcome).problem)
    assert "it would violate the pod's disruption budget" in str(ended(outcome).problem)
    cluster.delete("policy/v1", "PodDisruptionBudget", "train", "default")
    site.applied()
    assert offered(cluster, "g1") == PARTS


@pytest.mark.parametrize("ran", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 5))
def test_a_run_that_is_killed_at_any_step_is_finished_by_the_next(site, cluster, at, ran, monkeypatch):
    given(site, mig_layouts=ONE)
    assert killed(site, monkeypatch, at, ran=ran) == ["Cordon", "Divide", "Uncordon", "Commit"][:at]
    until(lambda: labels(cluster, "g1").get(STATE) not in ("pending", "rebooting"))
    site.applied()
    assert (cordoned(cluster, "g1"), noted(cluster, "g1")) == (False, None)
    assert offered(cluster, "g1") == PARTS
    assert site.item(ADDRESS).steps == ()


def test_a_node_that_somebody_cordoned_stays_cordoned(site, cluster):
    cluster.patch("v1", "Node", "g1", {"spec": {"unschedulable": True}})
    given(site, mig_layouts=ONE)
    assert "leave node g1 of k cordoned, as it was before" in site.titles(ADDRESS)
    site.applied()
    assert (cordoned(cluster, "g1"), noted(cluster, "g1")) == (True, None)
    assert offered(cluster, "g1") == PARTS


def test_a_node_that_a_killed_run_left_cordoned_is_uncordoned_without_the_layout_too(site, cluster):
    work(cluster, "alone", "g1")
    given(site, mig_layouts=ONE).apply(deadline=1)
    assert noted(cluster, "g1") == {"by": "poc gpu_operator/gpus", "cordoned": False}
    del site.resources["gpu_operator"]["gpus"]["mig_layouts"]
    assert "uncordon node g1 of k" in site.titles(ADDRESS)
    site.applied()
    assert (cordoned(cluster, "g1"), noted(cluster, "g1")) == (False, None)
    assert phase(cluster, "alone") == "Running"


def test_a_layout_that_the_manager_does_not_know_is_refused(site):
    found = given(site, mig_layouts=[{"layout": "all-1g.5gbb", "nodes": ["g1"]}]).plan()
    (problem,) = found.problems
    assert "the MIG manager has no layout all-1g.5gbb; did you mean all-1g.5gb?" in str(problem)


def test_gpus_in_use_by_others_fail_and_the_next_apply_tries_again(site, cluster):
    given(site, mig_layouts=ONE)
    cluster.patch("v1", "Node", "g1", {"metadata": {"labels": {LAYOUT: "all-2g.10gb"}}})
    until(lambda: labels(cluster, "g1").get(STATE) == "success")
    until(lambda: offered(cluster, "g1") == {"nvidia.com/mig-2g.10gb": "6"})
    work(cluster, "early", "g1", asks="nvidia.com/mig-2g.10gb")
    cluster.patch("v1", "Node", "g1", {"metadata": {"labels": {LAYOUT: "all-1g.5gb"}}})
    until(lambda: labels(cluster, "g1").get(STATE) == "failed")
    titles = site.titles(ADDRESS)
    assert "restart the MIG manager of node g1 of k, which failed to divide its GPUs as all-1g.5gb" in titles
    waits = ended(site.apply(deadline=1))
    assert waits.ending in (Ending.WAITING, Ending.FAILED)
    cluster.delete("v1", "Pod", "early", "default")
    site.applied()
    assert (offered(cluster, "g1"), cordoned(cluster, "g1")) == (PARTS, False)


def test_destroy_releases_nodes_first_and_leaves_their_layout(site, cluster):
    work(cluster, "alone", "g1")
    given(site, mig_layouts=ONE).apply(deadline=1)
    assert names(site.item(ADDRESS, destroy=True).steps)[:2] == ["Uncordon", "DeletePolicy"]
    site.applied(destroy=True)
    assert (cordoned(cluster, "g1"), noted(cluster, "g1")) == (False, None)


def test_nodes_by_label_and_the_first_entry_that_fits(site, cluster):
    cluster.patch("v1", "Node", "g2", {"metadata": {"labels": {"pool": "small"}}})
    entries = [{"layout": "all-2g.10gb", "labels": {"pool": "small"}}, *WHOLE]
    given(site, mig_layouts=entries).applied()
    assert offered(cluster, "g1") == PARTS
    assert offered(cluster, "g2") == {"nvidia.com/mig-2g.10gb": "6"}


def test_a_node_that_is_not_there_is_a_warning(site):
    found = given(site, mig_layouts=[{"layout": "all-1g.5gb", "nodes": ["g1", "g9"]}]).plan()
    (warning,) = found.warnings
    assert "k has no node g9" in str(warning)


def test_vgpus_are_refused(site, cluster, node_gpus):
    with pytest.raises(SiteError, match="divided on their host"):
        given(site, mig_layouts=ONE, license=LICENSED).plan()


def test_a_node_with_vgpus_is_refused(site, cluster, node_gpus):
    node_gpus["g1"] = VGPU
    cluster.patch("v1", "Node", "g1", {"metadata": {"labels": {"any": "change"}}})
    until(lambda: "nvidia.com/vgpu.host-driver-version" in labels(cluster, "g1"))
    (problem,) = given(site, mig_layouts=ONE).plan().problems
    assert "node g1 has vGPUs, which are divided on their host" in str(problem)


def test_a_node_at_which_another_site_is_busy_is_refused(site, cluster):
    note = json.dumps({"by": "other gpu_operator/x", "cordoned": False})
    cluster.patch("v1", "Node", "g1", {"metadata": {"annotations": {NOTE: note}}})
    (problem,) = given(site, mig_layouts=ONE).plan().problems
    assert "the GPUs of node g1 are being divided by other gpu_operator/x" in str(problem)
