from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kinds.unmanaged import TANZU, Entry, Look, config_map, kube_object
from pydantic import ValidationError
from rights.given import guest, supervisor
from waiting import until

from bfinfra.backends.kubernetes.marks import marked
from bfinfra.backends.vcenter.registries import Registry
from bfinfra.kinds.supervisor.base import upgrade
from bfinfra.kinds.supervisor.base.cluster_steps import Create, Delete, Hop, Move, Roll, Update, Wait
from bfinfra.kinds.supervisor.base.guests import nodes_of
from bfinfra.kinds.supervisor.base.offers import Offer
from bfinfra.kinds.supervisor.registry import State as RegistryState
from bfinfra.kinds.supervisor.tanzu_cluster import forms
from bfinfra.kinds.supervisor.tanzu_cluster import manifest as form
from bfinfra.kinds.supervisor.tanzu_cluster.facts import TanzuClusterFacts
from bfinfra.kinds.supervisor.tanzu_cluster.kind import TanzuCluster
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec
from bfinfra.kinds.supervisor.tanzu_cluster.state import State, of
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.plan import agrees, plain
from bfinfra.model.readiness import Ready
from bfinfra.model.refs import Key, edges
from bfinfra.sandbox import Running

HOME = Endpoint(server="172.24.206.1", namespace="cnasg")
MARK = Mark("poc", "tanzu_cluster/cluster-01")
FULL = "v1.20.2+vmware.1-tkg.2.3e10706"
OFFER = Offer(
    frozenset({"best-effort-xlarge", "guaranteed-small"}),
    frozenset({"bf-k8s"}),
    frozenset(
        {FULL, "v1.21.1+vmware.1-tkg.9", "v1.21.2+vmware.1-tkg.1", "v1.22.0+vmware.1", "v1.24.0+vmware.1"}
    ),
)


def written(**changes: Any) -> Spec:
    nodes = {"vm_class": "best-effort-xlarge", "storage_class": "bf-k8s"}
    fields = {
        "namespace": "cnasg",
        "version": "v1.20.2",
        "control_plane": {"count": 1, **nodes},
        "workers": {"workers": {"count": 3, **nodes}},
    }
    return Spec.model_validate({**fields, **changes})


def context(namespace: Any = None, facts: Any = None) -> PlanContext:
    class Existing:
        endpoint = HOME

    need = ResolvedRef(Key("supervisor_namespace", "cnasg"), namespace, Existing())
    return PlanContext(MARK, {"namespace": need}, facts=facts or TanzuClusterFacts({"cnasg": OFFER}))


def existing(spec: Spec, phase: str = "running", *, going: bool = False, **body: Any) -> State:
    sent = forms.manifest("cluster-01", "cnasg", spec, {})["spec"]
    filled = {**sent, "distribution": {"version": spec.version, "fullVersion": FULL}, **body}
    mark = MARK.committed(spec.applied())
    return State(mark=mark, namespace="cnasg", phase=phase, body=filled, home=HOME, going=going)


def steps(spec: Spec | None, state: State | None, **how: Any):
    return TanzuCluster.steps("cluster-01", spec, state, context(**how))


def test_what_is_sent_is_the_documents_yaml():
    assert forms.manifest("cluster-01", "cnasg", written(), {}) == {
        "apiVersion": "run.tanzu.vmware.com/v1alpha1",
        "kind": "TanzuKubernetesCluster",
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
        network={
            "cni": "antrea",
            "pods": ["192.168.0.0/16"],
            "services": ["10.96.0.0/12"],
            "service_domain": "cluster.local",
        },
        workers={
            "pool": {
                "count": 2,
                "vm_class": "guaranteed-small",
                "storage_class": "bf-k8s",
                "volumes": {"containerd": {"mount_path": "/var/lib/containerd", "capacity": "50GiB"}},
            }
        },
        storage_classes=["bf-k8s"],
        default_storage_class="bf-k8s",
    )
    body = forms.manifest("c", "cnasg", spec, {"corp": "PEM"})["spec"]
    assert body["settings"] == {
        "network": {
            "cni": {"name": "antrea"},
            "pods": {"cidrBlocks": ["192.168.0.0/16"]},
            "services": {"cidrBlocks": ["10.96.0.0/12"]},
            "serviceDomain": "cluster.local",
            "trust": {"additionalTrustedCAs": [{"name": "corp", "data": base64.b64encode(b"PEM").decode()}]},
        },
        "storage": {"classes": ["bf-k8s"], "defaultClass": "bf-k8s"},
    }
    assert body["topology"]["workers"]["volumes"] == [
        {"name": "containerd", "mountPath": "/var/lib/containerd", "capacity": {"storage": "50Gi"}}
    ]
    assert forms.FORMS[spec.api].view(body, "pool") == form.wanted(spec, {"corp": "PEM"})


def test_a_new_cluster_is_created_with_its_mark_committed_in_the_create_call():
    (step,) = steps(written(), None)
    assert isinstance(step, Create)
    assert Mark.decode(step.manifest["metadata"]["annotations"]["bfinfra.io/mark"]) == MARK.committed(
        written().applied()
    ).on("cnasg/cluster-01")
    assert step.manifest["metadata"]["labels"] == {"bfinfra.io/site": "poc"}
    assert step.home == HOME


def test_in_a_namespace_to_come_its_address_is_later():
    need = ResolvedRef(Key("supervisor_namespace", "cnasg"), None, None)
    (step,) = TanzuCluster.steps(
        "cluster-01", written(), None, PlanContext(MARK, {"namespace": need}, facts=TanzuClusterFacts())
    )
    assert step.home == Unknown(need.key, "endpoint")


HARBOR = Key("registry", "harbor")
TRUSTING = {"trust": {"harbor": {"registry": "harbor"}}}


def beside(registry: RegistryState | None) -> PlanContext:
    found = context()
    return replace(
        found, needs={**found.needs, "trust.harbor.registry": ResolvedRef(HARBOR, object(), registry)}
    )


def harbor(pem: str) -> RegistryState:
    return RegistryState(
        cluster="compute",
        moid="domain-c1",
        found=Registry("r-1", "domain-c1", "RUNNING", "", "https://10.1.0.3", pem, {}),
    )


def test_the_authority_of_a_registry_is_taken_from_it_once_it_tells():
    (later,) = TanzuCluster.steps("cluster-01", written(**TRUSTING), None, beside(None))
    (made,) = TanzuCluster.steps("cluster-01", written(**TRUSTING), None, beside(harbor("PEM")))
    assert later.manifest == Unknown(HARBOR, "authority")
    assert agrees(plain(later), plain(made))
    assert made.manifest["spec"]["settings"]["network"]["trust"] == {
        "additionalTrustedCAs": [{"name": "harbor", "data": base64.b64encode(b"PEM").decode()}]
    }


def test_another_authority_of_the_registry_is_drift_and_rolls_the_nodes():
    spec = written(**TRUSTING)
    state = existing(
        spec, settings=forms.manifest("cluster-01", "cnasg", spec, {"harbor": "PEM"})["spec"]["settings"]
    )
    assert TanzuCluster.steps("cluster-01", spec, state, beside(harbor("PEM\n"))) == ()
    (step,) = TanzuCluster.steps("cluster-01", spec, state, beside(harbor("ANOTHER")))
    assert (type(step), [change.field for change in step.changes]) == (Roll, ["trust.harbor"])


def test_a_removed_authority_is_reported_once():
    authorities = [{"name": "harbor", "data": base64.b64encode(b"PEM").decode()}]
    state = replace(
        existing(written(), settings={"network": {"trust": {"additionalTrustedCAs": authorities}}}),
        mark=MARK.committed(written(**TRUSTING).applied()),
    )
    (step,) = TanzuCluster.steps("cluster-01", written(), state, context())
    assert (type(step), [change.field for change in step.changes]) == (Roll, ["trust.harbor"])


def test_a_registry_goes_only_after_the_clusters_that_trust_it_let_go():
    home = type("Home", (), {"key": Key("supervisor_namespace", "cnasg"), "endpoint": HOME})()
    body = marked(
        forms.manifest("cluster-01", "cnasg", written(**TRUSTING), {}),
        MARK.committed(written(**TRUSTING).applied()),
    )
    assert HARBOR in {Key(edge.kinds[0], edge.name) for edge in edges(of(body, written().api, home))}


def test_what_the_supervisor_filled_in_is_no_drift():
    filled = {
        "settings": {
            "network": {"cni": {"name": "antrea"}, "serviceDomain": "cluster.local"},
            "storage": {"classes": ["x"]},
        }
    }
    assert steps(written(), existing(written(), **filled)) == ()


def test_scaling_names_the_one_field():
    more = written(
        workers={"workers": {"count": 5, "vm_class": "best-effort-xlarge", "storage_class": "bf-k8s"}}
    )
    (step,) = steps(more, existing(written()))
    assert type(step) is Update
    assert step.changes == (Change("workers.workers.count", 3, 5),)
    assert step.manifest["spec"]["topology"]["workers"]["count"] == 5


def test_drift_is_reported_with_the_observed_value():
    drifted = existing(written())
    drifted.body["topology"]["workers"]["count"] = 1
    (step,) = steps(written(), drifted)
    assert step.changes == (Change("workers.workers.count", 1, 3),)


def test_one_minor_version_up_rolls_the_nodes():
    (step,) = steps(written(version="v1.21"), existing(written()))
    assert isinstance(step, Roll)
    assert step.changes == (Change("version", FULL, "v1.21"),)


def rolling(**how: Any) -> State:
    """A cluster on its way from v1.20 to v1.22, which is in the file."""
    reached = existing(written(version="v1.21.2"), distribution={"fullVersion": "v1.21.2+vmware.1-tkg.1"})
    return State(**{**vars(reached), "endpoint": HOME, **how})


def test_a_version_further_away_is_reached_over_the_newest_release_of_each_minor_version():
    hop, last = steps(written(version="v1.22"), existing(written()))
    assert isinstance(hop, Hop)
    assert hop.waits_ready
    assert hop.manifest["spec"]["distribution"] == {"version": "v1.21.2"}
    assert (
        Mark.decode(hop.manifest["metadata"]["annotations"]["bfinfra.io/mark"]).applied["version"]
        == "v1.21.2"
    )
    assert (type(last), last.manifest["spec"]["distribution"]) == (Roll, {"version": "v1.22"})
    assert [step.changes for step in (hop, last)] == [
        (Change("version", FULL, "v1.21.2"),),
        (Change("version", "v1.21.2", "v1.22"),),
    ]


@pytest.mark.parametrize(
    ("nodes", "phase", "begins"),
    [
        (dict.fromkeys("abcd", "ready"), "running", Roll),
        ({**dict.fromkeys("abc", "ready"), "d": "a node is not ready"}, "running", Wait),
        (dict.fromkeys("abcde", "ready"), "running", Wait),
        (dict.fromkeys("abcd", "ready"), "updating", Wait),
        ({"a": "ready"}, "failed", Roll),
    ],
)
def test_the_next_minor_version_waits_until_every_node_is_through_with_the_last(nodes, phase, begins):
    first = steps(written(version="v1.22"), rolling(nodes=nodes, phase=phase))[0]
    assert type(first) is begins
    assert begins is not Wait or first.waits_ready


def test_nodes_are_through_when_they_are_ready_in_the_version_that_was_asked_for():
    def node(name: str, version: str, ready: str) -> dict[str, Any]:
        return {
            "metadata": {"name": name},
            "status": {
                "nodeInfo": {"kubeletVersion": version},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        }

    seen = nodes_of(
        [
            node("a", "v1.21.2+vmware.1", "True"),
            node("b", "v1.20.2+vmware.1", "True"),
            node("c", "v1.21.2+vmware.1", "Unknown"),
        ],
        "v1.21.2+vmware.1-tkg.1",
    )
    assert seen == {"a": "ready", "b": "a node runs v1.20.2+vmware.1", "c": "a node is not ready"}
    assert (
        rolling(nodes=seen).missing(3)
        == "running, 1 of 3 nodes ready; a node is not ready; a node runs v1.20.2+vmware.1"
    )


LATER = ["run.tanzu.vmware.com/v1alpha2", "run.tanzu.vmware.com/v1alpha3"]


@pytest.mark.parametrize("api", LATER)
def test_the_later_tanzu_apis_have_pools_and_a_release_by_its_name(api):
    (step,) = steps(written(api=api), None)
    nodes = {
        "vmClass": "best-effort-xlarge",
        "storageClass": "bf-k8s",
        "tkr": {"reference": {"name": "v1.20.2---vmware.1-tkg.2.3e10706"}},
    }
    assert step.manifest["apiVersion"] == api
    assert step.manifest["spec"] == {
        "topology": {
            "controlPlane": {"replicas": 1, **nodes},
            "nodePools": [{"name": "workers", "replicas": 3, **nodes}],
        }
    }


def test_a_cluster_of_a_class_has_variables_and_a_pools_own_are_overrides():
    (step,) = steps(written(api="cluster.x-k8s.io/v1beta1", default_storage_class="bf-k8s"), None)
    values = [{"name": "vmClass", "value": "best-effort-xlarge"}, {"name": "storageClass", "value": "bf-k8s"}]
    assert (step.manifest["apiVersion"], step.manifest["kind"]) == ("cluster.x-k8s.io/v1beta1", "Cluster")
    assert step.manifest["spec"] == {
        "topology": {
            "class": "tanzukubernetescluster",
            "version": "v1.20.2---vmware.1-tkg.2.3e10706",
            "controlPlane": {"replicas": 1},
            "workers": {
                "machineDeployments": [
                    {
                        "class": "node-pool",
                        "name": "workers",
                        "replicas": 3,
                        "variables": {"overrides": values},
                    }
                ]
            },
            "variables": [*values, {"name": "defaultStorageClass", "value": "bf-k8s"}],
        }
    }


@pytest.mark.parametrize("api", [*LATER, "cluster.x-k8s.io/v1beta1"])
def test_what_a_later_api_is_sent_is_seen_again_in_the_same_words(api):
    disk = {"volumes": {"containerd": {"mount_path": "/var/lib/containerd", "capacity": "50GiB"}}}
    pools = {
        "small": {"count": 2, "vm_class": "guaranteed-small", "storage_class": "bf-k8s"},
        "large": {"count": 1, "vm_class": "x", "storage_class": "y", **disk},
    }
    spec = written(
        api=api,
        version=FULL,
        workers=pools,
        storage_classes=["bf-k8s"],
        default_storage_class="bf-k8s",
        network={"pods": ["192.168.0.0/16"], "services": ["10.96.0.0/12"], "service_domain": "cluster.local"},
    )
    seen = forms.FORMS[api].view(forms.manifest("c", "cnasg", spec, {})["spec"], "")
    assert {name: seen[name] for name in seen if name != "cluster_class"} == form.wanted(spec, {})


def test_a_release_that_nobody_shows_is_written_by_its_whole_name():
    with pytest.raises(Refusal, match="full name of a release"):
        steps(written(api=LATER[0]), None, facts=TanzuClusterFacts({"cnasg": Offer()}))
    assert steps(written(api=LATER[0], version=FULL), None, facts=TanzuClusterFacts({"cnasg": Offer()}))


@pytest.mark.parametrize(
    ("version", "says"),
    [("v1.24", "no release v1.23 to go through"), ("v1.19.1", "older"), ("v1.20.1", "older")],
)
def test_versions_go_up_one_minor_at_a_time(version, says):
    with pytest.raises(Refusal, match=says) as refused:
        steps(written(version=version), existing(written()))
    assert refused.value.field == "version"


@pytest.mark.parametrize(
    ("field", "changes", "says"),
    [
        (
            "control_plane.vm_class",
            {"control_plane": {"count": 1, "vm_class": "best-effort-xlage", "storage_class": "bf-k8s"}},
            "did you mean best-effort-xlarge",
        ),
        (
            "workers.w.storage_class",
            {"workers": {"w": {"count": 1, "vm_class": "guaranteed-small", "storage_class": "gold"}}},
            "no storage class gold",
        ),
        ("default_storage_class", {"default_storage_class": "gold"}, "no storage class gold"),
        ("version", {"version": "v1.99"}, "no release v1.99"),
    ],
)
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
    assert steps(spec, None, namespace=Promised(), facts=TanzuClusterFacts())


def test_where_the_supervisor_does_not_say_it_decides_itself():
    assert steps(written(version="v1.99"), None, facts=TanzuClusterFacts({"cnasg": Offer()}))


def test_a_network_can_not_change_and_a_control_plane_not_shrink():
    with pytest.raises(Refusal, match="network"):
        steps(written(network={"pods": ["10.0.0.0/16"]}), existing(written()))
    three = written(control_plane={"count": 3, "vm_class": "best-effort-xlarge", "storage_class": "bf-k8s"})
    with pytest.raises(Refusal, match="shrink"):
        steps(written(), existing(three))


def test_another_namespace_means_making_it_anew():
    state = existing(written(namespace="other"))
    state = State(**{**vars(state), "namespace": "other"})
    move, create = steps(written(), state)
    assert isinstance(move, Move)
    assert move.waits_ready
    assert isinstance(create, Create)


def test_deleting_and_waiting_until_it_is_gone():
    (step,) = steps(None, existing(written()))
    assert isinstance(step, Delete)
    assert steps(None, existing(written(), going=True)) == ()
    assert steps(None, None) == ()


@pytest.mark.parametrize(
    ("phase", "nodes", "status"),
    [
        ("creating", {}, Ready.WAITING),
        ("running", {"a": "ready"}, Ready.WAITING),
        ("running", dict.fromkeys("abcd", "ready"), Ready.READY),
        ("running", None, Ready.READY),
        ("running", dict.fromkeys("abcde", "ready"), Ready.WAITING),
        ("failed", {}, Ready.FAILED),
        ("updateFailed", None, Ready.FAILED),
    ],
)
def test_ready_is_running_with_every_node(phase, nodes, status):
    state = State(**{**vars(existing(written(), phase=phase)), "nodes": nodes, "messages": ("no capacity",)})
    found = TanzuCluster.ready(object.__new__(TanzuCluster), written(), state)
    assert found.status is status
    assert status is not Ready.FAILED or found.why == "no capacity"


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": {}},
        {
            "workers": {
                "a": {"count": 1, "vm_class": "x", "storage_class": "y"},
                "b": {"count": 1, "vm_class": "x", "storage_class": "y"},
            }
        },
        {"control_plane": {"count": 2, "vm_class": "x", "storage_class": "y"}},
        {"version": "1.20"},
        {"network": {"pods": ["10.0.0.1/8"]}},
        {"api": "run.tanzu.vmware.com/v1alpha9"},
        {"storage_classes": ["a"], "default_storage_class": "b"},
    ],
)
def test_what_can_not_be_is_an_error_in_the_file(changes):
    with pytest.raises(ValidationError):
        written(**changes)


@pytest.mark.parametrize(
    ("full", "wanted", "same"),
    [
        (FULL, "v1.20.2", True),
        (FULL, "v1.20", True),
        (FULL, FULL, True),
        ("v1.20.2---vmware.1-tkg.2.3e10706", FULL, True),
        (FULL, "v1.20.22", False),
        ("v1.20.22+x", "v1.20.2", False),
        ("v1.2.0", "v1.20", False),
    ],
)
def test_versions_match_at_their_joints(full, wanted, same):
    assert upgrade.matches(full, wanted) is same


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    part = {"count": 1, "class": "best-effort-small", "storageClass": "gold"}
    spec = {"distribution": {"version": "v1.20.2"}, "topology": {"controlPlane": part, "workers": part}}
    kube, body = (
        supervisor(sandbox),
        {
            "apiVersion": "run.tanzu.vmware.com/v1alpha1",
            "kind": "TanzuKubernetesCluster",
            "metadata": {"name": name},
            "spec": spec,
        },
    )
    look = kube_object(kube, TANZU, body)
    until(lambda: kube.call("GET", f"{TANZU}/{name}").get("status", {}).get("phase") == "running")
    return look


UNMANAGED = Entry(
    at="cluster-01",
    plant=unmanaged,
    inside=(
        lambda sandbox: config_map(guest(sandbox, "team-a", "cluster-01"), "default"),
        "ConfigMap default/theirs",
    ),
)
