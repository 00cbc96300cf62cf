from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, made, plan
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look
from pydantic import ValidationError
from sandbox.asking import Rest

from bfinfra.backends.vcenter import vm_classes
from bfinfra.backends.vcenter.vgpus import HostOffer
from bfinfra.kinds.vcenter.vm_class.kind import Create, Delete, State, Update, VmClass
from bfinfra.kinds.vcenter.vm_class.offered import VmClassFacts, too_new, unoffered
from bfinfra.kinds.vcenter.vm_class.spec import Spec
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running
from bfinfra.testing import world

V100 = {"vendor": "0x10de", "device": "0x1db6"}
T4 = {"vendor": "0x10de", "device": "0x1eb8"}
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


def existing(spec: Spec) -> State:
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


@of_several("vm_class.cpus")
def test_a_class_that_is_up_to_date_is_left_and_differences_are_named():
    assert steps(written(), existing(written())) == ()
    (step,) = steps(written(cpus=8), existing(written()))
    assert (type(step), step.changes, step.settings.cpus) == (Update, (Change("cpus", 4, 8),), 8)
    (step,) = steps(None, existing(written()))
    assert isinstance(step, Delete)


def test_models_of_a_card_in_another_order_are_the_same_card():
    card, turned = ({**one, "alternatives": [other]} for one, other in ((V100, T4), (T4, V100)))
    there, other = existing(written(devices=[card])), existing(written(devices=[turned]))
    assert there.settings.devices == other.settings.devices
    (step,) = steps(written(devices=[V100, T4]), there)
    assert step.changes == (Change("devices", [card], [V100, T4]),)


def test_a_class_that_namespaces_of_others_offer_does_not_go():
    there = existing(written())
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
    there = existing(written())
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
        {"devices": [{**V100, "alternatives": [V100]}]},
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
EITHER = {
    "_typeName": "VirtualPCIPassthroughDynamicBackingInfo",
    "deviceName": "",
    "allowedDevice": [{**ALLOWED, "deviceId": 54}, ALLOWED],
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
        (
            None,
            {"_typeName": "VirtualMachineConfigSpec", "deviceChange": [added(EITHER)]},
            (),
            (vm_classes.Device(52, 53, "", ((52, 54),)),),
        ),
        (None, {"_typeName": "VirtualMachineConfigSpec", "deviceChange": [added(VGPU, "remove")]}, (), ()),
        (None, {"_typeName": "VirtualMachineConfigSpec", "extraConfig": []}, (), ()),
        (None, None, (), ()),
        (LISTED, None, ("p",), (vm_classes.Device(1, 2),)),
    ],
    ids=["since 8.0.2", "one of two models", "taken out", "other settings", "nothing", "before 8.0.2"],
)
def test_devices_are_read_where_the_version_has_them(
    devices: Any, config_spec: Any, vgpus: Any, cards: Any
) -> None:
    found = vm_classes.read(answered(devices, config_spec))
    assert (found.vgpus, found.devices) == (vgpus, cards)


@world(WORLD_7)
def test_a_card_of_several_models_is_refused_before_8_0_2(sandbox, tmp_path):
    given = yaml.safe_load(EXAMPLES["vm_class"].read_text())
    card = {**V100, "alternatives": [T4]}
    gpu = {"cpus": 4, "memory": "16GiB", "memory_reservation": 100, "devices": [card]}
    given["vm_class"] = {"gpu": gpu}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(given))
    (problem,) = map(str, plan(tmp_path / "site.yaml", sandbox).problems)
    for part in ("this vCenter's classes name one model of each card", "from 8.0.2", "write one model"):
        assert part in problem


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


def agreed(found: Any) -> bool:
    """Nothing to do, and all of it was read."""
    return not found.pending and not found.unreadable


PAIR = "Nvidia:2@nvidia_h100-80c%NVLink"
HOSTS = Path(__file__).parents[1] / "vgpu-hosts.yaml"


@world(HOSTS)
def test_groups_and_instance_storage_are_written_read_and_drift(sandbox, tmp_path):
    given = yaml.safe_load(EXAMPLES["vm_class"].read_text())
    disks = {"policy": "gold", "volumes": ["100GiB", "100GiB"]}
    gpu = {"cpus": 4, "memory": "16GiB", "memory_reservation": 100, "vgpus": ["nvidia_h100-40c"]}
    given["vm_class"] = {"gpu": {**gpu, "device_groups": [PAIR], "instance_storage": disks}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    assert agreed(plan(path, sandbox))
    rest = Rest(sandbox)
    spec = rest.get(f"{CLASSES}/gpu")["config_spec"]
    devices = [each["device"] for each in spec["deviceChange"]]
    assert [each.get("deviceGroupInfo", {}).get("sequenceId") for each in devices] == [None, 0, 1]
    assert [each["deviceGroupName"] for each in spec["deviceGroups"]["deviceGroup"]] == [PAIR]
    found = vm_classes.read(rest.get(f"{CLASSES}/gpu"))
    assert (found.vgpus, found.groups) == (("nvidia_h100-40c",), (PAIR,))
    other = {**spec, "extraConfig": [{"_typeName": "OptionValue", "key": "theirs", "value": "1"}]}
    assert rest.call("PATCH", f"{CLASSES}/gpu", {"config_spec": other}).status == 204
    assert agreed(plan(path, sandbox))
    volumes = {"policy": rest.get(f"{CLASSES}/gpu")["instance_storage"]["policy"], "volumes": [{"size": 512}]}
    assert rest.call("PATCH", f"{CLASSES}/gpu", {"instance_storage": volumes}).status == 204
    (item,) = plan(path, sandbox).pending
    assert [each.field for each in item.changes] == ["instance_storage.volumes"]
    given["vm_class"]["gpu"]["device_groups"] = []
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    after = rest.get(f"{CLASSES}/gpu")["config_spec"]
    assert after["extraConfig"] == other["extraConfig"], "what others put into it stays"
    assert ("deviceGroups" in after, len(after["deviceChange"])) == (False, 1)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"_typeName": "VirtualMachineConfigSpec", "colour": "red"}, "unexpected field colour"),
        ({"deviceChange": []}, "_typeName is expected"),
        ({"_typeName": "VirtualMachineConfigSpec", "deviceChange": [added(VGPU, "put")]}, "none of add"),
        ({"_typeName": "VirtualMachineConfigSpec", "deviceChange": [added({"vgpu": "p"})]}, "_typeName"),
        ({"_typeName": "VirtualMachineConfigSpec", "numCPUs": "4"}, "int is expected"),
        ({"_typeName": "VirtualMachineRelocateSpec"}, "is no"),
    ],
)
def test_the_sandbox_takes_no_config_spec_that_pyvmomi_does_not_know(spec, why, sandbox):
    body = {"id": "odd", "cpu_count": 1, "memory_MB": 1024, "memory_reservation": 100, "config_spec": spec}
    answer = Rest(sandbox).call("POST", CLASSES, body)
    assert (answer.status, why in str(answer.data)) == (400, True), answer.data


def gpu_class(**fields: Any) -> dict[Key, Spec]:
    return {Key("vm_class", "gpu"): written(devices=[], **fields)}


def facts(*profiles: str) -> VmClassFacts:
    return VmClassFacts((HostOffer("esx01", "gpu", profiles),))


def test_a_profile_that_no_host_offers_is_refused_with_those_that_are_offered() -> None:
    [found] = unoffered(gpu_class(vgpus=["nvidia_h100-40c"]), {}, facts("nvidia_h100-80c"))
    assert (found.what, found.why, found.stops) == (
        "no host of this vCenter offers the vGPU profile nvidia_h100-40c",
        "they offer nvidia_h100-80c",
        True,
    )
    assert not [*unoffered(gpu_class(vgpus=["nvidia_h100-80c"]), {}, facts("nvidia_h100-80c"))]


def test_hosts_without_a_word_of_profiles_are_a_warning() -> None:
    [found] = unoffered(gpu_class(vgpus=["nvidia_h100-40c"]), {}, facts())
    assert (found.stops, found.next) == (False, "add a host_image with the driver, and host_graphics")


def test_device_groups_want_a_vcenter_that_has_them() -> None:
    [found] = too_new(gpu_class(device_groups=[PAIR]), VmClassFacts(specified=False))
    assert (found.what, found.stops) == ("this vCenter's classes have no device groups", True)


def test_instance_storage_is_not_taken_away() -> None:
    given = {"policy": "gold", "volumes": ["1GiB"]}
    there = existing(written(instance_storage=given))
    with pytest.raises(Refusal, match="keeps its instance storage"):
        steps(written(), there)


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
