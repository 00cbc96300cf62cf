"""The order of the documents' sites: who comes after whom though nobody wrote it down."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from kinds.lifecycle import EVERYTHING, QUICK, endings, run_context

import bfinfra
import bfinfra.sandbox
from bfinfra.engine.apply import Options
from bfinfra.engine.graph import sort, waits
from bfinfra.kinds import groups, kind
from bfinfra.model.errors import Rejected
from bfinfra.model.kind import Source
from bfinfra.model.order import Before, Ordered
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.sandbox import Running

SPECS = Path(__file__).parents[1] / "specs"
SITES = ("bitfusion-on-kubernetes", "consolidated-gpu-cluster", "flexdirect", "pvrdma-rdg", "singapore-poc")
ASKS = """
apiVersion: v1
kind: Pod
metadata: {name: train, annotations: {auto-management/bitfusion: "yes"}}
spec:
  containers:
    - {name: train, image: "pytorch:1", command: [python, train.py], resources: {limits: {bitfusion.io/gpu-num: 1}}}
"""


def loaded(name: str, tmp_path: Path, *more: str) -> Site:
    """A site of the documents, with more below it."""
    (tmp_path / "more.yaml").write_text("\n".join(more))
    return bfinfra.load(SPECS / f"{name}.yaml", *([tmp_path / "more.yaml"] if more else []))


def applied(site: Site, sandbox: Running) -> dict[str, str]:
    """How each ended in a run that waits a few seconds for it."""
    return endings(
        bfinfra.apply(
            site,
            approve=lambda _: EVERYTHING,
            options=Options(retry=QUICK, deadline=5),
            context=run_context(sandbox),
        )
    )


def why(before: Before, key: str) -> Mapping[str, str]:
    return {str(other): each for other, each in before[Key.parse(key)].items()}


@pytest.mark.parametrize("name", SITES)
def test_no_site_waits_for_itself_up_or_down(name, tmp_path):
    site = loaded(name, tmp_path)
    assert set(sort(waits(site.resources, {}))) == set(site.resources)
    down = waits({}, dict.fromkeys(site.resources), site.resources)
    assert set(sort(down)) == set(site.resources)
    up = waits(site.resources, {})
    assert all(key in down[other] for key, first in up.items() for other, each in first.items() if each), (
        "what comes up after another goes before it"
    )


def test_a_pod_that_asks_for_remote_gpus_comes_after_the_plug_in(tmp_path):
    (tmp_path / "pod.yaml").write_text(ASKS)
    site = loaded(
        "bitfusion-on-kubernetes",
        tmp_path,
        (
            f"workload: {{train: {{cluster: k8s, namespace: tensorflow-benchmark, manifest: {tmp_path}"
            f"/pod.yaml}}}}"
        ),
    )
    assert (
        why(waits(site.resources, {}), "workload/train")["bitfusion_device_plugin/k8s"]
        == "bitfusion.io/gpu on kubernetes_cluster/k8s"
    )


def test_training_comes_after_all_that_makes_a_gpu_of_its_nodes(tmp_path):
    before = waits(loaded("pvrdma-rdg", tmp_path).resources, {})
    assert (
        why(before, "mpi_job/tensorflow-benchmarks")["nvidia_device_plugin/vgpu"]
        == "nvidia.com/gpu on kubeadm_cluster/rdg"
    )
    plugin = why(before, "nvidia_device_plugin/vgpu")
    assert plugin["nvidia_container_toolkit/workers"].startswith("GPUs in containers on linux_host/sckubw")
    assert plugin["vgpu_license/workers"].startswith("vGPU license on linux_host/sckubw")


@pytest.mark.parametrize(
    ("name", "key", "other", "reason"),
    [
        ("flexdirect", "workload/tf-cnn", "flexdirect_host/nodes", "FlexDirect"),
        ("flexdirect", "workload/tf-cnn", "flexdirect_host/v100", "FlexDirect"),
        ("flexdirect", "workload/health", "flexdirect_pool/K80", "lists of FlexDirect servers"),
        (
            "flexdirect",
            "flexdirect_pool/v100",
            "flexdirect_host/nodes",
            "FlexDirect on linux_host/node-1 and 1 more",
        ),
        (
            "pvrdma-rdg",
            "mpi_job/tensorflow-benchmarks",
            "vgpu_license/workers",
            "vGPU license on linux_host/sckubw01 and 3 more",
        ),
        (
            "pvrdma-rdg",
            "mpi_job/tensorflow-benchmarks",
            "nvidia_container_toolkit/workers",
            "GPUs in containers on linux_host/sckubw01 and 3 more",
        ),
        (
            "pvrdma-rdg",
            "kubeadm_cluster/rdg",
            "nvidia_container_toolkit/workers",
            "GPUs in containers on linux_host/sckubw01 and 3 more",
        ),
        ("pvrdma-rdg", "virtual_machine/sckubw01", "host_option/pvrdma", "settings for PVRDMA on sc2esx24"),
        (
            "pvrdma-rdg",
            "virtual_machine/sckubw01",
            "host_firewall_rule/pvrdma",
            "settings for PVRDMA on sc2esx24",
        ),
        (
            "pvrdma-rdg",
            "virtual_machine/sckubw01",
            "host_graphics/vgpu",
            "graphics of type sharedDirect on sc2esx24",
        ),
        (
            "consolidated-gpu-cluster",
            "workload/pytorch-guest",
            "network_path/guest",
            "a way to the Bitfusion servers from namespace default on tanzu_cluster/hpc2-dev-cluster5",
        ),
        (
            "consolidated-gpu-cluster",
            "workload/pytorch-tkgi",
            "client_image/pytorch",
            "image harbor.hpc.local/hpc2/pytorch-bitfusion:2.0.0",
        ),
        (
            "singapore-poc",
            "workload/pytorch-mock",
            "client_image/pytorch-mock-bitfusion",
            "image 172.24.206.3/cnasg/pytorch-mock-bitfusion:latest",
        ),
    ],
)
def test_the_sites_of_the_documents_have_the_documents_order(name, key, other, reason, tmp_path):
    assert why(waits(loaded(name, tmp_path).resources, {}), key)[other] == reason


@pytest.fixture
def sandbox(request, tmp_path, monkeypatch):
    """A document's world without waiting times, with vGPU drivers on its nodes. No role of Ansible ends well
    there.
    """

    def fails(self, wanted, **_):
        raise Rejected(f"the role {wanted.role} failed")

    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("bfinfra.backends.ansible.LinuxHosts.play", fails)
    world = (
        (SPECS / f"worlds/{request.param}.yaml")
        .read_text()
        .replace("users: [root, ubuntu]}", "users: [root, ubuntu], services: [nvidia-gridd.service]}")
    )
    (tmp_path / "world.yaml").write_text(world)
    yield bfinfra.sandbox.start(tmp_path / "world.yaml", tmp_path / "sandbox", pace=0)
    bfinfra.sandbox.stop(tmp_path / "sandbox")


@pytest.mark.parametrize("sandbox", ["bitfusion-on-kubernetes"], indirect=True)
def test_where_the_plug_in_fails_the_pod_is_not_made(sandbox, tmp_path):
    (tmp_path / "pod.yaml").write_text(ASKS)
    (tmp_path / "site.yaml").write_text(
        (SPECS / "bitfusion-on-kubernetes.yaml").read_text()
        + (
            "workload:\n"
            f"  train: {{cluster: k8s, namespace: tensorflow-benchmark, manifest: {tmp_path}/pod.yaml}}\n"
            f"  other: {{cluster: k8s, namespace: tensorflow-benchmark, manifest: {SPECS}"
            f"/manifests/hello.yaml, wait: finished}}\n"
        )
    )
    sandbox.faults(
        {"api": "kubernetes", "method": "POST *mutatingwebhookconfigurations*", "do": {"status": 403}}
    )
    found = applied(bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox), sandbox)
    assert [
        found[each].partition(":")[0]
        for each in ("bitfusion_device_plugin/k8s", "workload/train", "workload/other")
    ] == ["failed", "blocked", "done"]
    assert "bitfusion.io/gpu on kubernetes_cluster/k8s" in found["workload/train"]


@pytest.mark.thorough("bitfusion-on-kubernetes-True-done")
@pytest.mark.parametrize(("ordered", "ends"), [(True, "done"), (False, "still-waiting")])
@pytest.mark.parametrize("sandbox", ["bitfusion-on-kubernetes"], indirect=True)
def test_in_one_run_the_webhook_changes_the_pod_and_without_that_order_it_would_find_no_node(
    sandbox, tmp_path, monkeypatch, ordered, ends
):
    (tmp_path / "pod.yaml").write_text(ASKS)
    (tmp_path / "more.yaml").write_text(
        f"workload: {{train: {{cluster: k8s, namespace: tensorflow-benchmark, manifest: {tmp_path}"
        f"/pod.yaml}}}}"
    )
    if not ordered:
        monkeypatch.setattr("bfinfra.kinds.cluster.workload.spec.Spec.requires", Ordered.requires)
    found = applied(
        bfinfra.load(SPECS / "bitfusion-on-kubernetes.yaml", tmp_path / "more.yaml", sandbox=sandbox), sandbox
    )
    assert (found["bitfusion_device_plugin/k8s"], found["workload/train"].partition(":")[0]) == ("done", ends)
    assert ("Insufficient bitfusion.io/gpu-num" in found["workload/train"]) is not ordered


@pytest.mark.thorough
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("sandbox", ["flexdirect"], indirect=True)
def test_where_flexdirect_or_a_license_fails_no_job_is_made_and_without_that_order_they_would_be(
    sandbox, tmp_path, monkeypatch, ordered
):
    (tmp_path / "more.yaml").write_text(
        "vgpu_license: {nodes: {hosts: [node-1], server: 172.16.7.5}}\n"
        "mpi_operator: {mpi: {cluster: k8s, namespace: training}}\n"
        "mpi_job: {train: {cluster: k8s, namespace: training, image: tf, command: [train], workers: 2, "
        "transport: tcp}}\n"
    )
    site = bfinfra.load(SPECS / "flexdirect.yaml", tmp_path / "more.yaml", sandbox=sandbox)
    if not ordered:
        for each in ("workload", "mpi_job"):
            monkeypatch.setattr(f"bfinfra.kinds.{groups()[each]}.{each}.spec.Spec.requires", Ordered.requires)
    found = applied(site, sandbox)
    assert {
        found[each].partition(":")[0]
        for each in ("flexdirect_host/v100", "flexdirect_host/nodes", "vgpu_license/nodes")
    } == {"failed"}
    jobs = {found[each].partition(":")[0] for each in ("workload/health", "workload/tf-cnn", "mpi_job/train")}
    if ordered:
        assert jobs == {"blocked"}
        assert "(FlexDirect)" in found["workload/tf-cnn"] and "(vGPU license)" in found["mpi_job/train"]
    else:
        assert not jobs & {"blocked", "done"}, "each was started, and nothing it needs is there"


@pytest.mark.parametrize(
    ("name", "last", "first"),
    [
        ("bitfusion-on-kubernetes", "token_secret/k8s", "bitfusion_device_plugin/k8s"),
        ("flexdirect", "flexdirect_host/nodes", "workload/tf-cnn"),
        ("flexdirect", "flexdirect_pool/K80", "workload/health"),
        ("pvrdma-rdg", "vgpu_license/workers", "mpi_job/tensorflow-benchmarks"),
        ("pvrdma-rdg", "nvidia_container_toolkit/workers", "kubeadm_cluster/rdg"),
        ("pvrdma-rdg", "host_option/pvrdma", "virtual_machine/sckubw04"),
        ("singapore-poc", "bitfusion_server/bf-01", "token_secret/cluster-01-default"),
        ("consolidated-gpu-cluster", "bitfusion_server/bf-02", "network_path/tkgi"),
    ],
)
def test_they_go_in_the_reverse_order(name, last, first, tmp_path):
    site = loaded(name, tmp_path)
    existing = {key: None for key in site.resources if not issubclass(kind(key.kind), Source)}
    down = waits({}, existing, site.resources)
    order = [str(key) for key in sort(down)]
    assert order.index(first) < order.index(last)
