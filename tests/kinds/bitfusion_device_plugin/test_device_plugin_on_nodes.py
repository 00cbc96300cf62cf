"""The device plug-in's pods on nodes: which ones, and what is reported where the kubelet's folder is another."""

from __future__ import annotations

import pytest
from at_cluster import Site
from kube_api import somebody_patches
from pydantic import ValidationError

from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec
from bfinfra.model.refs import Key

pytestmark = pytest.mark.thorough

KEY = Key.parse("bitfusion_device_plugin/p")
TKGI = "/var/vcap/data/kubelet"


@pytest.fixture
def kubelet_folders():
    return {"worker": TKGI}


@pytest.fixture
def api(sandbox_api):
    return sandbox_api


@pytest.fixture
def site(tmp_path, api):
    made = Site(tmp_path, api)
    made.resources = {
        "namespace": {"bwki": {"cluster": "k"}},
        "bitfusion_device_plugin": {"p": {"cluster": "k"}},
    }
    return made


def allocatable(cluster, node="worker"):
    return cluster.get("v1", "Node", node)["status"]["allocatable"].get("bitfusion.io/gpu", "0")


def test_a_folder_that_is_not_the_kubelet_s_fails_with_the_log_of_the_plug_in_and_the_folders_that_are_known(
    site, cluster
):
    ended = site.apply().endings[KEY]
    assert ended.ending == "failed"
    assert (
        "worker registers no bitfusion.io/gpu: its kubelet's folder seems not to be /var/lib/kubelet"
        in ended.problem.why
    )
    assert (
        "listen unix /var/lib/kubelet/device-plugins/bitfusion.io: bind: no such file or directory"
        in ended.problem.why
    )
    assert f"{TKGI} (TKGI)" in ended.problem.why
    assert allocatable(cluster) == "0"
    site.resources["bitfusion_device_plugin"]["p"]["kubelet_folder"] = TKGI
    assert site.applied().endings[KEY].note == "1 nodes advertise bitfusion.io/gpu, 1000 each"
    assert allocatable(cluster) == "1000"


def test_the_webhook_runs_on_a_master_node_and_the_plug_in_where_a_label_says(site, cluster):
    master = "node-role.kubernetes.io/master"
    somebody_patches(
        cluster,
        "nodes/worker",
        {
            "metadata": {"labels": {master: "", "gpus": "remote"}},
            "spec": {"taints": [{"key": master, "effect": "NoSchedule"}]},
        },
    )
    tolerations = [{"key": master, "operator": "Exists", "effect": "NoSchedule"}]
    site.resources["bitfusion_device_plugin"]["p"] |= {
        "kubelet_folder": TKGI,
        "webhook_nodes": {"selector": {master: ""}, "tolerations": tolerations},
        "plugin_nodes": {"selector": {"gpus": "remote"}, "tolerations": tolerations},
    }
    site.applied()
    webhook = cluster.get("apps/v1", "Deployment", "bitfusion-webhook-deployment", "bwki")["spec"][
        "template"
    ]["spec"]
    assert (webhook["nodeSelector"], webhook["tolerations"]) == ({master: ""}, tolerations)
    site.resources["bitfusion_device_plugin"]["p"]["plugin_nodes"] = {"selector": {"gpus": "none"}}
    assert "has no node to run on" in site.apply(deadline=1).endings[KEY].problem.why


@pytest.mark.parametrize(
    "toleration", [{}, {"operator": "Exists", "value": "x"}, {"operator": "Maybe", "key": "x"}]
)
def test_a_toleration_that_kubernetes_would_refuse_is_no_spec(toleration):
    with pytest.raises(ValidationError):
        Spec.model_validate({"cluster": "k", "webhook_nodes": {"tolerations": [toleration]}})
