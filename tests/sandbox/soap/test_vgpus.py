"""vGPUs of hosts, by pyVmomi: a machine powers on where a card has room by the rules of its mode, else vCenter's
fault comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyVmomi import vim

pytestmark = pytest.mark.thorough

H100 = {
    "vendor": 0x10DE,
    "device": 0x2331,
    "name": "GH100 [H100 PCIe]",
    "class": 0x0302,
    "memory": "80GiB",
    "profiles": ["nvidia_h100-20c", "nvidia_h100-40c", "nvidia_h100-80c", "nvidia_h100-1-10c"],
}
CARDS = ("0000:3b:00.0", "0000:af:00.0")
PCI = vim.vm.device.VirtualPCIPassthrough


def farm(**hosts: int) -> dict[str, Any]:
    """A cluster whose hosts share so many cards."""
    return {
        "gpu-farm": {
            "hosts": {
                f"{name}.aiml.local": {
                    "memory": "768GiB",
                    "graphics": "sharedDirect",
                    "pci": [{"id": each, **H100} for each in CARDS[:count]],
                }
                for name, count in hosts.items()
            }
        }
    }


def machine(client: Any, name: str, *profiles: str) -> Any:
    changes = [
        vim.vm.device.VirtualDeviceSpec(
            operation="add", device=PCI(key=-n - 1, backing=PCI.VmiopBackingInfo(vgpu=profile))
        )
        for n, profile in enumerate(profiles)
    ]
    reserved = vim.ResourceAllocationInfo(reservation=4096)
    return client.vm(name, memoryMB=4096, memoryAllocation=reserved, deviceChange=changes)


def on(client: Any, name: str, *profiles: str) -> Any:
    vm = machine(client, name, *profiles)
    client.run(vm.PowerOn())
    return vm


def set_graphics(client: Any, host: str, *, mode: str = "sameSize", placement: str = "performance") -> None:
    manager = client.find(f"Singapore/host/gpu-farm/{host}").configManager.graphicsManager
    config = manager.graphicsConfig
    config.sharedPassthruAssignmentPolicy = placement
    for each in config.deviceType:
        each.vgpuMode = mode
    manager.UpdateGraphicsConfig(config)


def users(client: Any, host: str) -> list[int]:
    """How many machines use each card."""
    config = client.find(f"Singapore/host/gpu-farm/{host}").config
    return [len(each.vm) for each in config.graphicsInfo]


@pytest.fixture
def one(make_site: Callable[..., Any]) -> Any:
    """A host with one card."""
    return make_site(clusters=farm(a=1)).login()


def test_a_card_gives_what_fits_and_what_a_stopped_machine_gave_back(one: Any) -> None:
    first, _ = on(one, "a", "nvidia_h100-40c"), on(one, "b", "nvidia_h100-40c")
    third = machine(one, "c", "nvidia_h100-40c")
    with pytest.raises(vim.fault.InsufficientGraphicsResourcesFault, match="graphics resource available"):
        one.run(third.PowerOn())
    assert third.runtime.powerState == "poweredOff"
    one.run(first.PowerOff())
    one.run(third.PowerOn())
    assert users(one, "a.aiml.local") == [2]


def test_a_card_of_same_size_takes_no_other_size(one: Any) -> None:
    on(one, "a", "nvidia_h100-40c")
    with pytest.raises(vim.fault.InsufficientGraphicsResourcesFault):
        on(one, "b", "nvidia_h100-20c")


def test_a_card_of_mixed_size_takes_halves_and_quarters_until_it_is_full(one: Any) -> None:
    set_graphics(one, "a.aiml.local", mode="mixedSize")
    for name, profile in (("a", "nvidia_h100-40c"), ("b", "nvidia_h100-20c"), ("c", "nvidia_h100-20c")):
        on(one, name, profile)
    with pytest.raises(vim.fault.InsufficientGraphicsResourcesFault):
        on(one, "d", "nvidia_h100-20c")


def test_parts_by_mig_are_not_beside_vgpus_by_time(one: Any) -> None:
    for number in range(7):
        on(one, f"part-{number}", "nvidia_h100-1-10c")
    for profile in ("nvidia_h100-1-10c", "nvidia_h100-20c"):
        with pytest.raises(vim.fault.InsufficientGraphicsResourcesFault):
            on(one, f"more-{profile[-3:]}-{profile[12]}", profile)


def test_a_profile_that_no_host_offers_is_another_fault(one: Any) -> None:
    with pytest.raises(
        vim.fault.GenericVmConfigFault, match="No graphics device is available for vGPU 'x-8q'"
    ):
        on(one, "a", "x-8q")


def test_a_host_that_shares_no_cards_gives_none(one: Any) -> None:
    manager = one.find("Singapore/host/gpu-farm/a.aiml.local").configManager.graphicsManager
    config = manager.graphicsConfig
    config.hostDefaultGraphicsType = "shared"
    manager.UpdateGraphicsConfig(config)
    with pytest.raises(vim.fault.GenericVmConfigFault, match="No graphics device"):
        on(one, "a", "nvidia_h100-40c")


@pytest.mark.parametrize(("placement", "spread"), [("consolidation", [2, 0]), ("performance", [1, 1])])
def test_the_policy_of_the_host_chooses_the_card(make_site: Any, placement: str, spread: list[int]) -> None:
    client = make_site(clusters=farm(a=2)).login()
    set_graphics(client, "a.aiml.local", placement=placement)
    on(client, "a", "nvidia_h100-40c")
    on(client, "b", "nvidia_h100-40c")
    assert sorted(users(client, "a.aiml.local"), reverse=True) == spread


def test_drs_places_a_machine_on_the_host_that_has_room(make_site: Any) -> None:
    client = make_site(clusters=farm(a=1, b=0, c=1)).login()
    hosts = {on(client, f"vm-{n}", "nvidia_h100-80c").runtime.host.name for n in range(2)}
    assert hosts == {"a.aiml.local", "c.aiml.local"}
    with pytest.raises(vim.fault.InsufficientGraphicsResourcesFault):
        on(client, "third", "nvidia_h100-80c")


def test_two_vgpus_of_one_machine_come_together_or_not_at_all(one: Any) -> None:
    on(one, "a", "nvidia_h100-40c")
    with pytest.raises(vim.fault.InsufficientGraphicsResourcesFault):
        on(one, "b", "nvidia_h100-40c", "nvidia_h100-40c")
    assert users(one, "a.aiml.local") == [1]
