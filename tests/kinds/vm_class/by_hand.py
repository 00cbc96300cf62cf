"""What somebody sets by hand on a class of a site that says CPUs and memory alone, or its vGPUs, too."""

from __future__ import annotations

from typing import Any

from kinds.by_hand import ByHand

from bfinfra.backends.vcenter import VCenter

PATH = "/api/vcenter/namespace-management/virtual-machine-classes/ours"


def _device(backing: dict[str, Any], key: int) -> dict[str, Any]:
    device = {"_typeName": "VirtualPCIPassthrough", "key": key, "backing": backing}
    return {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": device}


MODEL = {"_typeName": "VirtualPCIPassthroughAllowedDevice", "vendorId": 0x10DE, "deviceId": 0x1EB8}
CARD = _device(
    {"_typeName": "VirtualPCIPassthroughDynamicBackingInfo", "deviceName": "", "allowedDevice": [MODEL]}, -1
)
VGPU = _device({"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": "grid_t4-8c"}, -2)


def _hand(vcenter: VCenter) -> None:
    policies: Any = vcenter.rest.get("/api/vcenter/storage/policies")
    gold = next(each["policy"] for each in policies if each["name"] == "gold")
    vcenter.rest.patch(
        PATH,
        {
            "description": f"by hand\n{vcenter.rest.get(PATH)['description']}",
            "cpu_reservation": 50,
            "memory_reservation": 100,
            "instance_storage": {"policy": gold, "volumes": [{"size": 1024}]},
            "config_spec": {
                "_typeName": "VirtualMachineConfigSpec",
                "deviceChange": [CARD, VGPU],
                "latencySensitivity": {"_typeName": "LatencySensitivity", "level": "high"},
            },
        },
    )


def _unmark(vcenter: VCenter) -> None:
    vcenter.rest.patch(PATH, {"description": "by hand"})


SIZED = {"cpus": 4, "memory": "16GiB"}
SHARING = {**SIZED, "memory_reservation": 100, "vgpus": ["grid_t4-8c"]}
BY_HAND = (
    ByHand(
        said=SIZED,
        hand=_hand,
        unmark=_unmark,
        changed={**SIZED, "cpus": 8},
        shown=frozenset({"cpus"}),
        moved=r"/rest/vm_classes/ours/cpu_count|/supervisors/.*/cpus",
    ),
    ByHand(
        said=SHARING,
        hand=_hand,
        unmark=_unmark,
        changed={**SHARING, "vgpus": ["grid_t4-16c"]},
        shown=frozenset({"vgpus"}),
        moved=r"/rest/vm_classes/ours/config_spec/deviceChange/1/device/(key|backing/vgpu)|/supervisors/.*/profileName",
    ),
)
