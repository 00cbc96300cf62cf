"""The PCI devices of a VM class in its `config_spec`: a VirtualMachineConfigSpec in vSphere's JSON, where
each object names its type.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bfinfra.model.records import dataclass

PCI = "VirtualPCIPassthrough"
GROUPS = "VirtualMachineVirtualDeviceGroups"
NARROWER = ("subVendorId", "subDeviceId", "revisionId")
"""What can narrow a model down, and no site can say."""
SORTS = ("vgpus", "devices", "device_groups")
"""The sorts of devices, by their names in a site."""
Json = dict[str, Any]
Components = Mapping[str, Sequence[Json]]
"""Name of a vendor device group → its devices, as hosts describe them."""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Device:
    """Any free PCI device of these ids (as in lspci); `label`: hosts' own label of their cards, "" for any;
    `alternatives`: vendor and device of other models that it may be instead.
    """

    vendor: int
    device: int
    label: str = ""
    alternatives: tuple[tuple[int, int], ...] = ()


def one_of(models: Iterable[tuple[int, int]], label: str) -> Device:
    """A device of one of these models. Their order means nothing: the smallest ids come first."""
    (vendor, device), *others = sorted(set(models))
    return Device(vendor, device, label, tuple(others))


@dataclass(frozen=True, slots=True)
class ClassDevices:
    """`vgpus`: profiles; `groups`: names of vendor device groups; `others`: PCI devices that a site has no
    words for.
    """

    vgpus: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    groups: tuple[str, ...] = ()
    others: int = 0


def listed(devices: Mapping[str, Any]) -> ClassDevices:
    """The devices in the form before 8.0.2."""
    cards = devices.get("dynamic_direct_path_IO_devices") or ()
    vgpus = tuple(sorted(each["profile_name"] for each in devices.get("vgpu_devices") or ()))
    found = (Device(each["vendor_id"], each["device_id"], each.get("custom_label") or "") for each in cards)
    return ClassDevices(vgpus, tuple(sorted(found)))


def specified(spec: Mapping[str, Any]) -> ClassDevices:
    """The devices in the form since 8.0.2. Those of a group are not listed one by one."""
    added = [each for each in _changes(spec) if each.get("operation") == "add" and _is_pci(each)]
    alone = [each["device"] for each in added if not each["device"].get("deviceGroupInfo")]
    backings = [each.get("backing") or {} for each in alone]
    vgpus = (each["vgpu"] for each in backings if _is_vgpu(each))
    devices = (
        one_of(
            ((card["vendorId"], card["deviceId"]) for card in each["allowedDevice"]),
            each.get("customLabel") or "",
        )
        for each in backings
        if _is_card(each)
    )
    groups = (spec.get("deviceGroups") or {}).get("deviceGroup") or ()
    return ClassDevices(
        tuple(sorted(vgpus)),
        tuple(sorted(devices)),
        tuple(sorted(each["deviceGroupName"] for each in groups if "deviceGroupName" in each)),
        sum(not (_is_vgpu(each) or _is_card(each)) for each in backings),
    )


def as_list(wanted: ClassDevices) -> Json:
    """The desired devices in the form before 8.0.2, which has no groups."""
    cards = [
        {
            "vendor_id": each.vendor,
            "device_id": each.device,
            **({"custom_label": each.label} if each.label else {}),
        }
        for each in wanted.devices
    ]
    vgpus = [{"profile_name": each} for each in wanted.vgpus]
    return {"vgpu_devices": vgpus, "dynamic_direct_path_IO_devices": cards}


def relisted(now: Mapping[str, Any] | None, wanted: ClassDevices, sorts: Container[str]) -> Json:
    """The devices in the form before 8.0.2, with the desired ones of these sorts in their place."""
    there, found = now or {}, as_list(wanted)
    names = {"vgpus": "vgpu_devices", "devices": "dynamic_direct_path_IO_devices"}
    return {**there, **{name: found[name] for sort, name in names.items() if sort in sorts}}


def written(
    spec: Mapping[str, object] | None,
    wanted: ClassDevices,
    components: Components,
    sorts: Container[str] = frozenset(SORTS),
) -> Json | None:
    """The `config_spec` with the desired devices of these sorts in place of those that are there, and all
    else of it; None if there is nothing to change. Raises KeyError for a group that no host offers.
    """
    groups = [
        (key, name, components[name])
        for key, name in enumerate(wanted.groups if "device_groups" in sorts else (), start=1)
    ]
    devices = [*_single(wanted, sorts), *_grouped(groups)]
    if spec is None and not devices:
        return None
    others = [each for each in _changes(spec or {}) if _sort(each) is None or _sort(each) not in sorts]
    taken = {(each.get("device") or {}).get("key") for each in others}
    free = (key for key in itertools.count(-20000, -1) if key not in taken)
    added = [
        {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": {**each, "key": next(free)}}
        for each in devices
    ]
    replaced = {"deviceChange", "deviceGroups"} if "device_groups" in sorts else {"deviceChange"}
    kept = {key: each for key, each in (spec or {}).items() if key not in replaced}
    found = {"_typeName": "VirtualMachineConfigSpec", **kept}
    if others or added:
        found["deviceChange"] = [*others, *added]
    if groups:
        rows = [
            {"_typeName": f"{GROUPS}VendorDeviceGroup", "groupInstanceKey": key, "deviceGroupName": name}
            for key, name, _ in groups
        ]
        found["deviceGroups"] = {"_typeName": GROUPS, "deviceGroup": rows}
    return found


def _single(wanted: ClassDevices, sorts: Container[str]) -> Iterator[Json]:
    for profile in wanted.vgpus if "vgpus" in sorts else ():
        yield _pci({"_typeName": f"{PCI}VmiopBackingInfo", "vgpu": profile})
    for each in wanted.devices if "devices" in sorts else ():
        allowed = [
            {"_typeName": f"{PCI}AllowedDevice", "vendorId": vendor, "deviceId": device}
            for vendor, device in ((each.vendor, each.device), *each.alternatives)
        ]
        label = {"customLabel": each.label} if each.label else {}
        dynamic = {"_typeName": f"{PCI}DynamicBackingInfo", "deviceName": "", "allowedDevice": allowed}
        yield _pci({**dynamic, **label})


def _grouped(groups: Sequence[tuple[int, str, Sequence[Json]]]) -> Iterator[Json]:
    for key, _, devices in groups:
        for number, device in enumerate(devices):
            place = {
                "_typeName": "VirtualDeviceDeviceGroupInfo",
                "groupInstanceKey": key,
                "sequenceId": number,
            }
            yield {**device, "deviceGroupInfo": place}


def _pci(backing: Json) -> Json:
    return {"_typeName": PCI, "backing": backing}


def _changes(spec: Mapping[str, Any]) -> Sequence[Json]:
    return spec.get("deviceChange") or ()


def _is_pci(change: Mapping[str, Any]) -> bool:
    device = change.get("device") or {}
    return device.get("_typeName") == PCI or bool(device.get("deviceGroupInfo"))


def _sort(change: Json) -> str | None:
    """The site's name for the sort of device; None if a site can't describe it."""
    device = change.get("device") or {}
    backing = device.get("backing") or {}
    if device.get("deviceGroupInfo"):
        return "device_groups"
    if not _is_pci(change):
        return None
    return "vgpus" if _is_vgpu(backing) else "devices" if _is_card(backing) else None


def _is_vgpu(backing: Json) -> bool:
    return bool(backing.get("_typeName") == f"{PCI}VmiopBackingInfo")


def _is_card(backing: Json) -> bool:
    """Return whether vSphere picks the card, by the ids of its models alone."""
    named = backing.get("_typeName") == f"{PCI}DynamicBackingInfo"
    models = backing.get("allowedDevice") or ()
    return named and bool(models) and not any(each.get(name) for each in models for name in NARROWER)
