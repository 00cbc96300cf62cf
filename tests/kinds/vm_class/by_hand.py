"""What somebody sets by hand on a class of a site that says CPUs and memory alone."""

from __future__ import annotations

from typing import Any

from kinds.by_hand import ByHand

from bfinfra.backends.vcenter import VCenter

PATH = "/api/vcenter/namespace-management/virtual-machine-classes/ours"


def _hand(vcenter: VCenter) -> None:
    policies: Any = vcenter.rest.get("/api/vcenter/storage/policies")
    gold = next(each["policy"] for each in policies if each["name"] == "gold")
    card = {
        "_typeName": "VirtualPCIPassthrough",
        "key": -1,
        "backing": {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": "grid_t4-8c"},
    }
    vcenter.rest.patch(
        PATH,
        {
            "description": f"by hand\n{vcenter.rest.get(PATH)['description']}",
            "cpu_reservation": 50,
            "memory_reservation": 100,
            "instance_storage": {"policy": gold, "volumes": [{"size": 1024}]},
            "config_spec": {
                "_typeName": "VirtualMachineConfigSpec",
                "deviceChange": [
                    {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": card}
                ],
                "latencySensitivity": {"_typeName": "LatencySensitivity", "level": "high"},
            },
        },
    )


BY_HAND = ByHand(
    said={"cpus": 4, "memory": "16GiB"},
    hand=_hand,
    unmark=lambda vcenter: vcenter.rest.patch(PATH, {"description": "by hand"}),
    changed={"cpus": 8, "memory": "16GiB"},
    shown=frozenset({"cpus"}),
    moved=r"/rest/vm_classes/ours/cpu_count|/supervisors/.*",
)
