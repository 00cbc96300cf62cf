"""The site of the document on the sandbox: applied once; then fields changed in the file are what the plan
names.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import Changed, applied, edited, expected, named
from kinds.lifecycle import SPECS, apply, endings, made, world

from bfinfra.cli import main

SITE = SPECS / "singapore-poc.yaml"


@pytest.fixture(scope="module")
def poc(tmp_path_factory):
    """The PoC's world without waiting times, the site applied to it."""
    with applied(SITE, SPECS / "worlds/singapore-poc.yaml", tmp_path_factory.mktemp("poc")) as running:
        yield running


def test_it_applies_whole(poc):
    assert made(poc.outcome), endings(poc.outcome)
    notes = {str(key): ended.note for key, ended in poc.outcome.endings.items()}
    assert notes["bitfusion_server/bf-01"] == "172.24.210.80:56001"
    assert "ocked 2 GPUs with partial memory 0.8" in notes["workload/pytorch-mock"]


def test_a_second_apply_writes_nothing(poc):
    before = poc.tally()["written"]
    assert set(endings(apply(SITE, poc)).values()) == {"kept"}
    assert poc.tally()["written"] == before


CHANGED: Changed = [
    ("memory: 128GiB", "memory: 160GiB", "bitfusion_server/bf-01", {"memory"}),
    ("readiness: port", "readiness: tools", "bitfusion_server/bf-01", {"readiness"}),
    (
        "hostname: bf-01.aiml.local",
        "hostname: bf-02.aiml.local",
        "bitfusion_server/bf-01",
        {"properties.hostname"},
    ),
    (
        "gateway: 172.24.210.1,",
        "gateway: 172.24.210.9,",
        "bitfusion_server/bf-01",
        {"networks.Network 1.gateway"},
    ),
    ("reboot: if_needed", "reboot: never", "gpu_host/esx209-161.aiml.local", {"reboot"}),
    ("cpu: 48GHz", "cpu: 50GHz", "supervisor_namespace/cnasg", {"limits.cpu"}),
    (
        "storage: {bf-k8s: 1TiB}",
        "storage: {bf-k8s: 1536GiB}",
        "supervisor_namespace/cnasg",
        {"storage.bf-k8s"},
    ),
    ("role: edit", "role: view", "supervisor_namespace/cnasg", {"access"}),
    (
        "vm_classes: [best-effort-xlarge]",
        "vm_classes: [best-effort-xlarge, best-effort-large]",
        "supervisor_namespace/cnasg",
        {"vm_classes"},
    ),
    (
        "workers: {workers: {count: 3",
        "workers: {workers: {count: 4",
        "tanzu_cluster/cluster-01",
        {"workers.workers.count"},
    ),
    (
        "control_plane: {count: 1",
        "control_plane: {count: 3",
        "tanzu_cluster/cluster-01",
        {"control_plane.count"},
    ),
    ("version: v1.20.2", "version: v1.21.2", "tanzu_cluster/cluster-01", {"version"}),
    (
        "token: cnasg, namespaces",
        "token: cnasg, form: single, namespaces",
        "token_secret/cluster-01-default",
        {"form"},
    ),
    (
        "username: cnasg-user",
        "username: other-user",
        "registry_credential/cred-pytorch-mock-bitfusion",
        {"username"},
    ),
    ("fraction: 0.8", "fraction: 0.5", "workload/pytorch-mock", {"fraction"}),
    (
        "base: 172.24.206.3/cnasg/pytorch-mock:ubuntu20.04",
        "base: ubuntu:20.04",
        "client_image/pytorch-mock-bitfusion",
        {"base"},
    ),
]


def test_fields_changed_in_the_file_are_what_the_plan_names_and_nothing_else(poc, tmp_path):
    assert named(SITE, tmp_path, CHANGED, poc) == expected(CHANGED)


def test_plan_and_apply_write_their_pages(poc, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site = edited(SITE, tmp_path, ("readiness: port", "readiness: tools"))
    monkeypatch.setattr("bfinfra.cli.context.sandbox", lambda args: poc)
    assert main(["plan", str(site), "--html", "plan.html"]) == 0
    assert main(["apply", str(site), "--yes", "--html", "apply.html"]) == 0
    assert "readiness: port → tools" in Path("plan.html").read_text()
    assert "updated" in Path("apply.html").read_text()


def test_destroy_leaves_the_world_as_it_was_before_the_first_apply(poc):
    gone = apply(SITE, poc, destroy=True)
    assert made(gone), endings(gone)
    assert world(poc) == poc.before
