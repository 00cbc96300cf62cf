from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from at_cluster import Site
from kinds.unmanaged import Entry, Look, config_map, kube_object
from kube_api import somebody_patches
from rights.given import other

from bfinfra.backends.kubernetes import ClusterClient
from bfinfra.backends.kubernetes.errors import Terminating
from bfinfra.engine.retry import LOOK
from bfinfra.model.compare import Change
from bfinfra.model.errors import BfinfraError
from bfinfra.model.plan import Action
from bfinfra.sandbox import Running


@pytest.fixture
def site(tmp_path, api):
    made = Site(tmp_path, api)
    made.real = f"ml-{uuid.uuid4().hex[:8]}"
    made.resources = {
        "namespace": {
            "ml": {
                "cluster": "k",
                "namespace": made.real,
                "labels": {"team": "a"},
                "pod_security": {"enforce": "privileged"},
            }
        }
    }
    yield made
    made.apply(destroy=True)


def labels(cluster, site):
    return cluster.get("v1", "Namespace", site.real)["metadata"]["labels"]


def test_it_is_made_with_its_labels_and_then_agrees(site, cluster):
    site.applied()
    found = labels(cluster, site)
    assert (found["team"], found["pod-security.kubernetes.io/enforce"]) == ("a", "privileged")
    assert site.plan().pending == ()


def test_labels_of_others_are_left_alone_and_own_ones_mended(site, cluster):
    site.applied()
    somebody_patches(
        cluster, f"namespaces/{site.real}", {"metadata": {"labels": {"team": "b", "theirs": "x"}}}
    )
    assert site.item("namespace/ml").changes == (Change("labels.team", "b", "a"),)
    site.applied()
    assert {**labels(cluster, site), "team": "a", "theirs": "x"} == labels(cluster, site)


def test_a_label_that_leaves_the_file_leaves_the_namespace(site, cluster):
    site.applied()
    del site.resources["namespace"]["ml"]["pod_security"], site.resources["namespace"]["ml"]["labels"]
    assert {change.field for change in site.item("namespace/ml").changes} == {
        "labels.team",
        "pod_security.enforce",
    }
    site.applied()
    assert not {"team", "pod-security.kubernetes.io/enforce"} & set(labels(cluster, site))
    assert site.plan().pending == ()


def test_what_others_put_inside_is_named_and_must_be_allowed_by_address(site, cluster):
    site.applied()
    cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": site.real}}
    )
    assert site.item("namespace/ml", destroy=True).contents == (f"ConfigMap {site.real}/theirs",)


def test_the_last_of_what_is_in_a_cluster_is_found_when_it_has_left_the_file(site):
    site.applied()
    site.resources.clear()
    assert site.item("namespace/ml").action == Action.DELETE


def test_another_name_is_another_namespace(site, cluster):
    site.applied()
    old, site.real = site.real, f"{site.real}-2"
    site.resources["namespace"]["ml"]["namespace"] = site.real
    assert site.item("namespace/ml").action is Action.REPLACE
    site.applied()
    assert cluster.get("v1", "Namespace", old) is None
    assert labels(cluster, site)["team"] == "a"


def test_the_namespace_of_another_site_is_not_taken_for_one_that_lacks(site, api, tmp_path):
    (tmp_path / "other").mkdir()
    other = Site(tmp_path / "other", api, f"s-{uuid.uuid4().hex[:8]}")
    other.resources = {"namespace": {"theirs": {"cluster": "k", "namespace": site.real}}}
    other.applied()
    assert [problem.what for problem in site.plan().problems] == [
        f"namespace/ml: it belongs to namespace/theirs of the site {other.name}"
    ]
    other.apply(destroy=True)


def test_labels_of_the_system_are_refused(site):
    site.resources["namespace"]["ml"]["labels"] = {"pod-security.kubernetes.io/enforce": "baseline"}
    (problem,) = site.plan().problems
    assert "can't be set by a site" in problem.what


def test_a_cluster_that_does_not_answer_leaves_what_is_in_it_unread(site, cluster):
    site.applied()
    config = (site.folder / "kubeconfig").read_text()
    (site.folder / "kubeconfig").write_text(
        config.replace(config.split("https://")[1].split('"')[0], "localhost:1")
    )
    plan = site.plan()
    assert any("kubernetes_cluster" in where for where in plan.unreadable)
    assert plan.pending == ()
    with pytest.raises(BfinfraError):
        site.apply()
    (site.folder / "kubeconfig").write_text(config)


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return kube_object(other(sandbox), "/api/v1/namespaces", {"metadata": {"name": name}})


UNMANAGED = Entry(
    at="training",
    plant=unmanaged,
    inside=(lambda sandbox: config_map(other(sandbox), "training"), "ConfigMap training/theirs"),
)


HOLDER = "example.com/held"


def deleted(cluster: ClusterClient, name: str, *finalizers: str) -> None:
    """Somebody deletes it, and a finalizer holds it."""
    somebody_patches(cluster, f"namespaces/{name}", {"metadata": {"finalizers": list(finalizers)}})
    cluster.delete("v1", "Namespace", name)


def let_go(cluster: ClusterClient, name: str) -> None:
    somebody_patches(cluster, f"namespaces/{name}", {"metadata": {"finalizers": []}})


def made_by_hand(cluster: ClusterClient, name: str) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@pytest.mark.parametrize("ours", [True, False])
def test_a_namespace_that_is_held_in_deletion_is_not_offered(site, cluster, ours: bool) -> None:
    if ours:
        site.applied()
    else:
        made_by_hand(cluster, site.real)
    deleted(cluster, site.real, HOLDER)
    plan = site.plan()
    (problem,) = plan.problems
    let_go(cluster, site.real)
    assert problem.what == f"namespace/ml: the namespace {site.real} of k is being deleted"
    assert f"held by {HOLDER}" in problem.why
    assert "wait until it is gone" in problem.next
    assert "adopt" not in f"{problem}"
    assert plan.pending == ()


@pytest.fixture
def secret_in(site):
    """A site with nothing but a Secret in a namespace that is somebody else's."""
    site.resources = {"token_secret": {"t": {"cluster": "k", "namespaces": [site.real], "token": "tok"}}}
    return site


def test_what_goes_into_a_namespace_that_is_being_deleted_is_refused_by_the_plan(secret_in, cluster) -> None:
    made_by_hand(cluster, secret_in.real)
    assert secret_in.plan().problems == ()
    deleted(cluster, secret_in.real, HOLDER)
    (problem,) = secret_in.plan().problems
    let_go(cluster, secret_in.real)
    assert f"the namespace {secret_in.real} of k is being deleted" in problem.what
    assert HOLDER in problem.why


def test_a_namespace_that_nobody_has_is_refused_by_the_plan(secret_in) -> None:
    (problem,) = secret_in.plan().problems
    assert f"k has no namespace {secret_in.real}" in problem.what
    # on a shared API server another test's namespace may have a name like it
    assert problem.next.startswith(("there are: default", "did you mean "))


def test_a_namespace_that_goes_in_the_middle_of_an_apply_ends_it_at_once(secret_in, cluster) -> None:
    made_by_hand(cluster, secret_in.real)
    planned = secret_in.plan()
    assert planned.pending
    deleted(cluster, secret_in.real, HOLDER)
    with pytest.raises(Terminating, match="because it is being terminated") as failed:
        cluster.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": secret_in.real}}
        )
    let_go(cluster, secret_in.real)
    assert not isinstance(failed.value, LOOK)  # what the engine tries again
    assert "take away what holds it" in failed.value.problems[0].next
