"""A site whose operator gives GPUs by claims, and whose job has one: its whole life, killed or not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from kinds.lifecycle import SPECS, apply, endings, made, plan
from kinds.whole_life import lives, survives
from rights.given import other

import bfinfra
from bfinfra.model.order import derived
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

SITE = f"""\
site: example
kubernetes_cluster:
  other: {{kubeconfig: {{file: other.kubeconfig}}}}
namespace:
  gpu-operator: {{cluster: other, pod_security: {{enforce: privileged}}}}
gpu_operator:
  gpus: {{cluster: other, files: [{SPECS}/manifests/gpu-operator-dra], allocate: dra}}
manifests:
  one-gpu: {{cluster: other, namespace: default, files: [{SPECS}/manifests/one-gpu.yaml]}}
workload:
  nvidia-smi:
    cluster: other
    manifest: {SPECS}/manifests/nvidia-smi-dra.yaml
    wait: finished
    after: [manifests/one-gpu]
"""
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    return path


def test_it_lives_and_goes_without_a_trace(site: Path, sandbox: Running) -> None:
    lives(site, sandbox)


@pytest.mark.thorough()
def test_killed_amid_each_way_it_is_finished_by_the_next_run(
    site: Path, sandbox: Running, tmp_path: Path
) -> None:
    survives(site, sandbox, tmp_path / "state")


def test_a_job_with_a_claim_comes_after_the_operator_and_prints_its_gpu(site: Path, sandbox: Running) -> None:
    resources = bfinfra.load(site, sandbox=sandbox).resources
    assert Key("gpu_operator", "gpus") in derived(resources)[Key("workload", "nvidia-smi")]
    done = apply(site, sandbox)
    assert made(done), endings(done)
    before = Counter(sandbox.tally()["calls"]["kubernetes"])
    assert plan(site, sandbox).warnings == ()
    asked = Counter(sandbox.tally()["calls"]["kubernetes"]) - before
    assert asked["GET /apis/resource.k8s.io/v1/resourceslices"] == 1
    cluster = other(sandbox)
    (pod,) = cluster.call("GET", f"{PODS}?labelSelector=job-name=nvidia-smi")["items"]
    slices = cluster.call("GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
    uuids = {
        device["attributes"]["uuid"]["string"]
        for each in slices
        if (each["spec"]["driver"], each["spec"]["nodeName"]) == ("gpu.nvidia.com", pod["spec"]["nodeName"])
        for device in each["spec"]["devices"]
    }
    log = cluster.text(f"{PODS}/{pod['metadata']['name']}/log")
    assert log.startswith("GPU 0: ") and any(uuid in log for uuid in uuids)
