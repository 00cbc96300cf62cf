"""specs/dlvm.yaml with what its hosts need, and a second Deep Learning VM beside the supervisor: what somebody changes
with a pyVmomi session of their own is named in drift, and an apply mends it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import started
from kinds.lifecycle import SPECS, apply, drift, endings, made
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

HOSTS = ["esx1-1.sandbox.test", "esx1-2.sandbox.test"]
CARD, MMIO = "0000:3b:00.0", "pciPassthru.use64bitMMIO"
PCI = vim.vm.device.VirtualPCIPassthrough
MACHINE = "virtual_machine/dl-02"


def described(folder: Path) -> Path:
    """The world, with the image as a template, too: the publisher's items have no files in the sandbox."""
    given = yaml.safe_load((SPECS / "worlds/dlvm.yaml").read_text())
    given["templates"] = {"common-container-nv-ubuntu-2204": {"cluster": "gpu", "datastore": "datastore1"}}
    (folder / "world.yaml").write_text(json.dumps(given))
    return folder / "world.yaml"


def site(folder: Path) -> Path:
    """The site: with the settings of its hosts, and a machine without the supervisor."""
    given = yaml.safe_load((SPECS / "dlvm.yaml").read_text())
    given |= {
        "host_graphics": {
            "vgpu": {
                "hosts": HOSTS,
                "type": "sharedDirect",
                "placement": "consolidation",
                "cards": {CARD: {"type": "sharedDirect", "mode": "mixedSize"}},
            }
        },
        "cluster_option": {
            "evacuate": {"clusters": ["gpu"], "key": "VgpuMMAutomationTimeoutSecs", "value": "-1"}
        },
        "virtual_machine": {
            "dl-02": {
                "template": "common-container-nv-ubuntu-2204",
                "cluster": "gpu",
                "host": HOSTS[1],
                "datastore": "datastore1",
                "cpus": 8,
                "memory": "64GiB",
                "adapters": [{"network": "VM Network"}],
                "disks": {"scsi0:1": {"size": "100GiB"}},
                "vgpus": ["nvidia_h100-40c"],
                "extra": {MMIO: "TRUE"},
            }
        },
    }
    (folder / "site.yaml").write_text(yaml.safe_dump(given))
    return folder / "site.yaml"


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("dlvm-by-hand")
    with started(described(folder), folder) as sandbox:
        done = apply(site(folder), sandbox)
        assert made(done), endings(done)
        yield sandbox, site(folder)


def machine(si: Any) -> Any:
    return si.content.searchIndex.FindByInventoryPath("/Datacenter/vm/dl-02")


def host(si: Any, name: str = HOSTS[0]) -> Any:
    return si.content.searchIndex.FindByInventoryPath(f"/Datacenter/host/gpu/{name}")


def reconfigured(si: Any, **spec: Any) -> None:
    WaitForTask(machine(si).ReconfigVM_Task(vim.vm.ConfigSpec(**spec)))


def shown(si: Any) -> list[Any]:
    """What the session sees of the machine, its hosts and their cluster."""
    vm, config = machine(si), machine(si).config
    devices = [
        (type(each).__name__, getattr(each.backing, "vgpu", ""), getattr(each, "capacityInKB", 0))
        for each in config.hardware.device
    ]
    graphics = [host(si, name).config.graphicsConfig for name in HOSTS]
    drs = si.content.searchIndex.FindByInventoryPath("/Datacenter/host/gpu").configurationEx.drsConfig
    return [
        (vm.runtime.powerState, config.hardware.numCPU, config.hardware.memoryMB),
        (config.memoryReservationLockedToMax, config.memoryAllocation.reservation),
        {each.key: each.value for each in config.extraConfig}.get(MMIO),
        sorted(devices),
        [(each.hostDefaultGraphicsType, each.sharedPassthruAssignmentPolicy) for each in graphics],
        [(card.graphicsType, card.vgpuMode) for each in graphics for card in each.deviceType],
        [(each.key, each.value) for each in drs.option],
    ]


def off(si: Any) -> None:
    WaitForTask(machine(si).PowerOffVM_Task())


def size(si: Any) -> None:
    off(si)
    reconfigured(si, numCPUs=2, memoryMB=32 << 10)


def reservation(si: Any) -> None:
    off(si)
    memory = vim.ResourceAllocationInfo(reservation=0)
    reconfigured(si, memoryReservationLockedToMax=False, memoryAllocation=memory)


def option(si: Any) -> None:
    reconfigured(si, extraConfig=[vim.option.OptionValue(key=MMIO, value="FALSE")])


def option_gone(si: Any) -> None:
    reconfigured(si, extraConfig=[vim.option.OptionValue(key=MMIO, value="")])


def without(si: Any, sort: type[Any]) -> None:
    off(si)
    gone = next(each for each in machine(si).config.hardware.device if isinstance(each, sort))
    operation = vim.vm.device.VirtualDeviceSpec(operation="remove", device=gone)
    reconfigured(si, deviceChange=[operation])


def vgpu_gone(si: Any) -> None:
    without(si, PCI)


def another_vgpu(si: Any) -> None:
    vgpu_gone(si)
    added = PCI(key=-1, backing=PCI.VmiopBackingInfo(vgpu="nvidia_h100-80c"))
    reconfigured(si, deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="add", device=added)])


def adapter_gone(si: Any) -> None:
    without(si, vim.vm.device.VirtualEthernetCard)


def disk_gone(si: Any) -> None:
    without(si, vim.vm.device.VirtualDisk)


def machine_gone(si: Any) -> None:
    off(si)
    WaitForTask(machine(si).Destroy_Task())


def graphics(si: Any, change: Callable[[Any], None]) -> None:
    manager = host(si).configManager.graphicsManager
    config = manager.graphicsConfig
    change(config)
    manager.UpdateGraphicsConfig(config)


def graphics_type(si: Any) -> None:
    graphics(si, lambda config: setattr(config, "hostDefaultGraphicsType", "shared"))


def placement(si: Any) -> None:
    graphics(si, lambda config: setattr(config, "sharedPassthruAssignmentPolicy", "performance"))


def card_mode(si: Any) -> None:
    graphics(si, lambda config: setattr(config.deviceType[0], "vgpuMode", "sameSize"))


def card_type(si: Any) -> None:
    graphics(si, lambda config: setattr(config.deviceType[0], "graphicsType", "shared"))


def drs_option(si: Any) -> None:
    cluster = si.content.searchIndex.FindByInventoryPath("/Datacenter/host/gpu")
    value = vim.option.OptionValue(key="VgpuMMAutomationTimeoutSecs", value="60")
    spec = vim.cluster.ConfigSpecEx(drsConfig=vim.cluster.DrsConfigInfo(option=[value]))
    WaitForTask(cluster.ReconfigureComputeResource_Task(spec, True))


BY_HAND: dict[Callable[[Any], None], set[str]] = {
    off: {f"{MACHINE}: power"},
    size: {f"{MACHINE}: cpus", f"{MACHINE}: memory", f"{MACHINE}: power"},
    reservation: {f"{MACHINE}: reserve", f"{MACHINE}: power"},
    option: {f"{MACHINE}: extra.{MMIO}"},
    option_gone: {f"{MACHINE}: extra.{MMIO}"},
    vgpu_gone: {f"{MACHINE}: vgpus", f"{MACHINE}: power"},
    another_vgpu: {f"{MACHINE}: vgpus", f"{MACHINE}: power"},
    adapter_gone: {f"{MACHINE}: adapters.0", f"{MACHINE}: power"},
    disk_gone: {f"{MACHINE}: disks.scsi0:1.size", f"{MACHINE}: power"},
    machine_gone: {f"{MACHINE}: "},
    graphics_type: {f"host_graphics/vgpu: hosts.{HOSTS[0]}.type"},
    placement: {f"host_graphics/vgpu: hosts.{HOSTS[0]}.placement"},
    card_mode: {f"host_graphics/vgpu: hosts.{HOSTS[0]}.mode {CARD}"},
    card_type: {f"host_graphics/vgpu: hosts.{HOSTS[0]}.type {CARD}"},
    drs_option: {"cluster_option/evacuate: clusters.gpu"},
}


@pytest.mark.parametrize("hand", BY_HAND, ids=lambda hand: str(hand.__name__))
def test_what_a_session_of_somebody_else_changes_is_named_and_mended(
    hand: Callable[[Any], None], applied: tuple[Running, Path]
) -> None:
    sandbox, path = applied
    with administrator(sandbox) as si:
        before = shown(si)
        hand(si)
        assert (hand is machine_gone) or shown(si) != before
    named = {f"{each.key}: {each.field}" for each in drift(path, sandbox).found}
    assert named == BY_HAND[hand]
    done = apply(path, sandbox)
    assert made(done), endings(done)
    assert drift(path, sandbox).found == ()
    with administrator(sandbox) as si:
        assert shown(si) == before
