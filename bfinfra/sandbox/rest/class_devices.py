"""The devices of a virtual machine class: in the form before 8.0.2, and in its `config_spec`."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.inventory.vgpus import Group, Ids, Wanted, nic_of
from bfinfra.sandbox.rest.errors import Refused

PCI = "VirtualPCIPassthrough"
Fields = dict[str, Any]


def backings(devices: Fields) -> list[Fields]:
    """The backing of each device, in vSphere's JSON."""
    vgpus = [
        {"_typeName": f"{PCI}VmiopBackingInfo", "vgpu": each["profile_name"]}
        for each in devices.get("vgpu_devices") or ()
    ]
    cards = [
        {
            "_typeName": f"{PCI}DynamicBackingInfo",
            "deviceName": "",
            "customLabel": each.get("custom_label", ""),
            "allowedDevice": [
                {
                    "_typeName": f"{PCI}AllowedDevice",
                    "vendorId": each["vendor_id"],
                    "deviceId": each["device_id"],
                }
            ],
        }
        for each in devices.get("dynamic_direct_path_IO_devices") or ()
    ]
    return vgpus + cards


def mirrored(spec: Fields) -> Fields:
    """Move `devices` into `config_spec`, where they replace the PCI devices."""
    if spec.get("devices") is None:
        return spec
    config = spec.get("config_spec") or {"_typeName": "VirtualMachineConfigSpec"}
    config = {name: each for name, each in config.items() if name != "deviceGroups"}
    others = [
        each for each in config.get("deviceChange", []) if each.get("device", {}).get("_typeName") != PCI
    ]
    added = [
        {
            "_typeName": "VirtualDeviceConfigSpec",
            "operation": "add",
            "device": {"_typeName": PCI, "key": -20000 - index, "backing": backing},
        }
        for index, backing in enumerate(backings(spec["devices"]))
    ]
    return {**spec, "devices": None, "config_spec": {**config, "deviceChange": [*others, *added]}}


def wanted(spec: Fields) -> Wanted:
    """The GPUs of a class: vGPUs, the models that each whole card may be, and device groups."""
    config = mirrored(spec).get("config_spec") or {}
    devices = _added(config)
    alone = [each.get("backing") or {} for each in devices if not each.get("deviceGroupInfo")]
    allowed = [_allowed(each) for each in alone if each.get("_typeName") == f"{PCI}DynamicBackingInfo"]
    profiles = [str(each["vgpu"]) for each in alone if each.get("_typeName") == f"{PCI}VmiopBackingInfo"]
    members = _members(devices)
    groups = [
        Group(name, tuple(_part(each) for _, each in sorted(members[key].items())))
        for key, name in _groups(config)
    ]
    return Wanted(tuple(profiles), tuple(allowed), tuple(groups))


def _added(config: Fields) -> list[Fields]:
    changes = config.get("deviceChange") or ()
    return [each.get("device") or {} for each in changes if each.get("operation") == "add"]


def _groups(config: Fields) -> list[tuple[int, str]]:
    """Key and name of each vendor device group."""
    listed = (config.get("deviceGroups") or {}).get("deviceGroup") or ()
    return [(each["groupInstanceKey"], str(each.get("deviceGroupName", ""))) for each in listed]


def _members(devices: list[Fields]) -> dict[int, dict[int, Fields]]:
    """Key of each device group → its devices by their place."""
    found: dict[int, dict[int, Fields]] = {}
    for each in devices:
        if place := each.get("deviceGroupInfo"):
            found.setdefault(place["groupInstanceKey"], {})[place["sequenceId"]] = each
    return found


def _part(device: Fields) -> str:
    """The profile of a vGPU; the model of a network card."""
    backing = device.get("backing") or {}
    return str(backing.get("vgpu") or nic_of(_allowed(backing)))


def _allowed(backing: Fields) -> Ids:
    """The models that a card may be."""
    models = backing.get("allowedDevice") or ()
    return frozenset((each["vendorId"] & 0xFFFF, each["deviceId"] & 0xFFFF) for each in models)


def check_groups(config: Fields) -> None:
    """InvalidArgument for a device group without devices, or devices without their group."""
    groups, members = _groups(config), _members(_added(config))
    inside = sum(bool(each.get("deviceGroupInfo")) for each in _added(config))
    whole = all(sorted(each) == [*range(len(each))] for each in members.values())
    if (
        sorted(key for key, _ in groups) != sorted(members)
        or not (whole and all(name for _, name in groups))
        or inside != sum(map(len, members.values()))
    ):
        raise Refused(
            "INVALID_ARGUMENT",
            "spec.config_spec.deviceGroups: each group needs a name and all its devices, numbered from 0, "
            "and each device with a deviceGroupInfo its group",
        )
