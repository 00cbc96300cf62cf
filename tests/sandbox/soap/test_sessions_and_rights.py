"""Who is in, for how long, and what they may do."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim, vmodl

PC = vmodl.query.PropertyCollector


def names(client: Any, paths: tuple[str, ...] = ("name",)) -> Any:
    """One read of the root folder."""
    spec = PC.FilterSpec(
        objectSet=[PC.ObjectSpec(obj=client.content.rootFolder)],
        propSet=[PC.PropertySpec(type=vim.Folder, pathSet=list(paths))],
    )
    return client.content.propertyCollector.RetrievePropertiesEx([spec], PC.RetrieveOptions())


def test_a_wrong_password_is_refused(client: Any) -> None:
    for name, password in (("administrator@aiml.local", "wrong"), ("nobody@aiml.local", "VMware1!")):
        with pytest.raises(vim.fault.InvalidLogin):
            client.content.sessionManager.Login(name, password)


def test_a_session_that_ended_reads_nothing_and_says_why_in_the_missing_set(site: Any, client: Any) -> None:
    site.sessions.end_all()
    found = names(client).objects[0]
    assert not found.propSet
    assert isinstance(found.missingSet[0].fault, vim.fault.NotAuthenticated)
    with pytest.raises(vim.fault.NotAuthenticated):
        client.content.viewManager.CreateContainerView(client.content.rootFolder, [], True)


def test_an_idle_session_ends(client: Any) -> None:
    client.content.setting.UpdateOptions(
        [vim.option.OptionValue(key="config.vmacore.soap.sessionTimeout", value="0s")]
    )
    client.until(lambda: not names(client).objects[0].propSet)


def test_another_session_can_be_terminated_but_not_the_own(site: Any, client: Any) -> None:
    other = site.login()
    manager = client.content.sessionManager
    assert {each.key for each in manager.sessionList} >= {
        other.content.sessionManager.currentSession.key,
        manager.currentSession.key,
    }
    with pytest.raises(vmodl.fault.InvalidArgument):
        manager.TerminateSession([manager.currentSession.key])
    manager.TerminateSession([other.content.sessionManager.currentSession.key])
    assert not names(other).objects[0].propSet


def test_views_belong_to_their_session(site: Any, client: Any) -> None:
    view = client.content.viewManager.CreateContainerView(client.content.rootFolder, [vim.HostSystem], True)
    assert len(view.view) == 4
    other = site.login()
    spec = PC.FilterSpec(
        objectSet=[
            PC.ObjectSpec(
                obj=view,
                skip=True,
                selectSet=[PC.TraversalSpec(type=vim.view.ContainerView, path="view", skip=False)],
            )
        ],
        propSet=[PC.PropertySpec(type=vim.HostSystem, pathSet=["name"])],
    )
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        other.content.propertyCollector.RetrievePropertiesEx([spec], PC.RetrieveOptions())


def test_what_a_user_lacks_is_named_with_its_object(site: Any, client: Any) -> None:
    client.vm("vm-a")
    viewer = site.login("viewer@aiml.local", "look")
    vm = viewer.find("Singapore/vm/vm-a")
    with pytest.raises(vim.fault.NoPermission) as caught:
        vm.PowerOn()
    assert (caught.value.privilegeId, caught.value.object) == ("VirtualMachine.Interact.PowerOn", vm)
    with pytest.raises(vim.fault.NoPermission) as caught:
        vm.Reconfigure(vim.vm.ConfigSpec(memoryMB=8192))
    assert caught.value.privilegeId == "VirtualMachine.Config.Memory"
    with pytest.raises(vim.fault.NoPermission):
        viewer.find("Singapore/vm").CreateFolder("f")


def test_a_listed_privilege_is_enough(site: Any, client: Any) -> None:
    client.vm("vm-a")
    operator = site.login("operator@aiml.local", "some")
    operator.run(operator.find("Singapore/vm/vm-a").PowerOn())
    with pytest.raises(vim.fault.NoPermission):
        operator.find("Singapore/vm/vm-a").PowerOff()
    granted = operator.content.authorizationManager.HasUserPrivilegeOnEntities(
        [operator.find("Singapore/vm/vm-a")],
        "operator@aiml.local",
        ["VirtualMachine.Interact.PowerOn", "VirtualMachine.Interact.PowerOff"],
    )
    assert [each.isGranted for each in granted[0].privAvailability] == [True, False]


def test_what_the_sandbox_lacks_is_named(client: Any) -> None:
    with pytest.raises(vmodl.fault.MethodNotFound) as caught:
        client.content.rootFolder.AddStandaloneHost(vim.host.ConnectSpec(), None, True, None)
    assert caught.value.method == "AddStandaloneHost_Task"


def test_a_fault_rule_answers_a_call_and_is_spent(site: Any, client: Any) -> None:
    site.faults.add({"api": "vcenter", "method": "CreateFolder", "nth": 1, "do": {"soap": "NoPermission"}})
    folder = client.find("Singapore/vm")
    with pytest.raises(vim.fault.NoPermission):
        folder.CreateFolder("f")
    assert folder.CreateFolder("f").name == "f"
    written = site.tally.read()["writes"]["vcenter"]
    assert written == {"CreateFolder": 2}


def test_a_fault_rule_fails_a_task(site: Any, client: Any) -> None:
    vm = client.vm("vm-a")
    site.faults.add(
        {
            "api": "vcenter",
            "method": "PowerOnVM_Task",
            "object": "vm-a",
            "nth": 1,
            "do": {"task": "GenericVmConfigFault", "message": "no luck"},
        }
    )
    with pytest.raises(vim.fault.GenericVmConfigFault, match="no luck"):
        client.run(vm.PowerOn())
    client.run(vm.PowerOn())


def test_a_property_that_asks_for_a_right_of_its_own_is_missing_without_it(site: Any, client: Any) -> None:
    assert client.content.sessionManager.sessionList
    viewer = site.login("viewer@aiml.local", "look")
    with pytest.raises(vim.fault.NoPermission) as caught:
        _ = viewer.content.sessionManager.sessionList
    assert caught.value.privilegeId == "Sessions.TerminateSession"
    spec = PC.FilterSpec(
        objectSet=[PC.ObjectSpec(obj=viewer.content.sessionManager)],
        propSet=[PC.PropertySpec(type=vim.SessionManager, pathSet=["sessionList"])],
    )
    found = viewer.content.propertyCollector.RetrievePropertiesEx([spec], PC.RetrieveOptions()).objects[0]
    assert found.missingSet[0].fault.privilegeId == "Sessions.TerminateSession"


def test_a_permission_further_down_overrides_and_a_role_can_be_taken_back(site: Any, client: Any) -> None:
    client.vm("vm-a")
    manager, datacenter, viewer = (
        client.content.authorizationManager,
        client.find("Singapore"),
        site.login("viewer@aiml.local", "look"),
    )
    role = manager.AddAuthorizationRole("starters", ["VirtualMachine.Interact.PowerOn"])
    given = vim.AuthorizationManager.Permission(
        principal="viewer@aiml.local", group=False, roleId=role, propagate=True
    )
    manager.SetEntityPermissions(datacenter, [given])
    viewer.run(viewer.find("Singapore/vm/vm-a").PowerOn())
    manager.SetEntityPermissions(
        client.find("Singapore/vm/vm-a"),
        [
            vim.AuthorizationManager.Permission(
                principal="viewer@aiml.local", group=False, roleId=-2, propagate=False
            )
        ],
    )
    with pytest.raises(vim.fault.NoPermission):
        viewer.find("Singapore/vm/vm-a").PowerOn()
    manager.RemoveEntityPermission(client.find("Singapore/vm/vm-a"), "viewer@aiml.local", False)
    granted = manager.HasUserPrivilegeOnEntities(
        [client.find("Singapore/vm/vm-a")],
        "viewer@aiml.local",
        ["VirtualMachine.Interact.PowerOn", "VirtualMachine.Interact.PowerOff"],
    )
    assert [each.isGranted for each in granted[0].privAvailability] == [True, False]
    with pytest.raises(vim.fault.RemoveFailed):
        manager.RemoveAuthorizationRole(role, True)
    manager.RemoveAuthorizationRole(role, False)
    assert "starters" not in {each.name for each in manager.roleList}


def test_what_has_its_parents_permissions_takes_none_of_its_own(site: Any, client: Any) -> None:
    manager, cluster = client.content.authorizationManager, client.find("Singapore/host/compute")
    role = manager.AddAuthorizationRole("importers", ["VApp.Import"])
    given = vim.AuthorizationManager.Permission(
        principal="viewer@aiml.local", group=False, roleId=role, propagate=False
    )
    for part in ("Singapore/vm", "Singapore/network", "Singapore/host/compute/Resources"):
        with pytest.raises(vmodl.fault.InvalidArgument) as caught:
            manager.SetEntityPermissions(client.find(part), [given])
        assert caught.value.invalidProperty == "entity"
    manager.SetEntityPermissions(cluster, [given])

    def may(entity: Any) -> bool:
        (found,) = manager.HasUserPrivilegeOnEntities([entity], "viewer@aiml.local", ["VApp.Import"])
        return bool(found.privAvailability[0].isGranted)

    assert may(cluster.resourcePool), "though the permission doesn't propagate"
    assert not may(cluster.host[0])


def test_who_may_not_see_an_object_does_not_find_it_in_lists(site: Any, client: Any) -> None:
    manager, root = client.content.authorizationManager, client.content.rootFolder
    manager.RemoveEntityPermission(root, "viewer@aiml.local", False)
    viewer = site.login("viewer@aiml.local", "look")
    with pytest.raises(vim.fault.NoPermission):
        viewer.content.viewManager.CreateContainerView(root, [vim.HostSystem], True)
    cluster = client.find("Singapore/host/compute")
    manager.SetEntityPermissions(
        cluster,
        [
            vim.AuthorizationManager.Permission(
                principal="viewer@aiml.local", group=False, roleId=-2, propagate=True
            )
        ],
    )
    seen = PC.FilterSpec(
        objectSet=[
            PC.ObjectSpec(obj=client.find("Singapore"), skip=True),
            PC.ObjectSpec(
                obj=cluster,
                skip=True,
                selectSet=[PC.TraversalSpec(type=vim.ComputeResource, path="host", skip=False)],
            ),
        ],
        propSet=[PC.PropertySpec(type=vim.HostSystem, pathSet=["name"])],
    )
    assert (
        len(viewer.content.propertyCollector.RetrievePropertiesEx([seen], PC.RetrieveOptions()).objects) == 3
    )
