"""Classes with device groups, instance storage or devices of other types, as init describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, QUICK, apply, made, plan, run_context
from sandbox.asking import Rest

import bfinfra
from bfinfra.app import init
from bfinfra.engine.apply import Options
from bfinfra.model.initial import Initial
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running
from bfinfra.testing import world

pytestmark = pytest.mark.thorough

HOSTS = Path(__file__).parents[1] / "vgpu-hosts.yaml"
CLASSES = "/api/vcenter/namespace-management/virtual-machine-classes"
PAIR = "Nvidia:2@nvidia_h100-80c%NVLink"
GPU = {
    "cpus": 4,
    "memory": "16GiB",
    "memory_reservation": 100,
    "vgpus": ["nvidia_h100-40c"],
    "device_groups": [PAIR],
    "instance_storage": {"policy": "gold", "volumes": ["100GiB", "100GiB"]},
}
KEY = Key("vm_class", "gpu")


@pytest.fixture
def by_hand(sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rest:
    """A vCenter where somebody made the class gpu."""
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state-home"))
    site = {**yaml.safe_load(EXAMPLES["vm_class"].read_text()), "vm_class": {"gpu": GPU}}
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(site))
    assert made(apply(tmp_path / "other.yaml", sandbox))
    rest = Rest(sandbox)
    assert rest.call("PATCH", f"{CLASSES}/gpu", {"description": "by hand"}).status == 204
    return rest


def described(sandbox: Running, folder: Path) -> Initial:
    settings = {
        "server": "vc.small.test",
        "username": "admin@small.test",
        "password": {"env": "VCENTER_PASSWORD"},
        "trust": {"ca_file": "ca.pem"},
    }
    site = init.empty("mine", settings, folder, sandbox=sandbox)
    return init.described(site, settings, only=frozenset({"vm_class"}), context=run_context(sandbox))


def adopted(path: Path, sandbox: Running) -> bfinfra.Outcome:
    site = bfinfra.load(path, sandbox=sandbox)
    return bfinfra.apply(site, adopt_all=True, options=Options(retry=QUICK), context=run_context(sandbox))


def devices(rest: Rest) -> list[dict[str, Any]]:
    return [each["device"] for each in rest.get(f"{CLASSES}/gpu")["config_spec"]["deviceChange"]]


@world(HOSTS)
def test_groups_and_instance_storage_are_described_and_adopted_as_they_are(
    sandbox: Running, by_hand: Rest, tmp_path: Path
) -> None:
    before = by_hand.get(f"{CLASSES}/gpu")
    found = described(sandbox, tmp_path)
    assert (found.differing, KEY in found.resources) == ({}, True)
    assert yaml.safe_load(found.text)["vm_class"]["gpu"] == {**GPU, "description": "by hand"}
    path = tmp_path / "site.yaml"
    path.write_text(found.text)
    assert made(adopted(path, sandbox))
    assert plan(path, sandbox).pending == ()
    after = by_hand.get(f"{CLASSES}/gpu")
    assert after["description"].startswith("by hand\n")
    assert {**after, "description": ""} == {**before, "description": ""}


DVX = {"_typeName": "VirtualPCIPassthroughDvxBackingInfo", "deviceClass": "fpga"}


def one_of(*models: int, **narrower: int) -> dict[str, Any]:
    """The backing of a card that may be of any of these models; `narrower`: of each."""
    allowed = [
        {"_typeName": "VirtualPCIPassthroughAllowedDevice", "vendorId": 0x10DE, "deviceId": each, **narrower}
        for each in models
    ]
    return {
        "_typeName": "VirtualPCIPassthroughDynamicBackingInfo",
        "deviceName": "",
        "allowedDevice": allowed,
    }


def with_device(rest: Rest, backing: dict[str, Any]) -> dict[str, Any]:
    """Put a device in place of the vGPU of the class gpu, and return it."""
    spec = rest.get(f"{CLASSES}/gpu")["config_spec"]
    device = {"_typeName": "VirtualPCIPassthrough", "key": -20000, "backing": backing}
    change = {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": device}
    changed = {**spec, "deviceChange": [change, *spec["deviceChange"][1:]]}
    assert rest.call("PATCH", f"{CLASSES}/gpu", {"config_spec": changed}).status == 204
    return device


@world(HOSTS)
def test_a_card_of_one_of_several_models_is_one_card(sandbox: Running, by_hand: Rest, tmp_path: Path) -> None:
    with_device(by_hand, one_of(0x1DB6, 0x1DB4))
    before = by_hand.get(f"{CLASSES}/gpu")["config_spec"]
    found = described(sandbox, tmp_path)
    card = {"vendor": 0x10DE, "device": 0x1DB4, "alternatives": [{"vendor": 0x10DE, "device": 0x1DB6}]}
    assert yaml.safe_load(found.text)["vm_class"]["gpu"]["devices"] == [card]
    path = tmp_path / "site.yaml"
    path.write_text(found.text)
    assert made(adopted(path, sandbox))
    assert plan(path, sandbox).pending == ()
    by_hand.call("PATCH", f"{CLASSES}/gpu", {"config_spec": before})
    assert plan(path, sandbox).pending == (), "the order of models is no drift"
    with_device(by_hand, one_of(0x1DB4))
    (item,) = plan(path, sandbox).pending
    (change,) = item.changes
    assert (change.field, change.now) == ("devices", [{"vendor": "0x10de", "device": "0x1db4"}])
    assert made(apply(path, sandbox))
    [card_again] = [each for each in devices(by_hand) if "allowedDevice" in each["backing"]]
    assert [each["deviceId"] for each in card_again["backing"]["allowedDevice"]] == [0x1DB4, 0x1DB6]


@world(HOSTS)
@pytest.mark.parametrize("backing", [DVX, one_of(0x1DB4, subVendorId=0x10DE)], ids=["dvx", "a board"])
def test_devices_that_no_field_describes_are_named_and_kept(
    backing: dict[str, Any], sandbox: Running, by_hand: Rest, tmp_path: Path
) -> None:
    device = with_device(by_hand, backing)
    found = described(sandbox, tmp_path)
    assert KEY not in found.resources
    assert found.left_out == {"vm_class/gpu": "it has PCI devices that no field describes"}
    assert made(adopted(tmp_path / "other.yaml", sandbox))
    assert made(apply(tmp_path / "other.yaml", sandbox))
    after = devices(by_hand)
    assert [each for each in after if each["backing"] == backing] == [device]
    assert len({each["key"] for each in after}) == len(after) == 4
