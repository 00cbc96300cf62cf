"""The GPUs of a machine of a VM class, and the device groups that a class is refused for."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bfinfra.sandbox.inventory.vgpus import Group, Wanted
from bfinfra.sandbox.rest.class_devices import check_groups, mirrored, wanted
from bfinfra.sandbox.rest.errors import Refused

PAIR = "Nvidia:2@nvidia_h100-80c%NVLink"


def device(profile: str, place: tuple[int, int] | None = None) -> dict[str, Any]:
    """A vGPU; `place`: the key of its group, and its number there."""
    found: dict[str, Any] = {
        "backing": {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": profile}
    }
    if place:
        found["deviceGroupInfo"] = {"groupInstanceKey": place[0], "sequenceId": place[1]}
    return {"operation": "add", "device": {"_typeName": "VirtualPCIPassthrough", **found}}


CARD = {
    "_typeName": "VirtualPCIPassthroughDynamicBackingInfo",
    "allowedDevice": [{"vendorId": 0x10DE, "deviceId": each} for each in (0x1DB4, 0x1DB6)],
}
CONFIG: dict[str, Any] = {
    "deviceChange": [
        device("nvidia_h100-40c"),
        device("nvidia_h100-80c", (7, 1)),
        device("nvidia_h100-94c", (7, 0)),
        {"operation": "add", "device": {"_typeName": "VirtualPCIPassthrough", "backing": CARD}},
    ],
    "deviceGroups": {"deviceGroup": [{"groupInstanceKey": 7, "deviceGroupName": PAIR}]},
}


def test_a_class_wants_vgpus_cards_of_any_model_and_groups() -> None:
    found = wanted({"config_spec": CONFIG})
    group = Group(PAIR, ("nvidia_h100-94c", "nvidia_h100-80c"))
    assert found == Wanted(("nvidia_h100-40c",), (frozenset({(0x10DE, 0x1DB4), (0x10DE, 0x1DB6)}),), (group,))
    assert found.count == 4


def test_devices_of_the_older_form_replace_groups_too() -> None:
    spec = {"config_spec": CONFIG, "devices": {"vgpu_devices": [{"profile_name": "p"}]}}
    check_groups(mirrored(spec)["config_spec"])
    assert wanted(spec) == Wanted(("p",))


@pytest.mark.parametrize("case", ["no group", "another key", "a gap", "one place twice", "no name"])
def test_a_group_and_its_devices_belong_together(case: str) -> None:
    check_groups(CONFIG)
    config = copy.deepcopy(CONFIG)
    groups, first = config["deviceGroups"]["deviceGroup"], config["deviceChange"][2]
    place = first["device"]["deviceGroupInfo"]
    {
        "no group": groups.clear,
        "another key": lambda: groups[0].update(groupInstanceKey=8),
        "a gap": lambda: place.update(sequenceId=2),
        "one place twice": lambda: place.update(sequenceId=1),
        "no name": lambda: groups[0].pop("deviceGroupName"),
    }[case]()
    with pytest.raises(Refused, match="each group needs a name and all its devices"):
        check_groups(config)
