"""Machines over SOAP: the rules that ESXi checks. pyVmomi as shipped is the client."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim, vmodl

pytestmark = pytest.mark.thorough

FIRST, SECOND = "0000:3b:00.0", "0000:af:00.0"


def gpu(address: str) -> Any:
    """A device change that adds a fixed passthrough device."""
    backing = vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
        id=address, deviceId="1db6", vendorId=0x10DE, systemId="BYPASS", deviceName="V100"
    )
    return vim.vm.device.VirtualDeviceSpec(
        operation="add", device=vim.vm.device.VirtualPCIPassthrough(key=-1, backing=backing)
    )


def any_gpu(count: int = 1) -> list[Any]:
    """Device changes that add dynamic passthrough devices."""
    passthrough = vim.vm.device.VirtualPCIPassthrough
    allowed = passthrough.AllowedDevice(vendorId=0x10DE, deviceId=0x1DB6)
    return [
        vim.vm.device.VirtualDeviceSpec(
            operation="add",
            device=passthrough(
                key=-n - 1, backing=passthrough.DynamicBackingInfo(deviceName="", allowedDevice=[allowed])
            ),
        )
        for n in range(count)
    ]


def option(key: str, value: str) -> Any:
    return vim.option.OptionValue(key=key, value=value)


def test_a_created_machine_runs_stops_and_goes(client: Any) -> None:
    vm = client.vm("vm-a", memoryMB=8192, numCPUs=4)
    client.run(vm.PowerOn())
    client.until(lambda: vm.guest.toolsRunningStatus == "guestToolsRunning")
    assert (vm.summary.runtime.powerState, vm.summary.config.memorySizeMB) == ("poweredOn", 8192)
    with pytest.raises(vim.fault.InvalidPowerState):
        vm.PowerOn()
    with pytest.raises(vim.fault.InvalidPowerState):
        vm.Destroy()
    vm.ShutdownGuest()
    client.until(lambda: vm.runtime.powerState == "poweredOff")
    client.run(vm.Destroy())
    assert client.find("Singapore/vm/vm-a") is None
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vm.name  # noqa: B018 - reading is the test


def test_two_machines_of_one_name_in_a_folder_are_refused(client: Any) -> None:
    client.vm("vm-a")
    with pytest.raises(vim.fault.DuplicateName):
        client.vm("vm-a")


def test_extra_config_keys_go_with_an_empty_value(client: Any) -> None:
    vm = client.vm(extraConfig=[option("a", "1"), option("b", "2")])
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(extraConfig=[option("a", ""), option("c", "3")])))
    assert {each.key: each.value for each in vm.config.extraConfig} == {"b": "2", "c": "3"}


def test_a_stale_change_version_is_refused(client: Any) -> None:
    vm = client.vm()
    seen = vm.config.changeVersion
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(annotation="x", changeVersion=seen)))
    with pytest.raises(vim.fault.ConcurrentAccess):
        vm.Reconfigure(vim.vm.ConfigSpec(annotation="y", changeVersion=seen))


def test_a_refused_change_changes_nothing(client: Any) -> None:
    vm = client.vm(memoryMB=4096)
    spec = vim.vm.ConfigSpec(
        annotation="x", memoryMB=8192, memoryAllocation=vim.ResourceAllocationInfo(reservation=16384)
    )
    with pytest.raises(vmodl.fault.InvalidArgument):
        client.run(vm.Reconfigure(spec))
    assert (vm.config.annotation, vm.config.hardware.memoryMB, vm.config.memoryAllocation.reservation) == (
        "",
        4096,
        0,
    )


def test_a_running_machine_takes_no_cold_changes(client: Any) -> None:
    vm = client.vm()
    client.run(vm.PowerOn())
    for spec, fault in (
        (vim.vm.ConfigSpec(memoryMB=8192), vim.fault.MemoryHotPlugNotSupported),
        (vim.vm.ConfigSpec(numCPUs=8), vim.fault.CpuHotPlugNotSupported),
        (vim.vm.ConfigSpec(firmware="efi"), vim.fault.InvalidPowerState),
        (vim.vm.ConfigSpec(deviceChange=[gpu(FIRST)]), vim.fault.InvalidPowerState),
    ):
        with pytest.raises(fault):
            client.run(vm.Reconfigure(spec))


def test_memory_locked_to_its_maximum_is_reserved_and_stays_so(client: Any) -> None:
    vm = client.vm(memoryMB=4096, memoryReservationLockedToMax=True)
    assert vm.config.memoryAllocation.reservation == 4096
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(memoryMB=8192)))
    assert vm.config.memoryAllocation.reservation == 8192


def test_a_gpu_needs_passthrough_reserved_memory_and_nobody_else_on_it(client: Any) -> None:
    first = client.vm("first", memoryMB=4096, deviceChange=[gpu(FIRST)])
    with pytest.raises(vim.fault.GenericVmConfigFault, match="memory reservation"):
        client.run(first.PowerOn())
    client.run(first.Reconfigure(vim.vm.ConfigSpec(memoryReservationLockedToMax=True)))
    with pytest.raises(vim.fault.GenericVmConfigFault, match="not a passthrough device"):
        client.run(first.PowerOn())
    client.pass_through(FIRST, SECOND)
    client.run(first.PowerOn())
    second = client.vm("second", memoryMB=4096, memoryReservationLockedToMax=True, deviceChange=[gpu(FIRST)])
    with pytest.raises(vim.fault.GenericVmConfigFault, match="in use by first"):
        client.run(second.PowerOn())
    with pytest.raises(vim.fault.GenericVmConfigFault):
        client.run(first.Suspend())


def test_dynamic_devices_are_assigned_at_power_on_and_given_back(client: Any) -> None:
    client.pass_through(FIRST, SECOND)
    vms = [
        client.vm(name, memoryMB=4096, memoryReservationLockedToMax=True, deviceChange=any_gpu(count))
        for name, count in (("a", 2), ("b", 1))
    ]
    client.run(vms[0].PowerOn())
    taken = {
        each.backing.assignedId
        for each in vms[0].config.hardware.device
        if isinstance(each, vim.vm.device.VirtualPCIPassthrough)
    }
    assert taken == {FIRST, SECOND}
    with pytest.raises(vim.fault.GenericVmConfigFault):
        client.run(vms[1].PowerOn())
    client.run(vms[0].PowerOff())
    client.run(vms[1].PowerOn())


@pytest.mark.parametrize("address", ["0000:99:00.0", ""])
def test_a_device_that_the_host_lacks_is_refused(client: Any, address: str) -> None:
    with pytest.raises((vim.fault.InvalidDeviceSpec, vim.fault.NoCompatibleHost)):
        client.vm("x", deviceChange=[gpu(address)])
    vm = client.vm("y")
    with pytest.raises(vim.fault.InvalidDeviceSpec):
        client.run(vm.Reconfigure(vim.vm.ConfigSpec(deviceChange=[gpu(address)])))


def test_the_same_device_twice_in_one_machine_is_refused(client: Any) -> None:
    with pytest.raises(vim.fault.InvalidDeviceSpec):
        client.vm("x", deviceChange=[gpu(FIRST), gpu(FIRST)])


def test_an_unknown_network_is_refused(client: Any) -> None:
    card = vim.vm.device.VirtualVmxnet3(
        key=-1, backing=vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(deviceName="nowhere")
    )
    with pytest.raises(vim.fault.InvalidDeviceSpec, match="nowhere"):
        client.vm("x", deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="add", device=card)])
    assert client.find("Singapore/vm/x") is None


def with_disk(size: int) -> list[Any]:
    return [
        vim.vm.device.VirtualDeviceSpec(
            operation="add",
            device=vim.vm.device.ParaVirtualSCSIController(key=-1, busNumber=0, sharedBus="noSharing"),
        ),
        vim.vm.device.VirtualDeviceSpec(
            operation="add",
            fileOperation="create",
            device=vim.vm.device.VirtualDisk(
                key=-2,
                controllerKey=-1,
                unitNumber=0,
                capacityInKB=size,
                backing=vim.vm.device.VirtualDisk.FlatVer2BackingInfo(fileName="", diskMode="persistent"),
            ),
        ),
    ]


def test_a_disk_larger_than_the_datastore_is_refused(client: Any) -> None:
    with pytest.raises(vim.fault.NoDiskSpace):
        client.vm("x", deviceChange=with_disk(5 << 30))


def test_a_disk_grows_no_further_than_its_datastore(client: Any) -> None:
    vm = client.vm("x", deviceChange=with_disk(1 << 20))
    (disk,) = [each for each in vm.config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk)]
    disk.capacityInKB, disk.capacityInBytes = 5 << 30, 5 << 40
    with pytest.raises(vim.fault.NoDiskSpace):
        client.run(
            vm.Reconfigure(
                vim.vm.ConfigSpec(
                    deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="edit", device=disk)]
                )
            )
        )


def test_a_task_holds_its_machine(make_site: Any) -> None:
    client = make_site(pace=1.0, durations={"task": 0.2}).login()
    vm = client.vm()
    task = vm.PowerOn()
    with pytest.raises(vim.fault.TaskInProgress):
        vm.Reconfigure(vim.vm.ConfigSpec(annotation="x"))
    task.Cancel()
    assert isinstance(task.info.error, vmodl.fault.RequestCanceled)
    assert vm.runtime.powerState == "poweredOff"


def test_clones_take_devices_but_no_gpu_and_templates_do_not_run(client: Any) -> None:
    vm = client.vm("source", memoryMB=8192, extraConfig=[option("a", "1")], deviceChange=[gpu(FIRST)])
    vm.MarkAsTemplate()
    with pytest.raises(vim.fault.InvalidState):
        vm.PowerOn()
    pool = client.find("Singapore/host/gpu-farm").resourcePool
    spec = vim.vm.CloneSpec(
        location=vim.vm.RelocateSpec(pool=pool),
        powerOn=False,
        template=False,
        config=vim.vm.ConfigSpec(extraConfig=[option("b", "2")]),
    )
    copied = client.run(vm.Clone(client.find("Singapore/vm"), "copy", spec))
    assert {each.key for each in copied.config.extraConfig} == {"a", "b"}
    assert not [
        each
        for each in copied.config.hardware.device
        if isinstance(each, vim.vm.device.VirtualPCIPassthrough)
    ]
    assert copied.config.instanceUuid != vm.config.instanceUuid
