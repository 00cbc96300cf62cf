"""Hosts, pools, folders, attributes, options, files and events."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim, vmodl

pytestmark = pytest.mark.thorough

FIRST = "0000:3b:00.0"


def passthrough(host: Any) -> tuple[bool, bool]:
    """Enabled and active, of the first GPU."""
    info = next(each for each in host.config.pciPassthruInfo if each.id == FIRST)
    return info.passthruEnabled, info.passthruActive


def test_passthrough_is_active_after_a_reboot_only(client: Any) -> None:
    host = client.host
    system = host.configManager.pciPassthruSystem
    system.UpdatePassthruConfig([vim.host.PciPassthruConfig(id=FIRST, passthruEnabled=True)])
    assert passthrough(host) == (True, False)
    assert host.summary.rebootRequired
    browser = client.find("Singapore/host/gpu-farm").environmentBrowser
    assert browser.QueryConfigTarget(host).pciPassthrough == []
    with pytest.raises(vim.fault.InvalidState):
        host.Reboot(force=False)
    client.pass_through(FIRST)
    assert passthrough(host) == (True, True)
    assert not host.summary.rebootRequired
    target = browser.QueryConfigTarget(host)
    assert [each.pciDevice.id for each in target.pciPassthrough] == [FIRST]
    assert [(each.vendorId, each.deviceId) for each in target.dynamicPassthrough] == [(0x10DE, 0x1DB6)]


def test_passthrough_of_an_unknown_device_is_refused(client: Any) -> None:
    with pytest.raises(vmodl.fault.InvalidArgument, match="0000:99"):
        client.host.configManager.pciPassthruSystem.UpdatePassthruConfig(
            [vim.host.PciPassthruConfig(id="0000:99:00.0", passthruEnabled=True)]
        )


def test_a_rebooting_host_answers_nothing(make_site: Any) -> None:
    client = make_site(pace=0.01, durations={"reboot": 3000, "task": 1}).login()
    client.run(client.host.EnterMaintenanceMode_Task(0))
    client.run(client.host.Reboot(force=False))
    assert client.host.runtime.connectionState == "notResponding"
    with pytest.raises(vmodl.fault.HostNotConnected):
        client.host.configManager.advancedOption.UpdateOptions(
            [vim.option.OptionValue(key="Net.PVRDMAVmknic", value="vmk0")]
        )


def test_maintenance_moves_what_can_move_and_waits_for_the_rest(client: Any) -> None:
    moving = client.vm("moving", cluster="compute", store="vsan")
    client.run(moving.PowerOn())
    home = moving.runtime.host
    client.run(home.EnterMaintenanceMode_Task(0))
    assert moving.runtime.host != home
    staying = client.vm("staying")
    client.run(staying.PowerOn())
    task = client.host.EnterMaintenanceMode_Task(0)
    assert task.info.state in ("queued", "running")
    assert not client.host.runtime.inMaintenanceMode
    client.run(staying.PowerOff())
    client.run(task)
    with pytest.raises(vim.fault.InvalidState):
        client.run(staying.PowerOn())
    client.run(client.host.ExitMaintenanceMode_Task(0))


def test_advanced_options_of_a_host_are_set_and_unknown_ones_refused(client: Any) -> None:
    options = client.host.configManager.advancedOption
    options.UpdateOptions([vim.option.OptionValue(key="Net.PVRDMAVmknic", value="vmk0")])
    assert options.QueryOptions("Net.PVRDMAVmknic")[0].value == "vmk0"
    with pytest.raises(vim.fault.InvalidName):
        options.UpdateOptions([vim.option.OptionValue(key="No.Such", value="1")])


def test_pools_are_made_changed_and_dissolved(client: Any) -> None:
    root = client.find("Singapore/host/gpu-farm").resourcePool
    limits = vim.ResourceAllocationInfo(
        reservation=0, limit=-1, expandableReservation=True, shares=vim.SharesInfo(level="normal", shares=0)
    )
    made = root.CreateResourcePool("p", vim.ResourceConfigSpec(cpuAllocation=limits, memoryAllocation=limits))
    with pytest.raises(vim.fault.DuplicateName):
        root.CreateResourcePool("p", vim.ResourceConfigSpec(cpuAllocation=limits, memoryAllocation=limits))
    vm = client.run(
        client.find("Singapore/vm").CreateVM_Task(
            vim.vm.ConfigSpec(name="a", files=vim.vm.FileInfo(vmPathName="[vsan]")), made
        )
    )
    made.UpdateConfig(
        "q",
        vim.ResourceConfigSpec(cpuAllocation=vim.ResourceAllocationInfo(limit=1000), memoryAllocation=limits),
    )
    assert (made.name, made.config.cpuAllocation.limit) == ("q", 1000)
    client.run(made.Destroy())
    assert vm.resourcePool == root
    with pytest.raises(vmodl.fault.NotSupported):
        root.Destroy()


def test_folders_are_made_filled_and_destroyed(client: Any) -> None:
    home = client.find("Singapore/vm")
    folder = home.CreateFolder("f")
    with pytest.raises(vim.fault.DuplicateName):
        home.CreateFolder("f")
    vm = client.vm("a")
    client.run(folder.MoveInto([vm]))
    assert client.find("Singapore/vm/f/a") == vm
    client.run(vm.PowerOn())
    with pytest.raises(vim.fault.InvalidPowerState):
        client.run(folder.Destroy())
    client.run(vm.PowerOff())
    client.run(folder.Destroy())
    assert client.find("Singapore/vm/f") is None


def test_custom_attributes_are_unique_typed_and_readable(client: Any) -> None:
    manager = client.content.customFieldsManager
    made = manager.AddCustomFieldDef("bfinfra", vim.HostSystem)
    with pytest.raises(vim.fault.DuplicateName):
        manager.AddCustomFieldDef("bfinfra", vim.HostSystem)
    manager.SetField(client.host, made.key, "before")
    assert [(each.key, each.value) for each in client.host.customValue] == [(made.key, "before")]
    with pytest.raises(vmodl.fault.InvalidArgument):
        manager.SetField(client.vm("a"), made.key, "x")
    anything = manager.AddCustomFieldDef("all", None)
    assert {each.name for each in manager.field} == {"AutoDeploy.MachineIdentity", "bfinfra", "all"}
    manager.RemoveCustomFieldDef(anything.key)
    assert [each.name for each in manager.field] == ["AutoDeploy.MachineIdentity", "bfinfra"]


def test_events_show_who_changed_what(site: Any, client: Any) -> None:
    vm = client.vm("a")
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(annotation="x")))
    client.run(client.vm("b").PowerOn())
    wanted = vim.event.EventFilterSpec(entity=vim.event.EventFilterSpec.ByEntity(entity=vm, recursion="self"))
    found = client.content.eventManager.QueryEvents(wanted)
    assert [type(each).__name__.rpartition(".")[2] for each in found] == [
        "VmCreatedEvent",
        "VmReconfiguredEvent",
    ]
    assert {each.userName for each in found} == {"AIML.LOCAL\\administrator"}
    assert found[0].createdTime <= found[1].createdTime


def test_files_are_listed_with_those_of_machines(client: Any) -> None:
    client.vm("a")
    store = client.find("Singapore/datastore/gpu-local")
    files = client.content.fileManager
    files.MakeDirectory("[gpu-local] iso/sub", client.find("Singapore"), True)
    found = client.run(store.browser.SearchDatastore_Task("[gpu-local]"))
    assert sorted(each.path for each in found.file) == ["a", "iso"]
    with pytest.raises(vim.fault.FileLocked):
        client.run(files.DeleteDatastoreFile_Task("[gpu-local] a", client.find("Singapore")))
    client.run(files.DeleteDatastoreFile_Task("[gpu-local] iso", client.find("Singapore")))
    with pytest.raises(vim.fault.FileNotFound):
        client.run(store.browser.SearchDatastore_Task("[gpu-local] iso"))


def test_search_finds_by_uuid_name_and_address(client: Any) -> None:
    vm = client.vm("a", extraConfig=[vim.option.OptionValue(key="guestinfo.ipaddress", value="10.0.0.7/24")])
    index = client.content.searchIndex
    client.run(vm.PowerOn())
    client.until(lambda: vm.guest.ipAddress == "10.0.0.7")
    assert index.FindByUuid(None, vm.config.instanceUuid, True, True) == vm
    assert index.FindByUuid(None, vm.config.uuid, True, False) == vm
    assert index.FindByIp(None, "10.0.0.7", True) == vm
    assert index.FindByDnsName(None, "a", True) == vm
    assert index.FindByDatastorePath(client.find("Singapore"), "[gpu-local] a/a.vmx") == vm
    assert index.FindChild(client.find("Singapore/vm"), "a") == vm


def test_port_groups_take_adapters_and_refuse_to_go_while_used(client: Any) -> None:
    member = vim.dvs.HostMember.ConfigSpec(operation="add", host=client.host)
    spec = vim.DistributedVirtualSwitch.CreateSpec(
        configSpec=vim.DistributedVirtualSwitch.ConfigSpec(name="dvs", host=[member])
    )
    switch = client.run(client.find("Singapore/network").CreateDVS_Task(spec))
    client.run(
        switch.AddDVPortgroup_Task(
            [vim.dvs.DistributedVirtualPortgroup.ConfigSpec(name="rocev2", type="earlyBinding")]
        )
    )
    group = client.find("Singapore/network/rocev2")
    assert [each.name for each in switch.portgroup] == [
        "dvs-DVUplinks-" + switch._moId.rpartition("-")[2],
        "rocev2",
    ]
    assert group in client.host.network
    port = vim.dvs.PortConnection(switchUuid=switch.uuid, portgroupKey=group.key)
    card = vim.vm.device.VirtualVmxnet3(
        key=-1, backing=vim.vm.device.VirtualEthernetCard.DistributedVirtualPortBackingInfo(port=port)
    )
    vm = client.vm("a", deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="add", device=card)])
    assert vm.network == [group]
    client.run(vm.PowerOn())
    client.until(lambda: vm.guest.toolsRunningStatus == "guestToolsRunning")
    with pytest.raises(vim.fault.ResourceInUse):
        client.run(group.Destroy())
    stale = group.config.configVersion
    client.run(
        group.Reconfigure(vim.dvs.DistributedVirtualPortgroup.ConfigSpec(name="roce", configVersion=stale))
    )
    assert group.name == "roce"
    with pytest.raises(vim.fault.ConcurrentAccess):
        group.Reconfigure(vim.dvs.DistributedVirtualPortgroup.ConfigSpec(name="x", configVersion=stale))


def test_settings_of_a_port_group_that_a_change_does_not_name_stay(client: Any) -> None:
    spec = vim.DistributedVirtualSwitch.CreateSpec(
        configSpec=vim.DistributedVirtualSwitch.ConfigSpec(name="dvs")
    )
    switch, vmware = (
        client.run(client.find("Singapore/network").CreateDVS_Task(spec)),
        vim.dvs.VmwareDistributedVirtualSwitch,
    )
    port = vmware.VmwarePortConfigPolicy(vlan=vmware.VlanIdSpec(inherited=False, vlanId=7))
    client.run(
        switch.AddDVPortgroup_Task(
            [
                vim.dvs.DistributedVirtualPortgroup.ConfigSpec(
                    name="a", type="earlyBinding", defaultPortConfig=port
                )
            ]
        )
    )
    group = client.find("Singapore/network/a")
    assert group.config.defaultPortConfig.blocked.inherited, "from its switch"
    blocked = vmware.VmwarePortConfigPolicy(blocked=vim.BoolPolicy(inherited=False, value=True))
    client.run(group.Reconfigure(vim.dvs.DistributedVirtualPortgroup.ConfigSpec(defaultPortConfig=blocked)))
    now = group.config.defaultPortConfig
    assert (now.vlan.vlanId, now.blocked.value) == (7, True)


def test_disks_adapters_and_controllers_say_what_nobody_set(client: Any) -> None:
    device = vim.vm.device
    backing = device.VirtualEthernetCard.NetworkBackingInfo(deviceName="VM Network")
    added = (
        (device.ParaVirtualSCSIController(key=-1, sharedBus="noSharing"), None),
        (
            device.VirtualDisk(
                key=-2,
                controllerKey=-1,
                capacityInKB=1024,
                backing=device.VirtualDisk.FlatVer2BackingInfo(diskMode="persistent"),
            ),
            "create",
        ),
        (device.VirtualVmxnet3(key=-3, backing=backing), None),
    )
    vm = client.vm(
        "a",
        deviceChange=[
            device.VirtualDeviceSpec(operation="add", device=each, fileOperation=how) for each, how in added
        ],
    )
    controller, disk, card = (
        next(each for each in vm.config.hardware.device if isinstance(each, kind))
        for kind in (device.VirtualSCSIController, device.VirtualDisk, device.VirtualVmxnet3)
    )
    assert (controller.hotAddRemove, controller.unitNumber) == (True, 3)
    assert (disk.shares.level, disk.storageIOAllocation.limit, disk.backing.sharing) == (
        "normal",
        -1,
        "sharingNone",
    )
    assert (card.resourceAllocation.limit, card.connectable.migrateConnect, card.slotInfo) == (
        -1,
        "unset",
        None,
    )
    client.run(vm.PowerOn())
    assert (
        next(each for each in vm.config.hardware.device if each.key == card.key).slotInfo.pciSlotNumber == 160
    )
