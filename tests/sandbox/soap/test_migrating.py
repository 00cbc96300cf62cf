"""What keeps a machine from another host or datastore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from moving import (
    CARD,
    FARM,
    added,
    card,
    disks,
    files,
    host,
    located,
    machine,
    moves,
    relocate,
    root,
    running,
    store,
)
from pyVmomi import vim, vmodl

pytestmark = pytest.mark.thorough

NIC = vim.vm.device.VirtualEthernetCard
Change = Callable[[Any, Any], Any]


@pytest.fixture
def client(make_site: Any) -> Any:
    return make_site(**FARM).login()


def on_a_network_of_the_gpu_host(client: Any, *, rdma: bool = False, everywhere: bool = False) -> Any:
    """An adapter on a port group of a switch that the other hosts are not on."""
    members = [host(client, "gpu"), *([host(client, "small")] if everywhere else [])]
    spec = vim.DistributedVirtualSwitch.ConfigSpec(
        name="dvs", host=[vim.dvs.HostMember.ConfigSpec(operation="add", host=each) for each in members]
    )
    switch = client.run(
        client.find("Singapore/network").CreateDVS_Task(
            vim.DistributedVirtualSwitch.CreateSpec(configSpec=spec)
        )
    )
    group = vim.dvs.DistributedVirtualPortgroup.ConfigSpec(name="group", type="earlyBinding")
    client.run(switch.AddDVPortgroup_Task([group]))
    key = client.find("Singapore/network/group").key
    backing = NIC.DistributedVirtualPortBackingInfo(
        port=vim.dvs.PortConnection(switchUuid=switch.uuid, portgroupKey=key)
    )
    kind = vim.vm.device.VirtualVmxnet3Vrdma if rdma else vim.vm.device.VirtualVmxnet3
    return added(kind(key=-40, backing=backing))


def in_maintenance(client: Any, name: str) -> Any:
    client.run(host(client, name).EnterMaintenanceMode_Task(10))
    return host(client, name)


def disconnected(client: Any, name: str) -> Any:
    found = host(client, name)
    client.run(found.DisconnectHost_Task())
    return found


def reserved(client: Any, vm: Any) -> Any:
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(memoryReservationLockedToMax=True)))
    return vm


def crowded(client: Any) -> Any:
    """The small host with a machine that reserves all but 2 GiB."""
    other = machine(client, "other", at="shared", on="small", memoryReservationLockedToMax=True)
    client.run(other.Reconfigure(vim.vm.ConfigSpec(memoryMB=6144)))
    running(client, other)
    return host(client, "small")


REFUSED: dict[str, tuple[type[Exception], str, Change]] = {
    "a host of another cluster than its pool": (
        vmodl.fault.InvalidArgument,
        "no host of farm",
        lambda c, _: {"host": host(c, "far")},
    ),
    "a host of another cluster than the pool named": (
        vmodl.fault.InvalidArgument,
        "no host of compute",
        lambda c, _: {"host": host(c, "small"), "pool": root(c, "compute")},
    ),
    "a disk that it has not": (
        vmodl.fault.InvalidArgument,
        "no disk 99",
        lambda c, _: {"disk": [vim.vm.RelocateSpec.DiskLocator(diskId=99, datastore=store(c, "shared"))]},
    ),
    "a datastore that its host lacks": (
        vim.fault.InaccessibleDatastore,
        "remote",
        lambda c, _: {"datastore": store(c, "remote")},
    ),
    "a disk to a datastore that its host lacks": (
        vim.fault.InaccessibleDatastore,
        "remote",
        lambda c, vm: {"disk": [located(vm, 0, store(c, "remote"))]},
    ),
    "a host without the datastore of its configuration": (
        vim.fault.CannotAccessVmConfig,
        "local",
        lambda c, _: {"host": host(c, "small")},
    ),
    "a host without the datastore on which a disk stays": (
        vim.fault.CannotAccessVmDisk,
        "Hard disk 2",
        lambda c, vm: {
            "host": host(c, "small"),
            "datastore": store(c, "shared"),
            "disk": [located(vm, 1, store(c, "local"))],
        },
    ),
    "a datastore without room for all disks": (
        vim.fault.NoDiskSpace,
        "tiny",
        lambda c, _: {"datastore": store(c, "tiny")},
    ),
    "a host in maintenance": (
        vim.fault.InvalidState,
        "maintenance",
        lambda c, _: {"host": in_maintenance(c, "small"), "datastore": store(c, "shared")},
    ),
    "a host that is disconnected": (
        vmodl.fault.HostNotConnected,
        "small",
        lambda c, _: {"host": disconnected(c, "small"), "datastore": store(c, "shared")},
    ),
    "from a host that is disconnected": (
        vim.fault.InvalidState,
        "vm is disconnected",
        lambda c, _: disconnected(c, "gpu") and {"host": host(c, "small"), "datastore": store(c, "shared")},
    ),
    "no host of another cluster has its datastore": (
        vim.fault.NoCompatibleHost,
        "compute",
        lambda c, _: {"pool": root(c, "compute")},
    ),
    "a host without room for its reservation": (
        vim.fault.InsufficientMemoryResourcesFault,
        "2048 MB free",
        lambda c, vm: running(c, reserved(c, vm)) and {"host": crowded(c), "datastore": store(c, "shared")},
    ),
    "a folder, which the sandbox lacks": (
        vmodl.fault.NotSupported,
        "folder",
        lambda c, _: {"folder": c.find("Singapore/vm")},
    ),
    "another format of a disk, which the sandbox lacks": (
        vmodl.fault.NotSupported,
        "diskBackingInfo",
        lambda c, vm: {"disk": [located(vm, 0, store(c, "shared"), diskBackingInfo=disks(vm)[0].backing)]},
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_machine_stays_where_it_is_refused(client: Any, what: str) -> None:
    fault, why, change = REFUSED[what]
    vm = machine(client)
    spec = change(client, vm)
    before = (vm.runtime.host, vm.resourcePool, list(vm.datastore), files(vm))
    with pytest.raises(fault, match=why):
        relocate(client, vm, **spec)
    assert (vm.runtime.host, vm.resourcePool, list(vm.datastore), files(vm)) == before
    assert moves(client, vm) == []


@pytest.mark.parametrize(
    ("devices", "on", "fault", "why"),
    [
        (lambda _: card(), False, vim.fault.CannotAccessVmDevice, CARD),
        (lambda _: card(), True, vim.fault.DisallowedMigrationDeviceAttached, "PCI device 0"),
        (
            lambda c: on_a_network_of_the_gpu_host(c, rdma=True, everywhere=True),
            True,
            vim.fault.DisallowedMigrationDeviceAttached,
            "Network adapter 1",
        ),
        (on_a_network_of_the_gpu_host, False, vim.fault.CannotAccessNetwork, "group"),
        (on_a_network_of_the_gpu_host, True, vim.fault.CannotAccessNetwork, "group"),
    ],
    ids=["card", "card-running", "rdma-running", "network", "network-running"],
)
def test_a_device_keeps_a_machine_on_its_host(
    make_site: Any, devices: Callable[[Any], Any], on: bool, fault: type[Exception], why: str
) -> None:
    client = make_site(**FARM).login()
    device = devices(client)
    if on:
        pass_through(client)
    vm = machine(client, at="shared", devices=[device], memoryReservationLockedToMax=True)
    if on:
        running(client, vm)
    with pytest.raises(fault, match=why):
        relocate(client, vm, host=host(client, "small"))
    assert vm.runtime.host == host(client, "gpu")
    relocate(client, vm, datastore=store(client, "local"))
    assert vm.config.files.vmPathName.startswith("[local]")


def pass_through(client: Any) -> None:
    gpu = host(client, "gpu")
    gpu.configManager.pciPassthruSystem.UpdatePassthruConfig(
        [vim.host.PciPassthruConfig(id=CARD, passthruEnabled=True)]
    )
    client.run(gpu.EnterMaintenanceMode_Task(10))
    client.run(gpu.RebootHost_Task(force=False))
    client.until(lambda: gpu.runtime.connectionState == "connected")
    client.run(gpu.ExitMaintenanceMode_Task(10))


def test_an_adapter_that_will_not_be_connected_keeps_no_machine(client: Any) -> None:
    card = on_a_network_of_the_gpu_host(client)
    card.device.connectable = vim.vm.device.VirtualDevice.ConnectInfo(
        startConnected=False, connected=False, allowGuestControl=True
    )
    vm = machine(client, at="shared", devices=[card])
    relocate(client, vm, host=host(client, "small"))
    assert vm.runtime.host == host(client, "small")


def test_another_datacenter_asks_for_a_folder(make_site: Any) -> None:
    beside = {
        "datacenter": "Basel",
        "clusters": {"basel": {"alone": {}}},
        "datastores": {"there": {"capacity": "1TiB"}},
    }
    client = make_site(**FARM, beside=[beside]).login()
    vm, cluster = machine(client), client.find("Basel/host/basel")
    with pytest.raises(vmodl.fault.InvalidArgument, match=r"spec\.folder"):
        relocate(client, vm, pool=cluster.resourcePool, datastore=client.find("Basel/datastore/there"))
