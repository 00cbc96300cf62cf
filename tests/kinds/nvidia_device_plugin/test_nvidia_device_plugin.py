"""NVIDIA's device plug-in: upstream's manifest from a site's fields, drift by field, adoption of what
`kubectl create -f` made, and when nodes offer GPUs.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from at_cluster import Site
from kinds.lifecycle import EVERYTHING, EXAMPLES, QUICK, SPECS, apply, drift, endings, made, plan
from kinds.nvidia_manifests import OLD, OLDEST, UPSTREAM
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, kube_object
from rights.given import other

import bfinfra
import bfinfra.sandbox
from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.engine.apply import Options
from bfinfra.kinds.cluster.nvidia_device_plugin.kind import Clear, Create, NvidiaDevicePlugin, State, Update
from bfinfra.kinds.cluster.nvidia_device_plugin.manifest import LABELS, NAME, fields, manifest
from bfinfra.kinds.cluster.nvidia_device_plugin.readiness import readiness
from bfinfra.kinds.cluster.nvidia_device_plugin.spec import Spec
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal, SiteError
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

MARK = Mark("s", "nvidia_device_plugin/gpus")
SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"


def spec(**changes: Any) -> Spec:
    return Spec(**{"cluster": "k", **changes})


def context(facts: Any = None, **needs: Any) -> PlanContext:
    return PlanContext(
        MARK,
        {
            "cluster": ResolvedRef(
                Key("kubernetes_cluster", "k"), None, SimpleNamespace(endpoint=Endpoint())
            ),
            **needs,
        },
        facts=facts or {},
    )


def existing(given: Spec, live: Any = None) -> State:
    body = copy.deepcopy(live or manifest(given, "kube-system"))
    body["metadata"]["uid"] = "1"
    return State(
        mark=MARK.committed(given.applied()), cluster="k", namespace="kube-system", home=Endpoint(), live=body
    )


def steps(wanted: Spec, state: State | None, **how: Any) -> Any:
    return NvidiaDevicePlugin.steps("gpus", wanted, state, context(**how))


def test_the_defaults_are_upstreams_manifest():
    assert fields(manifest(spec(), "kube-system")) == fields(yaml.safe_load(UPSTREAM))
    made_of = manifest(spec(), "kube-system")
    assert (made_of["metadata"]["name"], made_of["spec"]["selector"]) == (
        NAME,
        yaml.safe_load(UPSTREAM)["spec"]["selector"],
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"registry": "registry.example.com/nvidia"}, {"registry": "registry.example.com/nvidia"}),
        ({"version": f"sha256:{'a' * 64}"}, {"version": f"sha256:{'a' * 64}"}),
        ({"node_selector": {"gpu": "t4"}}, {"node_selector": {"gpu": "t4"}}),
        (
            {"mig_strategy": "mixed"},
            {
                "mig_strategy": "mixed",
                "security": {"capabilities": {"add": ["SYS_ADMIN"]}},
                "env": {"NVIDIA_MIG_MONITOR_DEVICES": "all"},
            },
        ),
        ({"pass_device_specs": True}, {"pass_device_specs": "true", "security": {"privileged": True}}),
        ({"runtime_class": "nvidia"}, {"runtime_class": "nvidia"}),
        (
            {"device_list_strategy": "cdi-cri"},
            {
                "device_list_strategy": "cdi-cri",
                "mounts": {
                    "/var/lib/kubelet/device-plugins": "/var/lib/kubelet/device-plugins",
                    "/var/run/cdi": "/var/run/cdi",
                    "/driver-root": "/",
                },
            },
        ),
        (
            {"kubelet_folder": "/var/vcap/data/kubelet/"},
            {"mounts": {"/var/lib/kubelet/device-plugins": "/var/vcap/data/kubelet/device-plugins"}},
        ),
    ],
)
@of_several("nvidia_device_plugin.time_slicing")
def test_each_field_changes_what_it_is_for_and_nothing_else(change, found):
    base, changed = (fields(manifest(each, "kube-system")) for each in (spec(), spec(**change)))
    assert {name: value for name, value in changed.items() if base.get(name) != value} == found


def test_control_planes_are_tolerated_on_request():
    keys = [
        each["key"]
        for each in manifest(spec(control_plane=True), "x")["spec"]["template"]["spec"]["tolerations"]
    ]
    assert keys == [
        "nvidia.com/gpu",
        "node-role.kubernetes.io/control-plane",
        "node-role.kubernetes.io/master",
    ]


def test_a_shared_gpu_is_a_configuration_that_changes_the_pods():
    pods = [manifest(spec(time_slicing=count), "x")["spec"]["template"] for count in (2, 4)]
    assert pods[0] != pods[1]
    config = yaml.safe_load(pods[1]["metadata"]["annotations"]["bfinfra.io/config"])
    assert config == {
        "version": "v1",
        "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}},
    }


@pytest.mark.parametrize("version", ["latest", "", "sha256:12"])
def test_an_image_without_a_pin_is_refused(version):
    with pytest.raises(ValueError, match="version"):
        spec(version=version)


def test_up_to_date_objects_are_left_alone_and_drift_is_named_by_field():
    assert steps(spec(), existing(spec())) == ()
    theirs = manifest(spec(version="v0.17.0"), "kube-system")
    theirs["spec"]["template"]["spec"] |= {"nodeSelector": {"theirs": "x"}}
    (update,) = steps(spec(), existing(spec(), theirs))
    assert isinstance(update, Update)
    assert {(each.field, each.now, each.wanted) for each in update.changes} == {
        ("version", "v0.17.0", "v0.20.0"),
        ("node_selector.theirs", "x", None),
    }
    assert update.patch["spec"]["template"]["spec"]["nodeSelector"] == {"theirs": None}


def test_what_cant_be_changed_is_made_anew():
    labelled = manifest(spec(), "kube-system")
    labelled["spec"]["selector"] = {"matchLabels": {"app": "theirs"}}
    for state in (
        existing(spec(), labelled),
        replace(existing(spec()), namespace="gpu"),
        replace(existing(spec()), cluster="old"),
    ):
        assert [type(each) for each in steps(spec(), state)] == [Clear, Create]


def test_two_of_one_site_in_a_cluster_are_refused_where_they_are_written(tmp_path):
    (tmp_path / "k").write_text("{}")
    two = {"gpus": {"cluster": "k"}, "more": {"cluster": "k", "namespace": "gpus"}}
    (tmp_path / "site.yaml").write_text(
        yaml.safe_dump(
            {
                "site": "s",
                "kubernetes_cluster": {"k": {"kubeconfig": {"file": "k"}}},
                "nvidia_device_plugin": two,
            }
        )
    )
    with pytest.raises(SiteError, match="NVIDIA's device plug-in"):
        bfinfra.load(tmp_path / "site.yaml")


def test_another_plugin_in_the_cluster_is_refused():
    with pytest.raises(Refusal, match="gpu-operator/nvidia-device-plugin-daemonset offers the GPUs"):
        steps(spec(), None, facts={"k": ("gpu-operator/nvidia-device-plugin-daemonset",)})
    assert steps(
        spec(),
        None,
        facts={"other": ("gpu-operator/nvidia-device-plugin-daemonset",), "k": (f"kube-system/{NAME}",)},
    )


def test_a_namespace_whose_pod_security_refuses_its_pods_is_refused():
    own = SimpleNamespace(cluster="k", namespace="gpu", pod_security=SimpleNamespace(enforce="baseline"))
    with pytest.raises(Refusal, match="Pod Security refuses"):
        steps(spec(namespace="gpu"), None, namespace=ResolvedRef(Key("namespace", "gpu"), own, None))


# when nodes offer GPUs


class Nodes:
    """A cluster that answers lists."""

    def __init__(self, **offered: Any) -> None:
        self.nodes = [
            {"metadata": {"name": name}, "status": {"allocatable": found, "capacity": found}}
            for name, found in offered.items()
        ]
        self.pods = [pod(name) for name in offered]

    def list(self, _: str, kind: str, namespace: str = "", labels: str = "") -> Any:
        assert kind == "Node" or labels == "name=nvidia-device-plugin-ds"
        return self.nodes if kind == "Node" else self.pods


def pod(node: str, **state: Any) -> Any:
    return {
        "metadata": {"name": f"p-{node}", "labels": LABELS},
        "spec": {"nodeName": node},
        "status": {"containerStatuses": [{"state": {"running": {}}, **state}]},
    }


def daemon_set(desired: int, available: int | None = None, generation: int = 1) -> Any:
    count = desired if available is None else available
    return {
        "metadata": {"generation": generation, "namespace": "kube-system", "name": NAME},
        "status": {
            "observedGeneration": 1,
            "desiredNumberScheduled": desired,
            "updatedNumberScheduled": desired,
            "numberAvailable": count,
        },
    }


def why(cluster: Nodes, live: Any, **given: Any) -> str:
    found = readiness(spec(**given), live, cluster)  # type: ignore[arg-type]  # it answers what is asked
    return f"{found.status}: {found.why or found.note}"


def test_ready_is_what_nodes_let_pods_ask_for():
    two = Nodes(a={"nvidia.com/gpu": "2"}, b={"nvidia.com/gpu": "1"})
    assert why(two, daemon_set(2)) == "ready: a: 2 nvidia.com/gpu; b: 1 nvidia.com/gpu"
    assert why(two, daemon_set(2, generation=2)) == "waiting: it was just changed"
    assert why(Nodes(a={"nvidia.com/mig-1g.5gb": "7"}), daemon_set(1)) == "ready: a: 7 nvidia.com/mig-1g.5gb"


def test_a_missing_node_for_its_pods_is_reported():
    assert (
        why(Nodes(), daemon_set(0))
        == "waiting: no node takes its pods: each has a taint that is not tolerated"
    )
    assert (
        why(Nodes(), daemon_set(0), node_selector={"gpu": "t4"})
        == "waiting: no node takes its pods: none has the labels gpu=t4 and only taints that are tolerated"
    )


def test_a_pod_that_ends_is_reported_with_its_node_and_last_words():
    cluster = Nodes(a={"nvidia.com/gpu": "1"}, b={})
    ended = {
        "terminated": {
            "message": (
                "Retrieving plugins.\nerror starting plugins: nvml init failed: ERROR_LIBRARY_NOT_FOUND\n"
            )
        }
    }
    cluster.pods[1] = pod(
        "b", state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}, lastState=ended
    )
    assert why(cluster, daemon_set(2, 1)) == (
        "waiting: b: its pod is CrashLoopBackOff: error starting plugins: nvml init failed: "
        "ERROR_LIBRARY_NOT_FOUND"
    )
    cluster.pods[1] = pod(
        "b", state={"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    )
    assert why(cluster, daemon_set(2, 1)) == "waiting: b: its pod is ImagePullBackOff: Back-off pulling image"
    cluster.pods[1] = pod("b", state={"waiting": {"reason": "InvalidImageName", "message": "no"}})
    assert why(cluster, daemon_set(2, 1)) == "failed: b: its pod is InvalidImageName: no"


def test_a_node_without_gpus_holds_it_back_unless_such_nodes_are_expected():
    cluster = Nodes(a={"nvidia.com/gpu": "1"}, b={})
    assert (
        why(cluster, daemon_set(2))
        == "waiting: b: it offers no nvidia.com/gpu, though the plug-in's pod runs there"
    )
    assert why(cluster, daemon_set(2), fail_on_init_error=False) == "ready: a: 1 nvidia.com/gpu; none on b"
    sick = Nodes(a={"nvidia.com/gpu": "0"})
    sick.nodes[0]["status"]["capacity"] = {"nvidia.com/gpu": "2"}
    assert "it has 2 GPUs, and none is healthy" in why(sick, daemon_set(1))


# on a cluster


def test_its_note_is_what_the_nodes_offer_and_somebodys_change_is_put_right(sandbox):
    outcome = apply(EXAMPLES["nvidia_device_plugin"], sandbox)
    assert made(outcome), endings(outcome)
    notes = {str(key): ended.note for key, ended in outcome.endings.items()}
    assert notes["nvidia_device_plugin/gpus"] == "other-0: 2 nvidia.com/gpu; other-1: 2 nvidia.com/gpu"
    other(sandbox).call(
        "PATCH",
        f"{SETS}/{NAME}?fieldManager=somebody",
        {"spec": {"template": {"spec": {"nodeSelector": {"theirs": "x"}}}}},
    )
    found = drift(EXAMPLES["nvidia_device_plugin"], sandbox).found
    assert [(each.field, each.by) for each in found] == [("node_selector.theirs", "somebody")]
    assert made(apply(EXAMPLES["nvidia_device_plugin"], sandbox))
    assert plan(EXAMPLES["nvidia_device_plugin"], sandbox).pending == ()


def test_it_waits_for_the_runtime_of_its_machines_and_says_on_which_and_why(tmp_path):
    world = (
        (SPECS / "worlds/flexdirect.yaml")
        .read_text()
        .replace("users: [root, ubuntu]}", "gpus: [16GiB], services: [docker.service]}")
    )
    (tmp_path / "world.yaml").write_text(world)
    (tmp_path / "site.yaml").write_text(
        "site: s\nkubernetes_cluster: {k8s: {kubeconfig: {file: "
        "k8s.kubeconfig}}}\nnvidia_device_plugin: {gpus: {cluster: k8s}}\n"
    )
    running = bfinfra.sandbox.start(tmp_path / "world.yaml", tmp_path / "sandbox", pace=0)
    try:
        options = Options(retry=QUICK, deadline=2)
        late = bfinfra.apply(
            bfinfra.load(tmp_path / "site.yaml", sandbox=running),
            approve=lambda _: EVERYTHING,
            options=options,
            context=bfinfra.RunContext(sandbox=running),
        )
        assert (
            "node-1: its pod is CrashLoopBackOff: error starting plugins: "
            in endings(late)["nvidia_device_plugin/gpus"]
        )
        assert "nvml init failed: ERROR_LIBRARY_NOT_FOUND" in endings(late)["nvidia_device_plugin/gpus"]
        for machine in ("node-1", "node-2"):
            running.change(
                {
                    "machine": machine,
                    "path": "/etc/docker/daemon.json",
                    "text": '{"runtimes": {"nvidia": {}}, "default-runtime": "nvidia"}',
                }
            )
        outcome = apply(tmp_path / "site.yaml", running)
        assert made(outcome), endings(outcome)
    finally:
        bfinfra.sandbox.stop(tmp_path / "sandbox")


@pytest.fixture
def site(tmp_path, api):
    site = Site(tmp_path, api)
    yield site
    site.apply(destroy=True, deadline=0)


@pytest.mark.parametrize(
    "api", ["sandbox"], indirect=True
)  # tests/peers has the same on a real one, in turn: a cluster has one plug-in
@pytest.mark.parametrize("text", [UPSTREAM, OLD, OLDEST], ids=["v0.20.0", "v0.14.5", "v0.7.3"])
def test_what_kubectl_made_of_upstreams_manifest_is_adopted_whole(site, cluster, text):
    before = cluster.create(yaml.safe_load(text))
    key = Key("nvidia_device_plugin", "gpus")
    site.resources = {"nvidia_device_plugin": {"gpus": {"cluster": "k"}}}
    assert len(site.plan().problems) == 1
    site.applied(adopt=frozenset({key}))
    assert fields(cluster.get("apps/v1", "DaemonSet", NAME, "kube-system")) == fields(before)
    site.apply(deadline=0)  # nodes without GPUs never offer any
    after = cluster.get("apps/v1", "DaemonSet", NAME, "kube-system")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert mark_of(after).site == site.name
    assert fields(after) == fields(manifest(spec(), "kube-system"))
    assert site.item("nvidia_device_plugin/gpus").steps == ()


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    pod = {
        "metadata": {"labels": {"name": name}},
        "spec": {"containers": [{"name": "c", "image": "busybox"}]},
    }
    body = {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"name": name}}, "template": pod},
    }
    return kube_object(other(sandbox), "/apis/apps/v1/namespaces/kube-system/daemonsets", body)


UNMANAGED = Entry(
    at="nvidia-device-plugin-daemonset", plant=unmanaged, inside="a DaemonSet's pods are its own"
)
