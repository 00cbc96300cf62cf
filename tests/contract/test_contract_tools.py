"""govc, kubectl and the official client do the same on the sandbox and on the peers: what they print is compared, run by run."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes.client
import kubernetes.config
import pytest
import yaml
from contract.sides import api_address
from peers.found import USER, Peers, run

from bfinfra import sandbox
from bfinfra.sandbox.makers.ova import make_ova

pytestmark = pytest.mark.peers
OPTIONS = {
    "Name": "bf-01", "DiskProvisioning": "thin", "PowerOn": False, "NetworkMapping": [{"Name": f"Network {n}", "Network": "VM Network"} for n in range(1, 5)],
    "PropertyMapping": [{"Key": key, "Value": value} for key, value in {
        "hostname": "bf-01.example.test", "customer_password": "long-enough", "vcenter_url": "https://vc.test", "vcenter_guid": "6f0b9c2e-8f7d-4c39-9d6a-1f0e2d3c4b5a",
        "vcenter_username": "u", "vcenter_password": "p", "vcenter_thumbprint": "AB", "network.ip_cidr.1": "10.0.0.5/24"}.items()],
}  # fmt: skip
Govc = Callable[..., str]


@dataclass
class Both:
    """The same command on both; `same` insists that it says the same."""

    sandbox: Govc
    peer: Govc

    def same(self, *words: str, plain: Callable[[str], Any] = lambda text: sorted(",".join(sorted(line.split(","))) for line in text.splitlines())) -> Any:
        ours, theirs = (plain(ask(*words)) for ask in (self.sandbox, self.peer))
        assert ours == theirs, " ".join(words)
        return ours

    def fails(self, *words: str) -> tuple[str, str]:
        """Both refuse; what they say."""
        said = []
        for ask in (self.sandbox, self.peer):
            with pytest.raises(AssertionError) as failed:
                ask(*words)
            said.append(str(failed.value))
        return said[0], said[1]


@pytest.fixture
def govc(world_process: sandbox.Running, own_vcsim: Peers) -> Iterator[Both]:
    world_process.reset()
    port = world_process.lookup("vc.contract.test", 443)
    assert port
    place = {"GOVC_RESOURCE_POOL": "/DC0/host/DC0_C0/Resources", "GOVC_HOST": "/DC0/host/DC0_C0/DC0_C0_H0", "GOVC_DATASTORE": "LocalDS_0", "GOVC_PERSIST_SESSION": "false",
             "GOVC_INSECURE": "1", "GOVC_USERNAME": USER}

    def on(server: str, password: str) -> Govc:
        return lambda *words: run([str(own_vcsim.bin / "govc"), *words], {**place, "GOVC_URL": f"https://{server}/sdk", "GOVC_PASSWORD": password})

    both = Both(on(f"{port[0]}:{port[1]}", world_process.env["VCENTER_PASSWORD"]), on(own_vcsim.vcsim, own_vcsim.password))
    yield both
    for ask in (both.sandbox, both.peer):
        for name in ask("ls", "/DC0/vm").split():
            ask("vm.destroy", name) if "bf-" in name else None


@pytest.mark.parametrize("words", [
    ("ls",), ("ls", "/DC0"), ("ls", "/DC0/host"), ("ls", "/DC0/datastore"), ("find", "/DC0/host/DC0_C0", "-type", "h"), ("find", "/", "-type", "d"),
    ("find", "/DC0", "-type", "f"), ("find", "/DC0", "-type", "c"), ("find", "/DC0", "-type", "m"), ("find", "/DC0/host/DC0_C0", "-type", "p"),
    ("object.collect", "-s", "/DC0/host/DC0_C0/DC0_C0_H0", "runtime.connectionState", "runtime.inMaintenanceMode", "name"),
    ("object.collect", "-s", "/DC0/vm", "name", "childType"),
], ids=" ".join)  # fmt: skip
def test_listings_say_the_same(words: tuple[str, ...], govc: Both) -> None:
    assert govc.same(*words) or words[-1] == "m"


def test_what_is_not_there_is_refused_by_both(govc: Both) -> None:
    assert govc.same("vm.info", "nothing") == []
    assert all("not found" in said for said in govc.fails("vm.power", "-on", "nothing"))


def test_an_ova_is_imported_looked_at_powered_and_destroyed(govc: Both, tmp_path: Path) -> None:
    make_ova(tmp_path / "server.ova")
    (tmp_path / "options.json").write_text(json.dumps(OPTIONS))
    for ask in (govc.sandbox, govc.peer):
        ask("import.ova", f"-options={tmp_path}/options.json", f"{tmp_path}/server.ova")
    govc.same("ls", "/DC0/vm")
    assert govc.same("vm.info", "-json", "bf-01", plain=machine)["power"] == "poweredOff"
    assert [kind for kind, _ in govc.same("device.ls", "-json", "-vm", "bf-01", plain=devices)].count("VirtualDisk") == 2
    govc.same("vm.change", "-vm", "bf-01", "-m", "4096", "-c", "2", "-e", "a.b=1")
    assert govc.same("vm.info", "-json", "bf-01", plain=machine)["memory"] == 4096
    govc.same("vm.power", "-on", "bf-01", plain=said)
    ours, theirs = govc.fails("vm.power", "-on", "bf-01")
    assert "in the current state (poweredOn)" in ours
    assert "InvalidPowerState" in theirs
    assert govc.same("object.collect", "-s", "/DC0/vm/bf-01", "runtime.powerState") == ["poweredOn"]
    govc.same("vm.power", "-off", "-force", "bf-01", plain=said)
    govc.same("vm.destroy", "bf-01")
    assert govc.same("ls", "/DC0/vm") == []


def test_devices_are_looked_at_and_removed_alike(govc: Both) -> None:
    for ask in (govc.sandbox, govc.peer):
        ask("vm.create", "-on=false", "-c", "2", "-m", "1024", "-g", "otherGuest", "-net", "VM Network", "bf-02")
    before = govc.same("device.ls", "-json", "-vm", "bf-02", plain=added)
    assert len(before) == 1
    govc.same("device.disconnect", "-vm", "bf-02", "ethernet-0", plain=said)
    assert govc.same("device.info", "-json", "-vm", "bf-02", "ethernet-0", plain=connected) == [False]
    govc.same("device.remove", "-vm", "bf-02", "ethernet-0")
    assert govc.same("device.ls", "-json", "-vm", "bf-02", plain=added) == []
    govc.fails("device.remove", "-vm", "bf-02", "ethernet-0")


def test_pools_and_folders_come_and_go_alike(govc: Both) -> None:
    for words in (("pool.create", "/DC0/host/DC0_C0/Resources/theirs"), ("folder.create", "/DC0/vm/theirs")):
        govc.same(*words)
        govc.fails(*words)
    govc.same("find", "/DC0/host/DC0_C0", "-type", "p")
    govc.same("ls", "/DC0/vm")
    govc.same("pool.destroy", "/DC0/host/DC0_C0/Resources/theirs")
    govc.same("object.destroy", "/DC0/vm/theirs", plain=said)
    assert govc.same("ls", "/DC0/vm") == []


def test_a_custom_attribute_is_set_and_read_alike(govc: Both) -> None:
    govc.same("fields.add", "-type", "HostSystem", "theirs", plain=lambda text: bool(text.strip()))
    govc.same("fields.set", "theirs", "x", "/DC0/host/DC0_C0/DC0_C0_H0")
    assert govc.same("fields.info", "-n", "theirs", "/DC0/host/DC0_C0/DC0_C0_H0", plain=lambda text: "x" in text.split()) is True
    govc.same("fields.rm", "theirs")


def machine(text: str) -> dict[str, Any]:
    (found,) = json.loads(text)["virtualMachines"]
    hardware = found["config"]["hardware"]
    return {"name": found["name"], "power": found["runtime"]["powerState"], "cpus": hardware["numCPU"], "memory": hardware["memoryMB"]}


def devices(text: str) -> list[tuple[str, str]]:
    """What an OVF brings: disks and adapters; which controllers a machine has by itself, and labels, are each server's own."""
    return sorted((d["type"], str(d.get("capacityInKB", ""))) for d in json.loads(text)["devices"] if d["type"] in ("VirtualDisk", "VirtualVmxnet3"))


def added(text: str) -> list[str]:
    return sorted(d["type"] for d in json.loads(text)["devices"] if d["type"].startswith(("VirtualVmxnet", "VirtualE1000")))


def connected(text: str) -> list[bool]:
    return [d["connectable"]["connected"] or d["connectable"]["startConnected"] for d in json.loads(text)["devices"]]


def said(text: str) -> str:
    """Without times and ids."""
    return re.sub(r"VirtualMachine:\S+|Folder:\S+|\(.*?\)|\d+%", "", text.replace("\r", "")).split("...")[-1].strip()


@dataclass
class Cluster:
    """kubectl and the official client on one API; `space` is a namespace of the test's own."""

    kubectl: Callable[..., subprocess.CompletedProcess[str]]
    config: dict[str, Any]
    space: str


@pytest.fixture(params=["sandbox", "kube-apiserver"])
def cluster(request: pytest.FixtureRequest, peers: Peers, world_process: sandbox.Running, tmp_path: Path) -> Iterator[Cluster]:
    if request.param == "sandbox":
        world_process.reset()
        config = yaml.safe_load((world_process.files / "other.kubeconfig").read_text())
        host, _, port = api_address(config).rpartition(":")
        there = world_process.lookup(host, int(port))
        assert there
        config["clusters"][0]["cluster"]["server"] = f"https://{there[0]}:{there[1]}"
    else:
        config = yaml.safe_load(peers.kubeconfig.read_text())
    file, space = tmp_path / "kubeconfig", f"tools-{uuid.uuid4().hex[:8]}"
    file.write_text(yaml.safe_dump(config))
    command = [str(peers.bin / "kubectl"), "--kubeconfig", str(file), "-n", space]

    def kubectl(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *words], env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, input=given, capture_output=True, text=True, timeout=60, check=False)

    kubectl("create", "namespace", space)
    yield Cluster(kubectl, config, space)
    kubectl("delete", "namespace", space, "--wait=false")


def manifest(**data: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data})


POD = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1d"]}]}})
APPLY = ("apply", "--server-side", "-f", "-")


def outcome(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    return done.returncode, done.stdout.strip()


def test_kubectl_applies_differs_and_conflicts_alike(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    assert outcome(kubectl(*APPLY, given=manifest(a="1"))) == (0, "configmap/settings serverside-applied")
    assert kubectl("diff", "--server-side", "-f", "-", given=manifest(a="1")).returncode == 0
    differs = kubectl("diff", "--server-side", "-f", "-", given=manifest(a="2"))
    assert differs.returncode == 1, differs.stderr
    assert {line for line in differs.stdout.splitlines() if re.match(r"[-+] ", line)} >= {'-  a: "1"', '+  a: "2"'}
    conflict = kubectl(*APPLY, "--field-manager=other", given=manifest(a="3"))
    assert conflict.returncode == 1
    assert 'conflict with "kubectl": .data.a' in conflict.stderr
    assert kubectl(*APPLY, "--field-manager=other", "--force-conflicts", given=manifest(a="3")).returncode == 0
    assert outcome(kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.a}")) == (0, "3")


def test_kubectl_waits_alike(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    assert kubectl(*APPLY, given=POD).returncode == 0
    assert outcome(kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")) == (0, "pod/p condition met")
    assert kubectl("delete", "pod", "p", "--wait=false").returncode == 0
    assert kubectl("wait", "--for=delete", "pod/p", "--timeout=40s").returncode == 0
    late = kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=1s")
    assert late.returncode == 1
    assert "not found" in late.stderr


def test_kubectl_is_refused_alike(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    missing = kubectl("get", "configmap", "nothing")
    assert (missing.returncode, missing.stderr.strip()) == (1, 'Error from server (NotFound): configmaps "nothing" not found')
    assert kubectl("create", "-f", "-", given=manifest()).returncode == 0
    again = kubectl("create", "-f", "-", given=manifest())
    assert "(AlreadyExists)" in again.stderr and 'configmaps "settings" already exists' in again.stderr
    unknown = kubectl(*APPLY, "--validate=false", given=manifest()[:-1] + ', "nonsense": true}')
    assert unknown.returncode == 1
    assert "nonsense" in unknown.stderr
    assert outcome(kubectl("auth", "can-i", "delete", "secrets")) == (0, "yes")


def test_the_official_client_sees_the_same(cluster: Cluster) -> None:
    with kubernetes.config.new_client_from_config_dict(cluster.config) as client:
        core = kubernetes.client.CoreV1Api(client)
        made = core.create_namespaced_config_map(cluster.space, {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        assert made.data == {"a": "1"}
        core.patch_namespaced_config_map("settings", cluster.space, {"data": {"b": "2"}})
        assert core.read_namespaced_config_map("settings", cluster.space).data == {"a": "1", "b": "2"}
        assert "settings" in {each.metadata.name for each in core.list_namespaced_config_map(cluster.space).items}
        with pytest.raises(kubernetes.client.ApiException) as failed:
            core.create_namespaced_config_map(cluster.space, {"metadata": {"name": "settings"}})
        assert (failed.value.status, json.loads(failed.value.body)["reason"]) == (409, "AlreadyExists")
        core.delete_namespaced_config_map("settings", cluster.space)
        with pytest.raises(kubernetes.client.ApiException) as failed:
            core.read_namespaced_config_map("settings", cluster.space)
        assert (failed.value.status, json.loads(failed.value.body)["details"]["kind"]) == (404, "configmaps")
