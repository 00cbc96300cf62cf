"""The site of the guide for PVRDMA on the sandbox: applied once; then fields changed in the file, or in the
world, are what the plan names.

What goes by Ansible takes minutes: the whole site lives with --peers, and always without its machines'
insides, on a cluster by kubeconfig.
"""

from __future__ import annotations

import base64
import gzip
import re
from pathlib import Path

import pytest
from documents import Changed, applied, expected, named
from kinds.lifecycle import EVERYTHING, QUICK, apply, endings, made, plan, world
from pyVmomi import vim
from rights.given import administrator

import bfinfra
import bfinfra.sandbox
from bfinfra.engine.apply import Options
from bfinfra.model.finding import Health

SPECS = Path(__file__).parents[1] / "specs"
WHOLE, WORLD = SPECS / "pvrdma-rdg.yaml", SPECS / "worlds/pvrdma-rdg.yaml"
INSIDES = re.compile(r"^linux_host:.*?(?=^namespace:)", re.DOTALL | re.MULTILINE)
BY_KUBECONFIG = "kubernetes_cluster:\n  rdg: {kubeconfig: {file: kubeconfigs/rdg.kubeconfig}}\n\n"
TEXT = INSIDES.sub(BY_KUBECONFIG, WHOLE.read_text())


@pytest.fixture(scope="module")
def rdg(tmp_path_factory):
    """The guide's world without waiting times, its cluster there from the start, the site applied to it."""
    state = tmp_path_factory.mktemp("rdg")
    (state / "world.yaml").write_text(WORLD.read_text().replace("kubeadm: sckubm01}", "gpus: 1, nodes: 4}"))
    site = written(state, TEXT)
    with applied(site, state / "world.yaml", state) as running:
        yield running


def written(folder: Path, text: str) -> Path:
    (folder / "cloud-init").symlink_to(SPECS / "cloud-init")
    (folder / "site.yaml").write_text(text)
    return folder / "site.yaml"


def test_it_applies_whole(rdg):
    assert made(rdg.outcome), endings(rdg.outcome)
    notes = {str(key): ended.note for key, ended in rdg.outcome.endings.items()}
    assert notes["mpi_job/tensorflow-benchmarks"] == "1205.60 images/sec on 4 processes over roce"


def test_a_second_apply_writes_nothing(rdg):
    before = rdg.tally()["written"]
    assert set(endings(apply(rdg.site, rdg)).values()) == {"kept"}
    assert rdg.tally()["written"] == before


CHANGED: Changed = [
    ("    mtu: 9000\n    uplinks", "    mtu: 1500\n    uplinks", "distributed_switch/roce", {"mtu"}),
    ("    mtu: 9000\n    hosts:", "    mtu: 1500\n    hosts:", "vmkernel_adapter/pvrdma", {"mtu"}),
    ("sc2esx27: [vmnic2]}", "sc2esx27: [vmnic3]}", "distributed_switch/roce", {"hosts.sc2esx27"}),
    ("vlan: 31, ports: 16", "vlan: 32, ports: 16", "port_group/high-speed", {"vlan"}),
    (
        "sc2esx26: 192.168.0.26/24",
        "sc2esx26: 192.168.0.126/24",
        "vmkernel_adapter/pvrdma",
        {"hosts.sc2esx26"},
    ),
    (
        "    adapter: pvrdma\n",
        "    value: vmk0\n",
        "host_option/pvrdma",
        {"adapter", "value", *(f"hosts.sc2esx{n}" for n in range(24, 28))},
    ),
    (
        "    ruleset: pvrdma\n",
        "    ruleset: pvrdma\n    enabled: false\n",
        "host_firewall_rule/pvrdma",
        {"enabled", *(f"hosts.sc2esx{n}" for n in range(24, 28))},
    ),
    ("    memory: 16GiB", "    memory: 20GiB", "virtual_machine/sckubm01", {"memory"}),
    (
        "meta_data: cloud-init/sckubw02.yaml",
        "meta_data: cloud-init/sckubw03.yaml",
        "virtual_machine/sckubw02",
        {"cloud_init.meta_data"},
    ),
    ("workers: 4", "workers: 3", "mpi_job/tensorflow-benchmarks", {"workers"}),
    ("transport: roce", "transport: tcp", "mpi_job/tensorflow-benchmarks", {"transport"}),
]


def test_fields_changed_in_the_file_are_what_the_plan_names_and_nothing_else(rdg, tmp_path):
    assert named(rdg.site, tmp_path, CHANGED, rdg) == expected(CHANGED)


def test_workers_have_the_adapters_and_the_gpu_of_the_guide(rdg):
    with administrator(rdg) as si:
        for number in (1, 2, 3, 4):
            vm = si.content.searchIndex.FindByInventoryPath(f"/lab/vm/sckubw0{number}")
            devices = vm.config.hardware.device
            assert vm.runtime.host.name == f"sc2esx{23 + number}"
            assert [
                d.deviceProtocol for d in devices if isinstance(d, vim.vm.device.VirtualVmxnet3Vrdma)
            ] == ["rocev2"]
            assert [
                d.backing.vgpu for d in devices if isinstance(d, vim.vm.device.VirtualPCIPassthrough)
            ] == ["grid_t4-16c"]
            assert (vm.config.hardware.memoryMB, vm.config.memoryAllocation.reservation) == (24576, 24576)
            meta = {option.key: option.value for option in vm.config.extraConfig}["guestinfo.metadata"]
            assert f"192.168.0.5{number}/24" in gzip.decompress(base64.b64decode(meta)).decode()


def test_the_doctor_finds_the_hosts_as_the_guide_wants_them(rdg):
    found = [
        each
        for each in bfinfra.diagnose(
            bfinfra.load(rdg.site, sandbox=rdg), context=bfinfra.RunContext(sandbox=rdg)
        )
        if each.check.startswith("hosts.")
    ]
    assert {each.check for each in found} == {
        "hosts.clocks",
        "hosts.alike",
        "hosts.software",
        "hosts.graphics",
    }
    assert {each.health for each in found} == {Health.GOOD}, found


def test_what_somebody_changes_on_a_host_is_drift_and_is_put_right(rdg):
    with administrator(rdg) as si:
        host = si.content.searchIndex.FindByInventoryPath("/lab/host/workload/sc2esx25")
        host.configManager.firewallSystem.DisableRuleset("pvrdma")
        device = next(
            nic.device for nic in host.config.network.vnic if nic.spec.ip.ipAddress == "192.168.0.25"
        )
        host.configManager.networkSystem.RemoveVirtualNic(device)
    named = {str(item.key): {change.field for change in item.named} for item in plan(rdg.site, rdg).pending}
    option = {
        "host_option/pvrdma": {"hosts.sc2esx25"}
    }  # what the new adapter will be called is not known yet
    assert named == option | {
        "host_firewall_rule/pvrdma": {"hosts.sc2esx25"},
        "vmkernel_adapter/pvrdma": {"hosts.sc2esx25"},
    }
    outcome = apply(rdg.site, rdg)
    assert made(outcome), endings(outcome)
    assert plan(rdg.site, rdg).pending == ()


def test_destroy_leaves_the_world_as_it_was_before_the_first_apply(rdg):
    gone = apply(rdg.site, rdg, destroy=True)
    assert made(gone), endings(gone)
    assert world(rdg) == rdg.before


def test_without_a_device_plug_in_its_workers_find_no_node_and_that_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "world.yaml").write_text(
        WORLD.read_text().replace("kubeadm: sckubm01}", "gpus: 1, nodes: 4}")
    )
    inside = re.search(r"^namespace:.*", TEXT, re.DOTALL | re.MULTILINE)
    assert inside
    bare = re.sub(
        r"^nvidia_device_plugin:.*?(?=^mpi_operator:)", "", inside[0], flags=re.DOTALL | re.MULTILINE
    )
    site = written(tmp_path, f"site: pvrdma-rdg\n{BY_KUBECONFIG}{bare}")
    running = bfinfra.sandbox.start(tmp_path / "world.yaml", tmp_path / "sandbox", pace=0)
    try:
        options = Options(retry=QUICK, deadline=2)
        outcome = bfinfra.apply(
            bfinfra.load(site, sandbox=running),
            approve=lambda _: EVERYTHING,
            options=options,
            context=bfinfra.RunContext(sandbox=running),
        )
        assert (
            "tensorflow-benchmarks-worker-0 finds no node: 0/4 nodes are available: 4 Insufficient "
            "nvidia.com/gpu."
        ) in endings(outcome)["mpi_job/tensorflow-benchmarks"]
    finally:
        bfinfra.sandbox.stop(tmp_path / "sandbox")


@pytest.mark.peers
@pytest.mark.thorough
def test_the_whole_site_makes_its_cluster_on_its_machines_and_goes(tmp_path, monkeypatch):
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    whole = bfinfra.sandbox.start(WORLD, tmp_path / "sandbox", pace=0)
    try:
        before = world(whole)
        first = apply(WHOLE, whole)
        assert made(first), endings(first)
        notes = {str(key): ended.note for key, ended in first.endings.items()}
        assert notes["mpi_job/tensorflow-benchmarks"] == "1205.60 images/sec on 4 processes over roce"
        assert notes["kubeadm_cluster/rdg"] == "v1.20.15 at 172.16.7.50:6443, 5 nodes"
        assert (
            "ServerAddress=172.16.7.5"
            in whole.world()["linux"]["sckubw03"]["files"]["/etc/nvidia/gridd.conf"]
        )
        writes = whole.tally()["written"]
        assert set(endings(apply(WHOLE, whole)).values()) == {"kept"}
        assert whole.tally()["written"] == writes
        fewer = WHOLE.read_text().replace(
            "workers: [sckubw01, sckubw02, sckubw03, sckubw04]", "workers: [sckubw01, sckubw02, sckubw03]"
        )
        smaller = written(
            tmp_path, fewer.replace("    workers: 4\n", "    workers: 3\n")
        )  # each worker wants a GPU, and each node has one
        pending = next(item for item in plan(smaller, whole).pending if item.key.kind == "kubeadm_cluster")
        assert [step.title() for step in pending.steps] == [
            "empty sckubw04 and take them out of the cluster",
            "record on sckubm01, sckubw01, sckubw02, sckubw03 what is done",
        ]
        gone = apply(WHOLE, whole, destroy=True)
        assert made(gone), endings(gone)
        assert world(whole) == before
    finally:
        bfinfra.sandbox.stop(tmp_path / "sandbox")
