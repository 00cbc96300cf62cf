"""Virtual machine classes. Source: com.vmware.vcenter.namespace_management.VirtualMachineClasses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.rest.class_devices import PCI, Fields, check_groups, mirrored
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check
from bfinfra.sandbox.rest.vim_json import check_vim

if TYPE_CHECKING:
    from bfinfra.sandbox.world import VmClass

PATH = "/vcenter/namespace-management/virtual-machine-classes"
DEVICES = {
    "vgpu_devices?": [{"profile_name": str}],
    "dynamic_direct_path_IO_devices?": [{"vendor_id": int, "device_id": int, "custom_label?": str}],
}
UPDATE = {
    "cpu_count?": int,
    "cpu_reservation?": int,
    "memory_MB?": int,
    "memory_reservation?": int,
    "description?": str,
    "devices?": DEVICES,
    "instance_storage?": {"policy": str, "volumes": [{"size": int}]},
    "config_spec?": dict,
}
CREATE = {**UPDATE, "id": str, "cpu_count": int, "memory_MB": int}
CREATE = {name: each for name, each in CREATE.items() if name not in ("cpu_count?", "memory_MB?")}
MIB = 2**20


def class_of(name: str, given: VmClass) -> Fields:
    """The record of a world's class."""
    spec: Fields = {
        "id": name,
        "cpu_count": given.cpus,
        "memory_MB": given.memory // MIB,
        "description": given.description,
    }
    if given.cpu_reservation is not None:
        spec["cpu_reservation"] = given.cpu_reservation
    if given.memory_reservation is not None:
        spec["memory_reservation"] = given.memory_reservation
    if given.gpus:
        spec["devices"] = {"vgpu_devices": [{"profile_name": each} for each in given.gpus]}
    return spec


def new(call: Call) -> bool:
    """Return whether this vCenter has devices in `config_spec`, and only writes `devices`: since 8.0.2."""
    return tuple(map(int, call.state.world.vcenter.version.split(".")))[:3] >= (8, 0, 2)


@route("GET", PATH)
def classes(call: Call) -> Any:
    """All classes."""
    return [_info(call, name) for name in call.state.vm_classes]


@route("GET", PATH + "/{vm_class}")
def vm_class(call: Call, vm_class: str) -> Any:
    """One class."""
    return _info(call, vm_class)


@route("POST", PATH)
def create(call: Call) -> None:
    """A new class."""
    spec = check(call.spec, CREATE)
    call.need("VirtualMachineClasses.Manage", spec["id"])
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", spec["id"]):
        raise Refused("INVALID_ARGUMENT", f"spec.id: {spec['id'][:80]!r} is no DNS label")
    with call.state.lock:
        if spec["id"] in call.state.vm_classes:
            raise Refused(
                "ALREADY_EXISTS", f"A virtual machine class with the name '{spec['id']}' already exists."
            )
        call.state.vm_classes[spec["id"]] = _sound(_kept(call, {"description": "", **spec}))
    call.state.notify_class(spec["id"])


@route("PATCH", PATH + "/{vm_class}")
def update(call: Call, vm_class: str) -> None:
    """Change some fields."""
    spec = check(call.spec, UPDATE)
    call.need("VirtualMachineClasses.Manage", vm_class)
    with call.state.lock:
        call.state.vm_classes[vm_class] = _sound(_kept(call, {**_one(call, vm_class), **spec}))
    call.state.notify_class(vm_class)


@route("DELETE", PATH + "/{vm_class}")
def delete(call: Call, vm_class: str) -> None:
    """Remove one. RESOURCE_IN_USE while a namespace offers it."""
    call.need("VirtualMachineClasses.Manage", vm_class)
    with call.state.lock:
        _one(call, vm_class)
        if users := _users(call, vm_class):
            raise Refused(
                "RESOURCE_IN_USE", f"The virtual machine class is used by namespace {', '.join(users)}."
            )
        del call.state.vm_classes[vm_class]
    call.state.notify_class(vm_class)


def _sound(spec: Fields) -> Fields:
    """The class, where vCenter's rules hold."""
    for name in ("cpu_reservation", "memory_reservation"):
        if not 0 <= spec.get(name, 0) <= 100:
            raise Refused("INVALID_ARGUMENT", f"spec.{name}: not within 0 to 100 per cent")
    if spec["cpu_count"] < 1 or spec["memory_MB"] < 512:
        raise Refused("INVALID_ARGUMENT", "spec: at least 1 CPU and 512 MB of memory")
    has = any((spec.get("devices") or {}).values()) or any(
        each.get("device", {}).get("_typeName") == PCI
        for each in (spec.get("config_spec") or {}).get("deviceChange", [])
    )
    if has and spec.get("memory_reservation") != 100:
        raise Refused(
            "INVALID_ARGUMENT",
            "spec.memory_reservation: must be 100 for a class with vGPU or dynamic DirectPath devices",
        )
    return spec


def _kept(call: Call, spec: Fields) -> Fields:
    """The class as this vCenter stores it. Raises InvalidArgument for a `config_spec` before 8.0.2."""
    storage = spec.get("instance_storage")
    if storage and storage["policy"] not in call.state.policies():
        raise Refused("INVALID_ARGUMENT", f"spec.instance_storage.policy: there is no {storage['policy']}")
    if storage is not None and not storage["volumes"]:
        raise Refused("INVALID_ARGUMENT", "spec.instance_storage.volumes: at least one is expected")
    if new(call):
        if "config_spec" in spec:
            check_vim(spec["config_spec"], vim.vm.ConfigSpec, "spec.config_spec")
            check_groups(spec["config_spec"])
        return mirrored(spec)
    if "config_spec" in spec:
        raise Refused("INVALID_ARGUMENT", "spec.config_spec: unknown before 8.0.2")
    return spec


def _one(call: Call, name: str) -> Fields:
    found = call.state.vm_classes.get(name)
    if found is None:
        raise missing("Virtual machine class", name)
    return found


def _users(call: Call, name: str) -> list[str]:
    return sorted(
        each
        for each, info in call.state.namespaces.items()
        if name in info.get("vm_service_spec", {}).get("vm_classes", [])
    )


def _info(call: Call, name: str) -> Fields:
    with call.state.lock:
        found = _one(call, name)
        if new(call):
            found = {"instance_storage": None, "devices": None, **mirrored(found)}
        return {
            **found,
            "namespaces": _users(call, name),
            "vms": [],
            "config_status": "READY",
            "messages": [],
        }
