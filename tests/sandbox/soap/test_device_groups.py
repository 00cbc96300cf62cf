"""Vendor device groups, by pyVmomi: what a host offers, the linked cards that a machine with a group holds, and the
groups that vCenter refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from bfinfra.sandbox.reading import BadWorld

pytestmark = pytest.mark.thorough

PAIR = "Nvidia:2@nvidia_h100-80c%NVLink"
FOUR = "Nvidia:4@nvidia_h100-80c%NVLink"
HALF, WHOLE = "nvidia_h100-40c", "nvidia_h100-80c"
H100 = {"vendor": 0x10DE, "device": 0x2331, "name": "GH100 [H100 PCIe]", "class": 0x0302, "memory": "80GiB"}
PCI = vim.vm.device.VirtualPCIPassthrough
GROUPS = vim.vm.VirtualDeviceGroups
PLACE = vim.vm.device.VirtualDevice.DeviceGroupInfo


def farm(groups: dict[str, int], **hosts: int) -> dict[str, Any]:
    """A cluster whose hosts have so many cards; those with enough of them offer the groups, by their size."""
    return {
        "gpu-farm": {
            "hosts": {
                f"{name}.aiml.local": {
                    "graphics": "sharedDirect",
                    "pci": [
                        {"id": f"0000:{n:02x}:00.0", **H100, "profiles": [HALF, WHOLE]}
                        for n in range(1, count + 1)
                    ],
                    "device_groups": {
                        group: [WHOLE] * size for group, size in groups.items() if size <= count
                    },
                }
                for name, count in hosts.items()
            }
        }
    }


def grouped(key: int, *profiles: str) -> list[Any]:
    """The devices of a group."""
    return [
        PCI(
            key=-100 * key - n,
            backing=PCI.VmiopBackingInfo(vgpu=profile),
            deviceGroupInfo=PLACE(groupInstanceKey=key, sequenceId=n),
        )
        for n, profile in enumerate(profiles)
    ]


def single(*profiles: str) -> list[Any]:
    return [PCI(key=-n - 1, backing=PCI.VmiopBackingInfo(vgpu=each)) for n, each in enumerate(profiles)]


def named(**groups: str) -> Any:
    """`g1="…"`: the group with the key 1."""
    listed = [
        GROUPS.VendorDeviceGroup(groupInstanceKey=int(key[1:]), deviceGroupName=name)
        for key, name in groups.items()
    ]
    return GROUPS(deviceGroup=listed)


def machine(client: Any, name: str, devices: list[Any], groups: Any) -> Any:
    changes = [vim.vm.device.VirtualDeviceSpec(operation="add", device=each) for each in devices]
    reserved = vim.ResourceAllocationInfo(reservation=4096)
    return client.vm(
        name, memoryMB=4096, memoryAllocation=reserved, deviceChange=changes, deviceGroups=groups
    )


def pair(client: Any, name: str, *beside: str) -> Any:
    """A machine with a group of two, and vGPUs beside it, that was started."""
    vm = machine(client, name, [*grouped(1, WHOLE, WHOLE), *single(*beside)], named(g1=PAIR))
    client.run(vm.PowerOn())
    return vm


def four(client: Any, name: str) -> Any:
    vm = machine(client, name, grouped(1, *[WHOLE] * 4), named(g1=FOUR))
    client.run(vm.PowerOn())
    return vm


def alone(client: Any, name: str, *profiles: str) -> Any:
    vm = machine(client, name, single(*profiles), None)
    client.run(vm.PowerOn())
    return vm


def users(client: Any, host: str) -> list[list[str]]:
    """The machines that use each card."""
    config = client.find(f"Singapore/host/gpu-farm/{host}.aiml.local").config
    return [[vm.name for vm in each.vm] for each in config.graphicsInfo]


def offered(client: Any, host: str) -> list[Any]:
    at = client.find(f"Singapore/host/gpu-farm/{host}.aiml.local")
    found: list[Any] = at.configManager.assignableHardwareManager.RetrieveVendorDeviceGroupInfo()
    return found


FULL = vim.fault.InsufficientGraphicsResourcesFault


def test_a_host_describes_its_groups_as_the_recorded_one_does(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=2)).login()
    [found] = offered(client, "a")
    [part, _] = found.componentDeviceInfo
    assert (found.name, found.deviceGroupName, found.configurationTag) == ("", PAIR, [])
    assert found.deviceGroupDescription == "2 Nvidia nvidia_h100-80c NVLink"
    assert (part.type, part.vendorName, part.isConfigurable) == ("nvidiaVgpu", "NVIDIA Corporation", False)
    assert part.deviceName == "NVIDIA H100 PCIe nvidia_h100-80c"
    assert (part.device.key, part.device.backing.vgpu) == (0, WHOLE)
    browser = client.find("Singapore/host/gpu-farm").environmentBrowser
    [same] = browser.QueryConfigTarget().vendorDeviceGroupInfo
    assert same.deviceGroupName == PAIR


def test_a_group_holds_linked_cards_until_its_machine_is_off(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=4)).login()
    first, _ = pair(client, "a"), pair(client, "b")
    assert users(client, "a") == [["a"], ["a"], ["b"], ["b"]]
    for refused in (lambda: pair(client, "c"), lambda: alone(client, "d", HALF)):
        with pytest.raises(FULL, match="graphics resource available"):
            refused()
    client.run(first.PowerOff())
    assert users(client, "a") == [[], [], ["b"], ["b"]]
    pair(client, "e")


def test_cards_that_are_not_linked_make_no_group(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=4)).login()
    kept = [alone(client, f"vm-{n}", WHOLE) for n in range(4)]
    for each in (kept[1], kept[2]):
        client.run(each.PowerOff())
    with pytest.raises(FULL):
        pair(client, "second and third")
    client.run(kept[0].PowerOff())
    pair(client, "first and second")
    assert users(client, "a") == [["first and second"], ["first and second"], [], ["vm-3"]]


def test_a_small_vgpu_keeps_a_group_from_its_card(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=2)).login()
    small = alone(client, "small", HALF)
    with pytest.raises(FULL):
        pair(client, "pair")
    assert users(client, "a") == [["small"], []]
    client.run(small.PowerOff())
    pair(client, "whole")


def test_a_group_and_vgpus_beside_it_come_together_on_one_host(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=2, b=3)).login()
    vm = pair(client, "both", HALF)
    assert (vm.runtime.host.name, users(client, "a")) == ("b.aiml.local", [[], []])
    assert users(client, "b") == [["both"], ["both"], ["both"]]
    with pytest.raises(FULL):
        pair(client, "two halves too many", WHOLE)
    assert users(client, "a") == [[], []], "all or nothing"


def test_two_groups_of_a_machine_take_the_larger_one_first(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2, FOUR: 4}, a=8)).login()
    devices = [*grouped(1, WHOLE, WHOLE), *grouped(2, *[WHOLE] * 4)]
    vm = machine(client, "both", devices, named(g1=PAIR, g2=FOUR))
    client.run(vm.PowerOn())
    assert users(client, "a") == [["both"]] * 6 + [[]] * 2
    pair(client, "rest")
    with pytest.raises(FULL):
        four(client, "none left")


def test_a_host_that_does_not_offer_the_group_is_not_used(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({FOUR: 4}, a=2, b=4)).login()
    assert offered(client, "a") == []
    assert four(client, "four").runtime.host.name == "b.aiml.local"
    with pytest.raises(vim.fault.GenericVmConfigFault, match="available for device group 'Nvidia:2@"):
        pair(client, "pair")


def test_cards_that_are_passed_through_are_in_no_group(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=2)).login()
    host = client.find("Singapore/host/gpu-farm/a.aiml.local")
    change = vim.host.PciPassthruConfig(id="0000:02:00.0", passthruEnabled=True, applyNow=True)
    host.configManager.pciPassthruSystem.UpdatePassthruConfig([change])
    client.run(host.EnterMaintenanceMode_Task(0))
    client.run(host.RebootHost_Task(force=False))
    client.run(host.ExitMaintenanceMode_Task(0))
    assert offered(client, "a") == []
    with pytest.raises(vim.fault.GenericVmConfigFault, match="for device group"):
        pair(client, "pair")


def test_a_group_of_other_vgpus_than_the_hosts_have_in_it_is_not_available(
    make_site: Callable[..., Any],
) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=4)).login()
    for profiles in ((HALF, HALF), (WHOLE,), (WHOLE, WHOLE, WHOLE)):
        vm = machine(client, f"vm-{len(profiles)}-{profiles[0]}", grouped(1, *profiles), named(g1=PAIR))
        with pytest.raises(vim.fault.GenericVmConfigFault, match="for device group"):
            client.run(vm.PowerOn())


ODD = {
    "devices without their group": (grouped(1, WHOLE, WHOLE), None),
    "a group without devices": ([], named(g1=PAIR)),
    "devices of another group": (grouped(2, WHOLE, WHOLE), named(g1=PAIR)),
    "two groups of one key": (
        grouped(1, WHOLE, WHOLE),
        GROUPS(deviceGroup=[*named(g1=PAIR).deviceGroup, *named(g1=FOUR).deviceGroup]),
    ),
    "a gap": (grouped(1, WHOLE, WHOLE)[1:], named(g1=PAIR)),
    "a group that names no vendor's": (
        grouped(1, WHOLE, WHOLE),
        GROUPS(deviceGroup=[GROUPS.DeviceGroup(groupInstanceKey=1)]),
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_a_group_and_its_devices_belong_together(case: str, make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=2)).login()
    devices, groups = ODD[case]
    with pytest.raises(vmodl.fault.InvalidArgument) as raised:
        machine(client, "odd", devices, groups)
    assert raised.value.invalidProperty == "configSpec.deviceGroups"


def test_a_group_comes_and_goes_as_a_whole(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=farm({PAIR: 2}, a=4)).login()
    vm = machine(client, "vm", grouped(1, WHOLE, WHOLE), named(g1=PAIR))
    devices = [each for each in vm.config.hardware.device if isinstance(each, PCI)]
    removed = [vim.vm.device.VirtualDeviceSpec(operation="remove", device=each) for each in devices]
    third = grouped(1, WHOLE)[0]
    third.deviceGroupInfo.sequenceId = 2
    added = [vim.vm.device.VirtualDeviceSpec(operation="add", device=third)]
    for change in (
        {"deviceChange": removed[:1]},
        {"deviceChange": removed},
        {"deviceChange": added},
        {"deviceGroups": GROUPS(deviceGroup=[])},
        {"deviceGroups": named(g1=FOUR)},
    ):
        with pytest.raises(vmodl.fault.InvalidArgument):
            client.run(vm.Reconfigure(vim.vm.ConfigSpec(**change)))
    assert [each.deviceGroupName for each in vm.config.deviceGroups.deviceGroup] == [PAIR]
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(deviceChange=removed, deviceGroups=GROUPS(deviceGroup=[]))))
    assert vm.config.deviceGroups is None
    again = [
        vim.vm.device.VirtualDeviceSpec(operation="add", device=each) for each in grouped(3, WHOLE, WHOLE)
    ]
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(deviceChange=again, deviceGroups=named(g3=PAIR))))
    client.run(vm.PowerOn())
    assert users(client, "a") == [["vm"], ["vm"], [], []]


@pytest.mark.parametrize("profiles", [[WHOLE], [WHOLE] * 3, ["x-8q"] * 2], ids=["one", "three", "unknown"])
def test_a_world_whose_cards_can_not_be_the_group_is_refused(
    profiles: list[str], make_site: Callable[..., Any]
) -> None:
    clusters = farm({}, a=2)
    clusters["gpu-farm"]["hosts"]["a.aiml.local"]["device_groups"] = {PAIR: profiles}
    with pytest.raises(BadWorld, match="needs at least two devices, and as many cards"):
        make_site(clusters=clusters)


GPU_NIC, NIC = "Nvidia:1@nvidia_h100-80c%NIC", "15b3:1021"
CX7 = {"vendor": 0x15B3, "device": 0x1021, "name": "MT2910 Family [ConnectX-7]", "class": 0x0200}


def beside_nics(cards: int, nics: int) -> dict[str, Any]:
    """A host whose groups are of a GPU and a network card each."""
    clusters = farm({}, a=cards)
    host = clusters["gpu-farm"]["hosts"]["a.aiml.local"]
    host["pci"] += [{"id": f"0000:{0x40 + n:02x}:00.0", **CX7} for n in range(nics)]
    host["device_groups"] = {GPU_NIC: [WHOLE, NIC]}
    return clusters


def pass_through(client: Any, *addresses: str) -> None:
    """As an administrator does, with the reboot that it takes."""
    host = client.find("Singapore/host/gpu-farm/a.aiml.local")
    changes = [vim.host.PciPassthruConfig(id=each, passthruEnabled=True, applyNow=True) for each in addresses]
    host.configManager.pciPassthruSystem.UpdatePassthruConfig(changes)
    client.run(host.EnterMaintenanceMode_Task(0))
    client.run(host.RebootHost_Task(force=False))
    client.run(host.ExitMaintenanceMode_Task(0))


def card(key: int = -50, place: Any = None) -> Any:
    """A network card that vSphere picks."""
    allowed = PCI.AllowedDevice(vendorId=0x15B3, deviceId=0x1021)
    backing = PCI.DynamicBackingInfo(deviceName="", allowedDevice=[allowed])
    return PCI(key=key, backing=backing, deviceGroupInfo=place)


def with_nic(client: Any, name: str, *beside: Any) -> Any:
    """A machine with a group of a GPU and a network card, that was started."""
    group = [*grouped(1, WHOLE), card(place=PLACE(groupInstanceKey=1, sequenceId=1))]
    vm = machine(client, name, [*group, *beside], named(g1=GPU_NIC))
    client.run(vm.PowerOn())
    return vm


def with_card(client: Any, name: str) -> Any:
    vm = machine(client, name, [card()], None)
    client.run(vm.PowerOn())
    return vm


def assigned(vm: Any) -> list[str | None]:
    """The cards that vSphere picked for a machine by itself."""
    backings = [each.backing for each in vm.config.hardware.device if isinstance(each, PCI)]
    return [each.assignedId for each in backings if isinstance(each, PCI.DynamicBackingInfo)]


def test_a_group_with_a_network_card_is_offered_once_the_card_is_passed_through(
    make_site: Callable[..., Any],
) -> None:
    client = make_site(clusters=beside_nics(2, 2)).login()
    assert offered(client, "a") == []
    with pytest.raises(vim.fault.GenericVmConfigFault, match="available for device group 'Nvidia:1@"):
        with_nic(client, "early")
    pass_through(client, "0000:40:00.0")
    [found] = offered(client, "a")
    gpu, nic = found.componentDeviceInfo
    assert (found.deviceGroupDescription, gpu.type) == ("1 Nvidia nvidia_h100-80c NIC", "nvidiaVgpu")
    assert (nic.type, nic.vendorName) == ("pciPassthru", "Mellanox Technologies")
    [allowed] = nic.device.backing.allowedDevice
    assert (allowed.vendorId, allowed.deviceId) == (0x15B3, 0x1021)


def test_a_group_holds_its_network_card_too_all_or_nothing(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=beside_nics(2, 2)).login()
    pass_through(client, "0000:40:00.0", "0000:41:00.0")
    with_nic(client, "a")
    with_card(client, "takes the second")
    with pytest.raises(FULL):
        with_nic(client, "b")
    assert users(client, "a") == [["a"], []], "its GPU is free, its network card isn't"
    with pytest.raises(vim.fault.GenericVmConfigFault, match="free PCI device"):
        with_card(client, "c")
    client.run(client.find("Singapore/vm/a").PowerOff())
    third = with_card(client, "d")
    assert assigned(third) == ["0000:40:00.0"]
    with pytest.raises(FULL):
        with_nic(client, "e")


def test_gpus_and_network_cards_of_a_group_are_those_of_one_switch(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=beside_nics(2, 2)).login()
    pass_through(client, "0000:40:00.0", "0000:41:00.0")
    first = alone(client, "first GPU", WHOLE)
    other = with_card(client, "first card")
    client.run(first.PowerOff())
    vm = with_nic(client, "pair")
    assert users(client, "a") == [[], ["pair"]]
    client.run(other.PowerOff())
    with_nic(client, "second pair")
    assert users(client, "a") == [["second pair"], ["pair"]]
    assert assigned(vm) == [None], "the group chose, not the device"


def test_a_card_beside_a_group_is_another_one(make_site: Callable[..., Any]) -> None:
    client = make_site(clusters=beside_nics(1, 1)).login()
    pass_through(client, "0000:40:00.0")
    with pytest.raises(vim.fault.GenericVmConfigFault, match="free PCI device"):
        with_nic(client, "both", card(key=-60))
    assert users(client, "a") == [[]]


@pytest.mark.parametrize(
    ("parts", "why"), [([NIC, NIC], "at least two"), ([WHOLE, NIC, NIC], "more network")]
)
def test_a_world_without_the_network_cards_of_its_group_is_refused(
    parts: list[str], why: str, make_site: Callable[..., Any]
) -> None:
    clusters = beside_nics(2, 1)
    clusters["gpu-farm"]["hosts"]["a.aiml.local"]["device_groups"] = {GPU_NIC: parts}
    with pytest.raises(BadWorld, match=why):
        make_site(clusters=clusters)
