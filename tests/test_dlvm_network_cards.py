"""A Deep Learning VM whose VM class has a device group of a GPU and a network card: the host passes the card through,
the machine holds both, and what doesn't fit is refused before the first write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import started
from kinds.lifecycle import SPECS, apply, drift, endings, made, plan
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, supervisor
from sandbox.asking import Rest

from bfinfra.sandbox import Running

GROUP, WHOLE = "Nvidia:1@nvidia_h100-80c%NIC", "nvidia_h100-80c"
HOST = "esx1-1.sandbox.test"
VMS = "/apis/vmoperator.vmware.com/v1alpha6/namespaces/ml/virtualmachines"
CLASS = "/api/vcenter/namespace-management/virtual-machine-classes/h100-nic"
CX7 = {"vendor": 0x15B3, "device": 0x1021, "name": "MT2910 Family [ConnectX-7]", "class": 0x0200}


def described(folder: Path) -> Path:
    """The world: one host has two GPUs with a network card each, the other one GPU."""
    world = yaml.safe_load((SPECS / "worlds/dlvm.yaml").read_text())
    host = world["clusters"]["gpu"]["hosts"][HOST]
    (gpu,) = host["pci"]
    host["pci"] += [{**gpu, "id": "0000:3c:00.0"}, *({"id": f"0000:4{n}:00.0", **CX7} for n in range(2))]
    host["device_groups"] = {GROUP: [WHOLE, "15b3:1021"]}
    (folder / "world.yaml").write_text(json.dumps(world))
    return folder / "world.yaml"


def site(folder: Path, cards: int, machines: int = 1) -> Path:
    """The host passes so many network cards through, for so many machines."""
    given: dict[str, Any] = yaml.safe_load((SPECS / "dlvm.yaml").read_text())
    nics = [{"address": f"0000:4{n}:00.0"} for n in range(cards)]
    given["gpu_host"] = {HOST: {"cluster": "gpu", "passthrough": nics, "reboot": "if_needed"}}
    vm_class = {**given["vm_class"]["h100-40c"], "vgpus": [], "device_groups": [GROUP]}
    given["vm_class"] = {"h100-nic": vm_class}
    given["supervisor_namespace"]["ml"]["vm_classes"] = ["h100-nic"]
    machine = {**given["service_vm"]["dl-01"], "vm_class": "h100-nic"}
    given["service_vm"] = {f"dl-{n:02}": machine for n in range(1, machines + 1)}
    (folder / "site.yaml").write_text(yaml.safe_dump(given))
    return folder / "site.yaml"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The site with one card and one machine, applied."""
    folder = tmp_path_factory.mktemp("network-cards")
    with started(described(folder), folder) as sandbox:
        done = apply(site(folder, 1), sandbox)
        assert made(done), endings(done)
        yield sandbox


def test_the_class_has_both_devices_of_the_group_and_is_no_drift(running: Running, tmp_path: Path) -> None:
    spec = Rest(running, "administrator@vsphere.local").get(CLASS)["config_spec"]
    gpu, nic = (each["device"] for each in spec["deviceChange"])
    assert (gpu["backing"]["vgpu"], nic["backing"]["allowedDevice"][0]["deviceId"]) == (WHOLE, 0x1021)
    places = [each["deviceGroupInfo"]["sequenceId"] for each in (gpu, nic)]
    assert (places, spec["deviceGroups"]["deviceGroup"][0]["deviceGroupName"]) == ([0, 1], GROUP)
    assert drift(site(tmp_path, 1), running).found == ()


def test_the_machine_holds_the_network_card_so_that_nobody_else_gets_it(running: Running) -> None:
    machine = supervisor(running, "GPU").call("GET", f"{VMS}/dl-01")
    assert machine["status"]["powerState"] == "PoweredOn"
    device = vim.vm.device.VirtualPCIPassthrough
    allowed = device.AllowedDevice(vendorId=0x15B3, deviceId=0x1021)
    backing = device.DynamicBackingInfo(deviceName="", allowedDevice=[allowed])
    change = vim.vm.device.VirtualDeviceSpec(operation="add", device=device(key=-1, backing=backing))
    spec = vim.vm.ConfigSpec(
        name="another",
        guestId="other3xLinux64Guest",
        files=vim.vm.FileInfo(vmPathName="[datastore1]"),
        memoryMB=1024,
        memoryReservationLockedToMax=True,
        deviceChange=[change],
    )
    with administrator(running) as si:
        find = si.content.searchIndex.FindByInventoryPath
        pool, host = find("/Datacenter/host/gpu/Resources"), find(f"/Datacenter/host/gpu/{HOST}")
        WaitForTask(find("/Datacenter/vm").CreateVM_Task(spec, pool, host))
        vm = find("/Datacenter/vm/another")
        with pytest.raises(vim.fault.VimFault, match="free PCI device"):
            WaitForTask(vm.PowerOnVM_Task())
        WaitForTask(vm.Destroy_Task())


def test_more_machines_than_there_are_groups_are_refused(running: Running, tmp_path: Path) -> None:
    (problem,) = map(str, plan(site(tmp_path, 2, 3), running).problems)
    assert f"can take 3 device groups {GROUP}; the hosts of gpu have 2" in problem
    assert "each takes 1 linked card and 1 network card of one host" in problem
    assert plan(site(tmp_path, 2, 2), running).problems == ()
