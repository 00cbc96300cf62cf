"""The sandbox world that is written for a site carries an apply of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
import yaml
from kinds.lifecycle import EXAMPLES, SPECS, apply, endings, made

import bfinfra
from bfinfra import sandbox, worlds
from bfinfra.app.sandbox_world import world_of
from bfinfra.cli import main
from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.world_file import load
from bfinfra.sandbox.world_schema import schema
from bfinfra.spec.layout import formatted

pytestmark = pytest.mark.thorough

SITES = {path.stem: path for path in [*sorted(SPECS.glob("*.yaml")), *EXAMPLES.values()]}
TRIED = {
    "singapore-poc",
    "bitfusion-on-kubernetes",
    "bitfusion_server",
    "supervisor",
    "tanzu_cluster",
    "network_path",
}
"""What every run applies: servers, supervisors, clusters of others. The rest runs with --peers."""
LONG = [pytest.param(name, marks=[] if name in TRIED else pytest.mark.peers) for name in SITES]


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sites of one name are applied in several tests at a time."""
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state-home"))


@pytest.mark.thorough("namespace", "virtual_machine")
@pytest.mark.parametrize("name", SITES)
def test_the_world_of_every_example_is_one(name: str, tmp_path: Path) -> None:
    found = world_of(bfinfra.load(SITES[name]))
    file = tmp_path / "world.yaml"
    file.write_text(found.text)
    world = load(file, Passwords(b"seed"))
    assert world.hosts
    jsonschema.Draft7Validator(schema()).validate(yaml.safe_load(found.text))
    assert formatted(file, found.text) == found.text
    assert found.left_out == {}


@pytest.mark.parametrize("name", LONG)
def test_the_world_of_an_example_carries_an_apply_of_it(name: str, tmp_path: Path) -> None:
    world, state = tmp_path / "world.yaml", tmp_path / "state"
    world.write_text(world_of(bfinfra.load(SITES[name])).text)
    running = sandbox.start(world, state, pace=0)
    try:
        outcome = apply(SITES[name], running)
        assert made(outcome), endings(outcome)
    finally:
        sandbox.stop(state)


def test_device_groups_get_linked_cards_for_two_machines(tmp_path: Path) -> None:
    pair = "Nvidia:2@nvidia_h100-80c%NVLink"
    given = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text())
    given["supervisor_namespace"]["team-a"]["vm_classes"].append("pair")
    gpus = {"memory_reservation": 100, "device_groups": [pair], "vgpus": ["nvidia_h100-40c"]}
    given["vm_class"] = {"pair": {"cpus": 4, "memory": "16GiB", **gpus}}
    site, world, state = tmp_path / "site.yaml", tmp_path / "world.yaml", tmp_path / "state"
    site.write_text(yaml.safe_dump(given))
    found = world_of(bfinfra.load(site))
    world.write_text(found.text)
    assert found.left_out == {}
    (host,) = (each for each in load(world, Passwords(b"seed")).hosts.values() if each.device_groups)
    assert [each.profiles for each in host.pci] == [("nvidia_h100-80c",)] * 4 + [("nvidia_h100-40c",)]
    running = sandbox.start(world, state, pace=0)
    try:
        outcome = apply(site, running)
        assert made(outcome), endings(outcome)
    finally:
        sandbox.stop(state)


def test_a_device_group_whose_name_tells_nothing_is_left_out(tmp_path: Path) -> None:
    given = yaml.safe_load(EXAMPLES["vm_class"].read_text())
    given["vm_class"] = {
        "odd": {"cpus": 4, "memory": "16GiB", "memory_reservation": 100, "device_groups": ["GPU and NIC"]}
    }
    given["host_graphics"] = {"vgpu": {"hosts": ["esx1.test"], "type": "sharedDirect"}}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(given))
    found = world_of(bfinfra.load(tmp_path / "site.yaml"))
    assert found.left_out == {
        "device group GPU and NIC": "its name doesn't tell its vGPUs: write it into the world"
    }


@pytest.mark.parametrize("typed", ["admin", r"LAB.TEST\admin"])
def test_an_account_may_be_without_a_domain_or_have_it_in_front(typed: str, tmp_path: Path) -> None:
    world, state, site = tmp_path / "world.yaml", tmp_path / "state", tmp_path / "site.yaml"
    site.write_text(EXAMPLES["resource_pool"].read_text().replace("admin@small.test", typed))
    world.write_text(world_of(bfinfra.load(site)).text)
    running = sandbox.start(world, state, pace=0)
    try:
        assert made(apply(site, running))
    finally:
        sandbox.stop(state)


def test_a_pinned_certificate_is_one_that_the_sandbox_does_not_have(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    pinned = EXAMPLES["resource_pool"].read_text().replace("ca_file: ca.pem", f"sha256: {'ab' * 32}")
    site.write_text(pinned)
    assert "vcenter: {trust: null}" in world_of(bfinfra.load(site)).left_out["vcenter.trust"]


def test_init_writes_it_where_the_sandbox_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLES["vm_class"], "site.yaml")
    assert main(["init", "--world", "site.yaml"]) == 0
    assert capsys.readouterr().out == (
        "Wrote worlds/site.yaml and worlds/world.schema.json.\n\nNext:\n"
        "  bfinfra plan site.yaml --sandbox\n  bfinfra apply site.yaml --sandbox\n"
    )
    assert worlds.world_of("site.yaml") == Path("worlds/site.yaml")
    assert json.loads(Path("worlds/world.schema.json").read_text()) == schema()
    assert main(["init", "--world", "site.yaml"]) == 1
    assert "worlds/site.yaml exists already" in capsys.readouterr().err


def test_the_world_of_a_variant_has_what_its_overlays_and_values_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLES["gpu_host"], "site.yaml")
    Path("prod.yaml").write_text(
        "gpu_host: {esx9.small.test: {passthrough: [{vendor: 0x10de, device: 0x1eb8}]}}"
    )
    assert main(["init", "--world", "site.yaml", "--overlay", "prod.yaml"]) == 0
    assert "  bfinfra plan site.yaml --overlay prod.yaml --sandbox\n" in capsys.readouterr().out
    assert "esx9.small.test" in Path("worlds/site.yaml").read_text()
    assert main(["init", "--overlay", "prod.yaml", "elsewhere"]) == 1
    assert "--overlay goes with --world only" in capsys.readouterr().err


def test_fields_that_get_no_sample_file_are_named(tmp_path: Path, capsys) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(
        "site: s\nvcenter: {server: vc.example.org, username: a@b, password: {command: [pass, vc]}}\n"
        "linux_host:\n  n1: {address: 10.0.0.1, key: {file: id}, trust: {sha256: 'SHA256:"
        + "A"
        * 43
        + "'}}\n"
        "workload:\n  w: {cluster: k, manifest: job.yaml}\nkubernetes_cluster:\n  k: {kubeconfig: {env: K}}\n"
    )
    assert main(["init", "--world", str(site), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["left_out"]) == {
        "vcenter.password", "linux_host/n1: trust", "workload/w: manifest", "kubernetes_cluster/k: kubeconfig",
    }  # fmt: skip


def test_a_site_without_a_world_is_shown_how_to_get_one(tmp_path: Path, capsys) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("site: s\n")
    assert main(["plan", str(site), "--sandbox"]) == 1
    assert f"next: write one with: bfinfra init --world {site}" in capsys.readouterr().err


def test_a_supervisor_across_zones_gets_a_vcenter_of_9_with_a_cluster_in_each(tmp_path: Path) -> None:
    site = yaml.safe_load(EXAMPLES["supervisor"].read_text())
    enable = site["supervisor"]["farm"]["enable"]
    del enable["vds"]["haproxy"]
    enable["vds"]["foundation"] = {}
    enable["zones"] = ["rack-1", "rack-2", "rack-3"]
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    assert main(["init", "--world", str(tmp_path / "site.yaml")]) == 0
    world = yaml.safe_load((tmp_path / "worlds/site.yaml").read_text())
    assert world["vcenter"]["version"] == "9.0.0.0"
    assert {each["zone"] for each in world["clusters"].values()} == {"rack-1", "rack-2", "rack-3"}
    assert world["clusters"]["farm"]["zone"] == "rack-1"
