"""Reading in bulk, waiting for changes, and what survives a restart."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from bfinfra.sandbox.inventory import BuiltInventory

pytestmark = pytest.mark.thorough

PC = vmodl.query.PropertyCollector


def spec(view: Any, kind: Any, *paths: str) -> Any:
    """All objects of a view."""
    through = PC.TraversalSpec(type=type(view), path="view", skip=False)
    return PC.FilterSpec(
        objectSet=[PC.ObjectSpec(obj=view, skip=True, selectSet=[through])],
        propSet=[PC.PropertySpec(type=kind, pathSet=list(paths))],
    )


def all_vms(client: Any) -> Any:
    return client.content.viewManager.CreateContainerView(
        client.content.rootFolder, [vim.VirtualMachine], True
    )


def read(client: Any, *paths: str) -> dict[str, dict[str, Any]]:
    """Properties of all machines by name."""
    found = client.content.propertyCollector.RetrievePropertiesEx(
        [spec(all_vms(client), vim.VirtualMachine, "name", *paths)], PC.RetrieveOptions()
    )
    rows = [{each.name: each.val for each in item.propSet} for item in found.objects] if found else []
    return {row["name"]: row for row in rows}


def test_keyed_paths_give_one_option_and_nothing_where_it_is_unset(client: Any) -> None:
    path = 'config.extraConfig["bfinfra.mark"]'
    client.vm(
        "a",
        extraConfig=[
            vim.option.OptionValue(key="bfinfra.mark", value="m"),
            vim.option.OptionValue(key="z", value="z"),
        ],
    )
    client.vm("b")
    found = read(client, path)
    assert found["a"][path].value == "m"
    assert path not in found["b"]


def test_changes_are_seen_in_spite_of_the_cache(client: Any) -> None:
    vm = client.vm("a")
    assert read(client, "config.annotation", "summary.config.annotation")["a"]["config.annotation"] == ""
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(annotation="x")))
    row = read(client, "config.annotation", "summary.config.annotation")["a"]
    assert (row["config.annotation"], row["summary.config.annotation"]) == ("x", "x")


def test_an_unknown_path_is_refused(client: Any) -> None:
    client.vm("a")
    with pytest.raises(vmodl.query.InvalidProperty):
        read(client, "config.bogus")


def test_pages_go_on_by_token_until_the_end(client: Any) -> None:
    for name in "abcde":
        client.vm(name)
    collector, names = client.content.propertyCollector, []
    found = collector.RetrievePropertiesEx(
        [spec(all_vms(client), vim.VirtualMachine, "name")], PC.RetrieveOptions(maxObjects=2)
    )
    while True:
        names += [each.propSet[0].val for each in found.objects]
        if not found.token:
            break
        found = collector.ContinueRetrievePropertiesEx(found.token)
    assert sorted(names) == list("abcde")
    with pytest.raises(vmodl.fault.InvalidArgument):
        collector.ContinueRetrievePropertiesEx("no-such-page")


def test_a_waiter_sees_machines_enter_change_and_leave(client: Any) -> None:
    collector = client.content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(spec(all_vms(client), vim.VirtualMachine, "runtime.powerState"), True)
    vm = client.vm("a")
    first = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=5))
    assert [each.kind for each in first.filterSet[0].objectSet] == ["enter"]
    client.run(vm.PowerOn())
    second = collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=5))
    change = second.filterSet[0].objectSet[0]
    assert (change.kind, change.changeSet[0].val) == ("modify", "poweredOn")
    client.run(vm.PowerOff())
    third = collector.WaitForUpdatesEx(second.version, PC.WaitOptions(maxWaitSeconds=5))
    client.run(vm.Destroy())
    fourth = collector.WaitForUpdatesEx(third.version, PC.WaitOptions(maxWaitSeconds=5))
    assert [each.kind for each in fourth.filterSet[0].objectSet] == ["leave"]
    assert collector.WaitForUpdatesEx(fourth.version, PC.WaitOptions(maxWaitSeconds=0)) is None
    collector.Destroy()


def test_changes_come_page_by_page_and_each_once(client: Any) -> None:
    for name in "abcde":
        client.vm(name)
    collector = client.content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(spec(all_vms(client), vim.VirtualMachine, "name"), True)
    version, names, truncated = "", [], []
    while not truncated or truncated[-1]:
        page = collector.WaitForUpdatesEx(version, PC.WaitOptions(maxWaitSeconds=0, maxObjectUpdates=2))
        version = page.version
        truncated.append(bool(page.truncated))
        names += [each.changeSet[0].val for group in page.filterSet for each in group.objectSet]
    assert (sorted(names), truncated) == (list("abcde"), [True, True, False])
    assert collector.WaitForUpdatesEx(version, PC.WaitOptions(maxWaitSeconds=0)) is None


def test_only_the_last_version_of_a_collector_can_be_gone_on_from(client: Any) -> None:
    client.vm("a")
    collector = client.content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(spec(all_vms(client), vim.VirtualMachine, "name"), True)
    first = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0))
    client.vm("b")
    collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=0))
    with pytest.raises(vmodl.query.InvalidCollectorVersion):
        collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=0))


def test_a_waiter_is_told_what_it_may_not_read_and_which_objects_there_are_not(
    site: Any, client: Any
) -> None:
    viewer = site.login("viewer@aiml.local", "look")
    manager = viewer.content.sessionManager
    gone = vim.VirtualMachine("vm-none")
    asked = PC.FilterSpec(
        objectSet=[PC.ObjectSpec(obj=each, skip=False) for each in (manager, gone)],
        propSet=[
            PC.PropertySpec(type=vim.SessionManager, pathSet=["currentSession", "sessionList"]),
            PC.PropertySpec(type=vim.VirtualMachine, pathSet=["name"]),
        ],
        reportMissingObjectsInResults=True,
    )
    collector = viewer.content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(asked, False)
    (found,) = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).filterSet
    (entered,) = found.objectSet
    assert [each.name for each in entered.changeSet] == ["currentSession"]
    assert [(each.path, type(each.fault)) for each in entered.missingSet] == [
        ("sessionList", vim.fault.NoPermission)
    ]
    assert [each.obj._moId for each in found.missingSet] == ["vm-none"]


def test_a_wait_can_be_cancelled(client: Any) -> None:
    collector = client.content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(spec(all_vms(client), vim.VirtualMachine, "name"), True)
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=20))
        except vmodl.fault.RequestCanceled as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    client.si.CurrentTime()
    collector.CancelWaitForUpdates()
    thread.join(60)
    assert len(caught) == 1


def test_every_property_of_every_entity_can_be_read(client: Any) -> None:
    client.run(client.vm("a").PowerOn())
    view = client.content.viewManager.CreateContainerView(client.content.rootFolder, [], True)
    found = client.content.propertyCollector.RetrievePropertiesEx(
        [
            PC.FilterSpec(
                objectSet=spec(view, vim.ManagedEntity).objectSet,
                propSet=[PC.PropertySpec(type=vim.ManagedEntity, all=True)],
            )
        ],
        PC.RetrieveOptions(),
    )
    assert {type(each.obj) for each in found.objects} >= {
        vim.VirtualMachine,
        vim.HostSystem,
        vim.Datastore,
        vim.Network,
        vim.ResourcePool,
        vim.ClusterComputeResource,
    }
    assert all(len(each.propSet) > 5 for each in found.objects)


def test_attributes_can_be_read_one_by_one_even_where_they_are_unset(client: Any) -> None:
    vm = client.vm("a")
    assert (vm.parentVApp, vm.snapshot, client.content.rootFolder.parent) == (None, None, None)
    assert vm.runtime.host.parent.name == "gpu-farm"
    assert [each.name for each in client.find("Singapore/host/gpu-farm").resourcePool.vm] == ["a"]


def test_a_restart_keeps_machines_hosts_and_marks(site: Any, client: Any) -> None:
    client.pass_through("0000:3b:00.0")
    vm = client.vm("a", extraConfig=[vim.option.OptionValue(key="bfinfra.mark", value="m")])
    client.run(vm.PowerOn())
    client.until(lambda: vm.guest.toolsRunningStatus == "guestToolsRunning")
    before, data = site.inventory.dump(), json.loads(json.dumps(site.inventory.save()))
    again = BuiltInventory(site.inventory.world, site.clock)
    seen: list[tuple[str, bool]] = []
    again.on_power(lambda machine, on: seen.append((machine.name, on)))
    again.restore(data)
    assert again.dump() == before
    assert seen == [("a", True)]
    assert again.objects["propertyCollector"].kind == "PropertyCollector"


def test_two_worlds_with_the_same_history_dump_equal(make_site: Any) -> None:
    dumps = []
    for _ in range(2):
        site = make_site()
        site.login().vm("a", annotation="x")
        dumps.append(site.inventory.dump())
    assert dumps[0] == dumps[1]


def test_a_reset_gives_the_world_as_it_was(site: Any, client: Any) -> None:
    before = site.inventory.dump()
    client.run(client.vm("a").PowerOn())
    assert site.inventory.dump() != before
    site.inventory.reset()
    assert site.inventory.dump() == before


def test_a_reset_after_looks_only_leaves_what_was_built_and_takes_away_what_the_looks_made(
    site: Any, client: Any
) -> None:
    site.inventory.reset()
    built, counted = dict(site.inventory.objects), dict(site.inventory.counters)
    all_vms(client)
    assert set(site.inventory.objects) > set(built)
    site.inventory.reset()
    assert {moid: id(each) for moid, each in site.inventory.objects.items()} == {
        moid: id(each) for moid, each in built.items()
    }
    assert site.inventory.counters == counted


def test_a_reset_undoes_what_only_the_sandbox_knows(site: Any) -> None:
    site.inventory.reset()
    manager = site.inventory.objects["AuthorizationManager"]
    held = len(manager.hidden["permissions"])
    manager.hidden["permissions"].clear()
    site.inventory.reset()
    assert len(site.inventory.objects["AuthorizationManager"].hidden["permissions"]) == held > 0


def test_a_reset_brings_back_what_was_removed(site: Any) -> None:
    host = next(each for each in site.inventory.hosts())
    site.inventory.remove(host)
    site.inventory.reset()
    assert site.inventory.objects[host.moid].name == host.name
