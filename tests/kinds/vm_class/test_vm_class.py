from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, made, plan
from kinds.unmanaged import Entry, Look
from pydantic import ValidationError
from sandbox.asking import Rest

from bfinfra.backends.vcenter import vm_classes
from bfinfra.kinds.vcenter.vm_class import Create, Delete, Spec, State, Update, VmClass
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running
from bfinfra.testing import world

MARK = Mark("site", "vm_class/gpu")
GIB = 2**30
WORLD_7 = Path(__file__).parents[1].joinpath("vcenter-7.yaml")
CLASSES = "/api/vcenter/namespace-management/virtual-machine-classes"


def written(**changes: Any) -> Spec:
    return Spec.model_validate(
        {
            "cpus": 4,
            "memory": "16GiB",
            "memory_reservation": 100,
            "devices": [{"vendor": "0x10de", "device": "0x1db6"}],
            **changes,
        }
    )


def steps(spec: Spec | None, state: State | None) -> Any:
    return VmClass.steps("gpu", spec, state, PlanContext(MARK))


def standing(spec: Spec) -> State:
    (step,) = steps(spec, None)
    return State(mark=Mark.decode(step.settings.description), settings=step.settings)


def test_it_is_made_with_its_mark_under_the_users_own_words():
    (step,) = steps(written(description="for training"), None)
    assert isinstance(step, Create)
    assert step.settings.description.splitlines()[0] == "for training"
    assert Mark.decode(step.settings.description) == MARK.committed(
        written(description="for training").applied()
    )
    assert (step.settings.memory, step.settings.devices) == (16 * GIB, (vm_classes.Device(0x10DE, 0x1DB6),))


def test_what_stands_as_written_is_left_and_what_differs_is_named():
    assert steps(written(), standing(written())) == ()
    (step,) = steps(written(cpus=8), standing(written()))
    assert (type(step), step.changes) == (Update, (Change("cpus", 4, 8),))
    (step,) = steps(None, standing(written()))
    assert isinstance(step, Delete)


def test_a_class_that_namespaces_of_others_offer_does_not_go():
    there = standing(written())
    used = {
        Key("vm_class", "gpu"): State(
            mark=there.mark, settings=replace(there.settings, namespaces=("mine", "theirs"))
        )
    }
    mine = {Key("supervisor_namespace", "mine"): object()}
    [found] = VmClass.conflicts(mine, used, None)
    assert found.what == "it would be deleted, and the namespace theirs offers it"
    assert not list(VmClass.conflicts({**mine, Key("vm_class", "gpu"): written()}, used, None))
    assert not list(VmClass.conflicts({**mine, Key("supervisor_namespace", "theirs"): object()}, used, None))


def test_what_somebody_changed_is_drift():
    there = standing(written())
    there = State(mark=there.mark, settings=replace(there.settings, memory=8 * GIB))
    (step,) = steps(written(), there)
    assert step.changes == (Change("memory", "8GiB", "16GiB"),)


@pytest.mark.parametrize(
    "changes",
    [
        {"memory_reservation": 50},
        {"memory": "100MiB"},
        {"cpus": 0},
        {"memory_reservation": 101},
        {"devices": [], "vgpus": ["p"], "memory_reservation": 0},
    ],
)
def test_what_vcenter_would_refuse_is_an_error_in_the_file(changes):
    with pytest.raises(ValidationError):
        written(**changes)


def test_a_class_and_the_namespace_that_offers_it_come_in_one_apply_and_go_in_their_order(sandbox, tmp_path):
    given = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text())
    given["supervisor_namespace"]["team-a"]["vm_classes"] = ["gpu", "best-effort-small"]
    given["vm_class"] = {"gpu": {"cpus": 4, "memory": "16GiB"}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    rest = Rest(sandbox)
    assert rest.get(f"{CLASSES}/gpu")["namespaces"] == ["team-a"]
    assert rest.call("PATCH", f"{CLASSES}/gpu", {"cpu_count": 2}).status == 204
    (item,) = plan(path, sandbox).pending
    assert [(change.field, change.now, change.wanted) for change in item.changes] == [("cpus", 2, 4)]
    given["supervisor_namespace"]["team-a"]["vm_classes"] = ["best-effort-small"]
    del given["vm_class"]
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    assert [each["id"] for each in rest.get(CLASSES)] == ["best-effort-small", "guaranteed-small"]


def answered(devices: Any, config_spec: Any) -> dict[str, Any]:
    """A class as vCenter answers it; since 8.0.2 its devices stand in `config_spec` alone."""
    return {
        "id": "gpu",
        "cpu_count": 2,
        "memory_MB": 4096,
        "cpu_reservation": 100,
        "memory_reservation": 100,
        "description": "",
        "config_status": "READY",
        "devices": devices,
        "instance_storage": None,
        "config_spec": config_spec,
        "messages": [],
        "vms": [],
        "namespaces": [],
    }


def added(backing: dict[str, Any], operation: str = "add") -> dict[str, Any]:
    device = {"_typeName": "VirtualPCIPassthrough", "key": -20000, "backing": backing}
    return {"_typeName": "VirtualDeviceConfigSpec", "operation": operation, "device": device}


VGPU = {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": "mockup-vmiop"}
ALLOWED = {"_typeName": "VirtualPCIPassthroughAllowedDevice", "vendorId": 52, "deviceId": 53}
CARD = {
    "_typeName": "VirtualPCIPassthroughDynamicBackingInfo",
    "deviceName": "",
    "customLabel": "SampleLabel2",
    "allowedDevice": [ALLOWED],
}
LISTED = {
    "vgpu_devices": [{"profile_name": "p"}],
    "dynamic_direct_path_IO_devices": [{"vendor_id": 1, "device_id": 2}],
}


@pytest.mark.parametrize(
    ("devices", "config_spec", "vgpus", "cards"),
    [
        (
            None,
            {"_typeName": "VirtualMachineConfigSpec", "deviceChange": [added(VGPU), added(CARD)]},
            ("mockup-vmiop",),
            (vm_classes.Device(52, 53, "SampleLabel2"),),
        ),
        (None, {"_typeName": "VirtualMachineConfigSpec", "deviceChange": [added(VGPU, "remove")]}, (), ()),
        (None, {"_typeName": "VirtualMachineConfigSpec", "extraConfig": []}, (), ()),
        (None, None, (), ()),
        (LISTED, None, ("p",), (vm_classes.Device(1, 2),)),
    ],
    ids=["since 8.0.2", "taken out", "other settings", "nothing", "before 8.0.2"],
)
def test_devices_are_read_where_the_version_has_them(
    devices: Any, config_spec: Any, vgpus: Any, cards: Any
) -> None:
    found = vm_classes.read(answered(devices, config_spec))
    assert (found.vgpus, found.devices) == (vgpus, cards)


@world(WORLD_7)
def test_a_class_with_devices_is_as_written_before_8_0_2(sandbox, tmp_path):
    agrees(sandbox, tmp_path)


def test_a_class_with_devices_is_as_written_since_8_0_2(sandbox, tmp_path):
    agrees(sandbox, tmp_path)


def agrees(sandbox, tmp_path) -> None:
    given = yaml.safe_load(EXAMPLES["vm_class"].read_text())
    card = {"vendor": "0x10de", "device": "0x1eb8", "label": "training"}
    given["vm_class"] = {
        "gpu": {
            "cpus": 4,
            "memory": "16GiB",
            "memory_reservation": 100,
            "vgpus": ["grid_v100d-16c"],
            "devices": [card],
        }
    }
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    assert plan(path, sandbox).pending == ()
    del given["vm_class"]["gpu"]["vgpus"]
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    assert plan(path, sandbox).pending == ()


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    rest, path = Rest(sandbox), "/api/vcenter/namespace-management/virtual-machine-classes"
    assert rest.call("POST", path, {"id": name, "cpu_count": 1, "memory_MB": 1024}).status == 204
    return lambda: rest.get(f"{path}/{name}")


UNMANAGED = Entry(
    at="gpu-small", plant=unmanaged, inside="a class holds nothing; one that a namespace offers vCenter keeps"
)


CHANGED_FIELDS = [
    {"cpus": 8},
    {"memory": "8GiB"},
    {"cpu_reservation": 50},
    {"description": "words"},
    {"devices": []},
]
SLOW_TO_CHANGE = True
