"""RelocateVM_Task: machines go to other pools, hosts and datastores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from moving import FARM, below, files, host, located, machine, moves, relocate, root, running, store
from pyVmomi import vim

ADMIN = {"name": "administrator@aiml.local", "password": "VMware1!", "role": "admin"}


@pytest.fixture
def client(make_site: Any) -> Any:
    return make_site(**FARM).login()


def test_a_machine_that_is_off_goes_with_its_files(client: Any) -> None:
    vm, gpu, far, shared = machine(client), host(client, "gpu"), host(client, "far"), store(client, "shared")
    version, free = vm.config.changeVersion, shared.summary.freeSpace
    relocate(client, vm, host=far, pool=root(client, "compute"), datastore=shared)
    assert (vm.runtime.host, vm.summary.runtime.host, vm.resourcePool) == (far, far, root(client, "compute"))
    assert (list(vm.datastore), files(vm)) == ([shared], ["[shared] vm/vm.vmdk", "[shared] vm/vm_1.vmdk"])
    assert vm.summary.config.vmPathName == vm.config.files.vmPathName == "[shared] vm/vm.vmx"
    assert [each.name for each in vm.config.datastoreUrl] == ["shared"]
    assert vm.config.changeVersion != version
    assert vm.environmentBrowser == far.parent.environmentBrowser
    assert (list(gpu.vm), list(far.vm), list(store(client, "local").vm), list(shared.vm)) == (
        [],
        [vm],
        [],
        [vm],
    )
    assert shared.summary.freeSpace == free - (4 << 30)
    (told,) = moves(client, vm)
    assert isinstance(told, vim.event.VmRelocatedEvent)
    assert (told.host.host, told.sourceHost.host, told.sourceDatastore.name) == (far, gpu, "local")
    assert told.userName == "AIML.LOCAL\\administrator"


def test_a_running_machine_goes_to_another_host_and_runs_on(client: Any) -> None:
    vm = machine(client, at="shared")
    client.run(vm.PowerOn())
    client.until(lambda: vm.guest.toolsRunningStatus == "guestToolsRunning")
    before = vm.config.changeVersion
    relocate(client, vm, host=host(client, "small"))
    assert (vm.runtime.host, vm.runtime.powerState) == (host(client, "small"), "poweredOn")
    assert (vm.guest.toolsRunningStatus, vm.config.changeVersion) == ("guestToolsRunning", before)
    assert [type(each) for each in moves(client, vm)] == [vim.event.VmMigratedEvent]


def test_a_disk_stays_or_goes_by_its_locator(client: Any) -> None:
    vm, local, shared = machine(client), store(client, "local"), store(client, "shared")
    relocate(client, vm, datastore=shared, disk=[located(vm, 1, local)])
    assert files(vm) == ["[shared] vm/vm.vmdk", "[local] vm/vm_1.vmdk"]
    assert list(vm.datastore) == [shared, local]
    relocate(client, vm, disk=[located(vm, 0, local)])
    assert files(vm) == ["[local] vm/vm.vmdk", "[local] vm/vm_1.vmdk"]
    assert (list(vm.datastore), vm.config.files.vmPathName) == ([shared, local], "[shared] vm/vm.vmx")


def test_a_pool_alone_keeps_the_host_where_that_is_in_its_cluster(client: Any) -> None:
    vm = machine(client)
    pool = below(root(client, "farm"), "team")
    relocate(client, vm, pool=pool)
    assert (vm.resourcePool, vm.runtime.host, list(pool.vm)) == (pool, host(client, "gpu"), [vm])
    assert moves(client, vm) == []


def test_a_pool_of_another_cluster_has_a_host_with_the_datastore(client: Any) -> None:
    vm = machine(client)
    relocate(client, vm, pool=root(client, "compute"), datastore=store(client, "remote"))
    assert vm.runtime.host == host(client, "further")


def test_a_template_goes_and_has_no_pool(client: Any) -> None:
    vm = machine(client, at="shared")
    vm.MarkAsTemplate()
    relocate(client, vm, host=host(client, "small"), pool=root(client, "farm"))
    assert (vm.runtime.host, vm.resourcePool) == (host(client, "small"), None)


@pytest.mark.parametrize(
    ("on", "lacking", "change"),
    [
        (False, "Resource.ColdMigrate", lambda c: {"host": host(c, "small")}),
        (True, "Resource.HotMigrate", lambda c: {"host": host(c, "small")}),
        (True, "Resource.HotMigrate", lambda c: {"datastore": store(c, "local")}),
        (False, "Resource.AssignVMToPool", lambda c: {"pool": root(c, "farm").resourcePool[0]}),
        (False, "Datastore.AllocateSpace", lambda c: {"datastore": store(c, "local")}),
    ],
)
def test_a_move_asks_for_the_right_to_it(
    make_site: Any, on: bool, lacking: str, change: Callable[[Any], Any]
) -> None:
    rights = {
        "Resource.ColdMigrate",
        "Resource.HotMigrate",
        "Resource.AssignVMToPool",
        "Datastore.AllocateSpace",
    }
    users = [
        {"name": "all@aiml.local", "password": "all", "role": sorted(rights)},
        {"name": "some@aiml.local", "password": "some", "role": sorted(rights - {lacking})},
    ]
    site = make_site(**FARM, users=[ADMIN, *users])
    client = site.login()
    vm = machine(client, at="shared")
    below(root(client, "farm"), "team")
    if on:
        running(client, vm)
    some, whole = site.login("some@aiml.local", "some"), site.login("all@aiml.local", "all")
    with pytest.raises(vim.fault.NoPermission) as caught:
        relocate(some, some.find("Singapore/vm/vm"), **change(some))
    assert caught.value.privilegeId == lacking
    relocate(whole, whole.find("Singapore/vm/vm"), **change(whole))


def test_a_machine_that_is_being_imported_stays(make_site: Any) -> None:
    site = make_site(**FARM)
    client = site.login()
    vm = machine(client, at="shared")
    lease = site.inventory.add(vim.HttpNfcLease, "lease-1", {"task": "task-1"}, state="ready")
    site.inventory.objects[vm._moId].hidden["lease"] = lease.moid
    with pytest.raises(vim.fault.TaskInProgress):
        relocate(client, vm, host=host(client, "small"))


def test_a_task_on_the_machine_goes_first(make_site: Any) -> None:
    client = make_site(**FARM, pace=1, durations={"task": 0.5}).login()
    vm = machine(client, at="shared")
    vm.Reconfigure(vim.vm.ConfigSpec(annotation="x"))
    with pytest.raises(vim.fault.TaskInProgress):
        relocate(client, vm, host=host(client, "small"))
