"""Workloads whose manifests ask for Bitfusion's GPUs themselves: validate reads them as the site's device
plug-in will.
"""

from __future__ import annotations

import pytest

from bfinfra.model.errors import SiteError
from bfinfra.spec.load import load

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: p
  annotations:
    auto-management/bitfusion: all
    bitfusion-client/os: ubuntu20
    bitfusion-client/version: "450"
spec:
  containers:
  - name: c
    image: i
    command: ["python train.py"]
    resources:
      limits:
        bitfusion.io/gpu-amount: 1
"""
SITE = """\
site: s
kubernetes_cluster:
  k: {{kubeconfig: {{file: k.conf}}}}
bitfusion_device_plugin:
  p: {{cluster: {cluster}{plug_in}}}
workload:
  w: {{cluster: k, namespace: {space}, manifest: w.yaml}}
"""


def loaded(folder, *, old="", new="", pod=POD, space="team", plug_in="", cluster="k"):
    assert old in pod
    (folder / "k.conf").write_text("{}")
    (folder / "w.yaml").write_text(pod.replace(old, new, 1) if old else pod)
    (folder / "site.yaml").write_text(SITE.format(space=space, plug_in=plug_in, cluster=cluster))
    return load([folder / "site.yaml"])


def linted(site):
    return [each.problem for each in site.warnings if "w.yaml" in str(each.problem.where)]


def test_a_manifest_that_the_release_takes_is_none_of_its_business(tmp_path):
    assert linted(loaded(tmp_path)) == []


@pytest.mark.parametrize(
    ("given", "place", "words"),
    [
        ({"plug_in": ", version: '0.1'"}, "w.yaml:16:9", "release 0.1 doesn't know bitfusion.io/gpu-amount"),
        (
            {"old": "    auto-management/bitfusion: all\n"},
            "w.yaml:2:1",
            "the annotation auto-management/bitfusion is missing",
        ),
        ({"old": "gpu-amount: 1", "new": "gpu-amount: 0.5"}, "w.yaml:16:", "bitfusion.io/gpu-amount is 0.5"),
        (
            {"old": "gpu-amount: 1", "new": "gpu-amount: 1\n        bitfusion.io/gpu-memory: 8000M"},
            "w.yaml:17:",
            "works only where the plug-in's total_gpu_memory is set",
        ),
        (
            {"space": "aside", "plug_in": ", plugin_namespace: aside"},
            "w.yaml:2:1",
            "pods in aside don't reach the device plug-in's webhook",
        ),
        (
            {"plug_in": ", namespaces: [other]"},
            "w.yaml:2:1",
            "pods in team don't reach the device plug-in's webhook",
        ),
    ],
)
def test_what_is_refused_or_finds_no_node_is_refused_at_its_place_in_the_manifest(
    tmp_path, given, place, words
):
    with pytest.raises(SiteError) as refused:
        loaded(tmp_path, **given)
    (problem,) = (each for each in refused.value.problems if words in each.what)
    assert place in str(problem.where)
    assert problem.what.startswith("workload/w: ")
    assert "bitfusion_device_plugin/p" in problem.why


def test_what_runs_but_not_as_meant_is_a_warning_at_its_place(tmp_path):
    site = loaded(tmp_path, old='["python train.py"]', new='["python", "train.py"]')
    (problem,) = linted(site)
    assert "the command has several elements" in problem.what
    assert "w.yaml:13:25" in str(problem.where)


def test_a_namespace_named_bwki_is_like_any_other_where_the_plug_in_runs_elsewhere(tmp_path):
    assert linted(loaded(tmp_path, space="bwki", plug_in=", namespace: hooks")) == []


def test_pods_that_ask_nothing_of_bitfusion_and_clusters_without_the_plug_in_are_left_alone(tmp_path):
    plain = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, command: "
        "[a, b]}]}\n"
    )
    assert linted(loaded(tmp_path, pod=plain)) == []
    (tmp_path / "w.yaml").write_text(POD.replace("gpu-amount: 1", "gpu-amount: 0.5"))
    text = SITE.format(space="team", plug_in="", cluster="k").replace(
        "bitfusion_device_plugin:\n  p: {cluster: k}\n", ""
    )
    (tmp_path / "site.yaml").write_text(text)
    assert linted(load([tmp_path / "site.yaml"])) == []
