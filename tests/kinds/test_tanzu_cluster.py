from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from bfinfra.kinds.tanzu_cluster import manifest as form
from bfinfra.kinds.tanzu_cluster import offers
from bfinfra.kinds.tanzu_cluster.kind import Create, Delete, Move, Roll, State, TanzuCluster, Update
from bfinfra.kinds.tanzu_cluster.offers import Facts, Offer
from bfinfra.kinds.tanzu_cluster.spec import Spec
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around, Change, Later, Need, Ready
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

HOME = Endpoint(server="172.24.206.1", namespace="cnasg")
MARK = Mark("poc", "tanzu_cluster/cluster-01")
FULL = "v1.20.2+vmware.1-tkg.2.3e10706"
OFFER = Offer(frozenset({"best-effort-xlarge", "guaranteed-small"}), frozenset({"bf-k8s"}), frozenset({FULL, "v1.21.2+vmware.1-tkg.1", "v1.22.0+vmware.1"}))


def written(**changes: Any) -> Spec:
    nodes = {"vm_class": "best-effort-xlarge", "storage_class": "bf-k8s"}
    fields = {"namespace": "cnasg", "version": "v1.20.2", "control_plane": {"count": 1, **nodes}, "workers": {"workers": {"count": 3, **nodes}}}
    return Spec.model_validate({**fields, **changes})


def around(namespace: Any = None, facts: Any = None) -> Around:
    class Standing:
        endpoint = HOME

    need = Need(Key("supervisor_namespace", "cnasg"), namespace, Standing())
    return Around(MARK, {"namespace": need}, facts=facts or Facts({"cnasg": OFFER}))


def standing(spec: Spec, phase: str = "running", **body: Any) -> State:
    sent = form.manifest("cluster-01", "cnasg", spec, {})["spec"]
    filled = {**sent, "distribution": {"version": spec.version, "fullVersion": FULL}, **body}
    return State(mark=MARK.seal(spec.applied()), namespace="cnasg", phase=phase, body=filled, home=HOME)


def steps(spec: Spec | None, state: State | None, **how: Any):
    return TanzuCluster.steps("cluster-01", spec, state, around(**how))


def test_what_is_sent_is_the_documents_yaml():
    assert form.manifest("cluster-01", "cnasg", written(), {}) == {
        "apiVersion": "run.tanzu.vmware.com/v1alpha1", "kind": "TanzuKubernetesCluster",
        "metadata": {"name": "cluster-01", "namespace": "cnasg"},
        "spec": {
            "distribution": {"version": "v1.20.2"},
            "topology": {
                "controlPlane": {"count": 1, "class": "best-effort-xlarge", "storageClass": "bf-k8s"},
                "workers": {"count": 3, "class": "best-effort-xlarge", "storageClass": "bf-k8s"},
            },
        },
    }


def test_everything_that_can_be_written_is_sent_and_seen_again_in_the_same_words():
    spec = written(
        network={"cni": "antrea", "pods": ["192.168.0.0/16"], "services": ["10.96.0.0/12"], "service_domain": "cluster.local"},
        workers={"pool": {"count": 2, "vm_class": "guaranteed-small", "storage_class": "bf-k8s",
                          "volumes": {"containerd": {"mount_path": "/var/lib/containerd", "capacity": "50GiB"}}}},
        storage_classes=["bf-k8s"], default_storage_class="bf-k8s",
    )
    body = form.manifest("c", "cnasg", spec, {"corp": "PEM"})["spec"]
    assert body["settings"] == {
        "network": {"cni": {"name": "antrea"}, "pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]},
                    "serviceDomain": "cluster.local",
                    "trust": {"additionalTrustedCAs": [{"name": "corp", "data": base64.b64encode(b"PEM").decode()}]}},
        "storage": {"classes": ["bf-k8s"], "defaultClass": "bf-k8s"},
    }
    assert body["topology"]["workers"]["volumes"] == [{"name": "containerd", "mountPath": "/var/lib/containerd", "capacity": {"storage": "50Gi"}}]
    assert form.view(body, "pool") == form.wanted(spec, {"corp": "PEM"})


def test_a_new_cluster_is_created_with_its_mark_sealed_in_the_create_call():
    (step,) = steps(written(), None)
    assert isinstance(step, Create)
    assert Mark.decode(step.manifest["metadata"]["annotations"]["bfinfra.io/mark"]) == MARK.seal(written().applied()).on("cnasg/cluster-01")
    assert step.manifest["metadata"]["labels"] == {"bfinfra.io/site": "poc"}
    assert step.home == HOME


def test_in_a_namespace_to_come_its_address_is_later():
    need = Need(Key("supervisor_namespace", "cnasg"), None, None)
    (step,) = TanzuCluster.steps("cluster-01", written(), None, Around(MARK, {"namespace": need}, facts=Facts()))
    assert step.home == Later(need.key, "endpoint")


def test_what_the_supervisor_filled_in_is_no_drift():
    filled = {"settings": {"network": {"cni": {"name": "antrea"}, "serviceDomain": "cluster.local"}, "storage": {"classes": ["x"]}}}
    assert steps(written(), standing(written(), **filled)) == ()


def test_scaling_names_the_one_field():
    more = written(workers={"workers": {"count": 5, "vm_class": "best-effort-xlarge", "storage_class": "bf-k8s"}})
    (step,) = steps(more, standing(written()))
    assert type(step) is Update
    assert step.changes == (Change("workers.workers.count", 3, 5),)
    assert step.manifest["spec"]["topology"]["workers"]["count"] == 5


def test_drift_is_told_with_what_stands_there():
    drifted = standing(written())
    drifted.body["topology"]["workers"]["count"] = 1
    (step,) = steps(written(), drifted)
    assert step.changes == (Change("workers.workers.count", 1, 3),)


def test_one_minor_version_up_rolls_the_nodes():
    (step,) = steps(written(version="v1.21"), standing(written()))
    assert isinstance(step, Roll)
    assert step.changes == (Change("version", FULL, "v1.21"),)


@pytest.mark.parametrize(("version", "says"), [("v1.22", "more than one minor version"), ("v1.19.1", "older"), ("v1.20.1", "older")])
def test_versions_go_up_one_minor_at_a_time(version, says):
    with pytest.raises(Refusal, match=says) as refused:
        steps(written(version=version), standing(written()))
    assert refused.value.field == "version"


@pytest.mark.parametrize(("field", "changes", "says"), [
    ("control_plane.vm_class", {"control_plane": {"count": 1, "vm_class": "best-effort-xlage", "storage_class": "bf-k8s"}}, "did you mean best-effort-xlarge"),
    ("workers.w.storage_class", {"workers": {"w": {"count": 1, "vm_class": "guaranteed-small", "storage_class": "gold"}}}, "no storage class gold"),
    ("default_storage_class", {"default_storage_class": "gold"}, "no storage class gold"),
    ("version", {"version": "v1.99"}, "no release v1.99"),
])
def test_what_the_namespace_does_not_offer_is_refused_at_its_field(field, changes, says):
    with pytest.raises(Refusal, match=says) as refused:
        steps(written(**changes), None)
    assert refused.value.field == field


def test_what_this_run_adds_to_the_namespace_counts_as_offered():
    class Promised:
        vm_classes = ("new-class",)
        storage = ("gold",)

    nodes = {"vm_class": "new-class", "storage_class": "gold"}
    spec = written(control_plane={"count": 1, **nodes}, workers={"w": {"count": 1, **nodes}})
    assert steps(spec, None, namespace=Promised(), facts=Facts())


def test_where_the_supervisor_does_not_say_it_decides_itself():
    assert steps(written(version="v1.99"), None, facts=Facts({"cnasg": Offer()}))


def test_a_network_can_not_change_and_a_control_plane_not_shrink():
    with pytest.raises(Refusal, match="network"):
        steps(written(network={"pods": ["10.0.0.0/16"]}), standing(written()))
    three = written(control_plane={"count": 3, "vm_class": "best-effort-xlarge", "storage_class": "bf-k8s"})
    with pytest.raises(Refusal, match="shrink"):
        steps(written(), standing(three))


def test_another_namespace_means_making_it_anew():
    state = standing(written(namespace="other"))
    state = State(**{**vars(state), "namespace": "other"})
    move, create = steps(written(), state)
    assert isinstance(move, Move)
    assert move.settles
    assert isinstance(create, Create)


def test_deleting_and_waiting_until_it_is_gone():
    (step,) = steps(None, standing(written()))
    assert isinstance(step, Delete)
    assert steps(None, standing(written(), phase="deleting")) == ()
    assert steps(None, None) == ()


@pytest.mark.parametrize(("phase", "nodes", "status"), [
    ("creating", {}, Ready.WAITING), ("running", {"a": "ready"}, Ready.WAITING),
    ("running", dict.fromkeys("abcd", "ready"), Ready.READY), ("running", None, Ready.READY),
    ("running", dict.fromkeys("abcde", "ready"), Ready.WAITING), ("failed", {}, Ready.FAILED), ("updateFailed", None, Ready.FAILED),
])
def test_ready_is_running_with_every_node(phase, nodes, status):
    state = State(**{**vars(standing(written(), phase=phase)), "nodes": nodes, "messages": ("no capacity",)})
    found = TanzuCluster.ready(object.__new__(TanzuCluster), written(), state)
    assert found.status is status
    assert status is not Ready.FAILED or found.why == "no capacity"


@pytest.mark.parametrize("changes", [
    {"workers": {}}, {"workers": {"a": {"count": 1, "vm_class": "x", "storage_class": "y"}, "b": {"count": 1, "vm_class": "x", "storage_class": "y"}}},
    {"control_plane": {"count": 2, "vm_class": "x", "storage_class": "y"}}, {"version": "1.20"}, {"network": {"pods": ["10.0.0.1/8"]}},
    {"api": "run.tanzu.vmware.com/v1alpha9"}, {"storage_classes": ["a"], "default_storage_class": "b"},
])
def test_what_can_not_be_is_an_error_in_the_file(changes):
    with pytest.raises(ValidationError):
        written(**changes)


@pytest.mark.parametrize(("full", "wanted", "same"), [
    (FULL, "v1.20.2", True), (FULL, "v1.20", True), (FULL, FULL, True), ("v1.20.2---vmware.1-tkg.2.3e10706", FULL, True),
    (FULL, "v1.20.22", False), ("v1.20.22+x", "v1.20.2", False), ("v1.2.0", "v1.20", False),
])
def test_versions_match_at_their_joints(full, wanted, same):
    assert offers.matches(full, wanted) is same
