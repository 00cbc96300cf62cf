"""Importing an OVA: specification, lease, upload, and what goes wrong on the way. pyVmomi and urllib are the
clients.
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from typing import Any

import pytest
from pyVmomi import vim, vmodl

pytestmark = pytest.mark.thorough

VALUES = {
    "hostname": "bf-01.aiml.local",
    "customer_password": "Secret-123",
    "vcenter_url": "https://vcsa.aiml.local",
    "vcenter_guid": "6f0b9c2e-8f7d-4c39-9d6a-1f0e2d3c4b5a",
    "vcenter_username": "administrator@aiml.local",
    "vcenter_password": "VMware1!",
    "vcenter_thumbprint": "AB:CD",
    "network.ip_cidr.1": "172.24.210.80/24",
}


def values(**changes: str) -> list[Any]:
    """The property mapping of a server that can run."""
    return [vim.KeyValue(key=key, value=value) for key, value in {**VALUES, **changes}.items()]


def import_spec(client: Any, ovf: str, name: str = "bf-01", **params: Any) -> Any:
    """The answer of CreateImportSpec for the GPU host."""
    cluster = client.find("Singapore/host/gpu-farm")
    asked = vim.OvfManager.CreateImportSpecParams(
        entityName=name,
        diskProvisioning="thin",
        locale="",
        deploymentOption="",
        hostSystem=client.host,
        **params,
    )
    return client.content.ovfManager.CreateImportSpec(
        ovf, cluster.resourcePool, client.find("Singapore/datastore/gpu-local"), asked
    )


def begin(client: Any, spec: Any) -> Any:
    """A lease that is ready."""
    pool = client.find("Singapore/host/gpu-farm").resourcePool
    lease = pool.ImportVApp(spec, client.find("Singapore/vm"), client.host)
    client.until(lambda: lease.state != "initializing")
    return lease


def put(site: Any, url: str, data: bytes) -> int:
    """Upload to an address that the lease gave."""
    request = urllib.request.Request(
        url.replace("https://*", f"https://127.0.0.1:{site.port}"), data, method="PUT"
    )
    try:
        with urllib.request.urlopen(request, context=site.trust, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def upload_all(site: Any, lease: Any, result: Any, members: dict[str, bytes]) -> list[int]:
    """Every disk of a package."""
    urls = {each.importKey: each.url for each in lease.info.deviceUrl}
    return [put(site, urls[item.deviceId], members[item.path]) for item in result.fileItem]


def test_a_whole_import_makes_a_machine_with_its_mark_from_the_first_moment(
    site: Any, client: Any, ovf: str, members: dict[str, bytes]
) -> None:
    result = import_spec(client, ovf, propertyMapping=values())
    assert not result.error
    spec = result.importSpec
    spec.configSpec.extraConfig = [
        *spec.configSpec.extraConfig,
        vim.option.OptionValue(key="bfinfra.mark", value="m"),
    ]
    pool = client.find("Singapore/host/gpu-farm").resourcePool
    lease = pool.ImportVApp(spec, client.find("Singapore/vm"), client.host)
    vm = client.find("Singapore/vm/bf-01")
    assert "m" in [each.value for each in vm.config.extraConfig if each.key == "bfinfra.mark"]
    client.until(lambda: lease.state == "ready")
    with pytest.raises(vim.fault.TaskInProgress):
        vm.PowerOn()
    assert set(upload_all(site, lease, result, members)) == {201}
    lease.Progress(100)
    entries = lease.GetManifest()
    assert {each.checksum for each in entries} == {
        hashlib.sha256(data).hexdigest() for name, data in members.items() if name.endswith(".vmdk")
    }
    lease.Complete()
    assert lease.state == "done"
    client.run(vm.PowerOn())
    client.until(lambda: vm.guest.toolsRunningStatus == "guestToolsRunning")
    assert (vm.guest.ipAddress, vm.guest.hostName) == ("172.24.210.80", "bf-01.aiml.local")


def test_passwords_read_back_empty_and_required_properties_keep_a_machine_off(
    site: Any, client: Any, ovf: str, members: dict[str, bytes]
) -> None:
    result = import_spec(client, ovf, propertyMapping=[each for each in values() if each.key != "hostname"])
    lease = begin(client, result.importSpec)
    upload_all(site, lease, result, members)
    lease.Complete()
    vm = client.find("Singapore/vm/bf-01")
    shown = {each.id: each.value for each in vm.config.vAppConfig.property}
    assert shown["customer_password"] == ""
    assert shown["vcenter_username"] == "administrator@aiml.local"
    with pytest.raises(vim.fault.UnconfiguredPropertyValue) as caught:
        client.run(vm.PowerOn())
    assert caught.value.id == "hostname"
    number = next(each.key for each in vm.config.vAppConfig.property if each.id == "hostname")
    edit = vim.vApp.PropertySpec(operation="edit", info=vim.vApp.PropertyInfo(key=number, value="bf-01"))
    client.run(vm.Reconfigure(vim.vm.ConfigSpec(vAppConfig=vim.vApp.VmConfigSpec(property=[edit]))))
    client.run(vm.PowerOn())


def test_a_lease_is_not_complete_before_every_disk_came(
    site: Any, client: Any, ovf: str, members: dict[str, bytes]
) -> None:
    result = import_spec(client, ovf)
    lease = begin(client, result.importSpec)
    item = result.fileItem[0]
    url = next(each.url for each in lease.info.deviceUrl if each.importKey == item.deviceId)
    assert put(site, url, members[item.path]) == 201
    with pytest.raises(vim.fault.InvalidState, match="disk-1"):
        lease.Complete()
    assert lease.state == "ready"


def test_a_truncated_disk_is_refused(site: Any, client: Any, ovf: str, members: dict[str, bytes]) -> None:
    result = import_spec(client, ovf)
    lease = begin(client, result.importSpec)
    data = members[result.fileItem[0].path]
    assert put(site, lease.info.deviceUrl[0].url, data[: len(data) // 2]) == 500
    with pytest.raises(vim.fault.InvalidState):
        lease.Complete()


def test_aborting_removes_the_machine(client: Any, ovf: str) -> None:
    lease = begin(client, import_spec(client, ovf).importSpec)
    lease.Abort()
    assert client.find("Singapore/vm/bf-01") is None
    assert lease.state == "error"


def test_a_lease_that_nobody_renews_ends_with_its_machine(make_site: Any, ovf: str) -> None:
    client = make_site(durations={"lease": 0.05}).login()
    lease = begin(client, import_spec(client, ovf).importSpec)
    client.until(lambda: lease.state == "error")
    assert isinstance(lease.error, vim.fault.Timedout)
    assert client.find("Singapore/vm/bf-01") is None
    with pytest.raises(vim.fault.Timedout):
        lease.Progress(10)


def test_cancelling_the_import_task_ends_the_lease(client: Any, ovf: str) -> None:
    lease = begin(client, import_spec(client, ovf).importSpec)
    task = client.find("Singapore/vm/bf-01").recentTask[-1]
    assert task.info.descriptionId == "ResourcePool.ImportVAppLRO"
    task.Cancel()
    assert isinstance(lease.error, vmodl.fault.RequestCanceled)
    assert isinstance(task.info.error, vmodl.fault.RequestCanceled)
    assert client.find("Singapore/vm/bf-01") is None


def test_an_unknown_property_and_a_wrong_value_are_named(client: Any, ovf: str) -> None:
    result = import_spec(client, ovf, propertyMapping=[vim.KeyValue(key="no.such.key", value="1")])
    assert result.importSpec is None
    assert "no.such.key" in result.error[0].msg
    result = import_spec(client, ovf, propertyMapping=values(nvidia_license_accept="perhaps"))
    assert isinstance(result.error[0], vim.fault.OvfPropertyValue)
    assert "nvidia_license_accept" in result.error[0].msg


def test_a_second_machine_of_the_name_is_refused_and_leaves_a_folder_as_on_vcsim(
    site: Any, client: Any, ovf: str
) -> None:
    begin(client, import_spec(client, ovf).importSpec)
    for _ in range(2):
        with pytest.raises(vim.fault.DuplicateName):
            begin(client, import_spec(client, ovf).importSpec)
    store = client.find("Singapore/datastore/gpu-local")
    found = client.run(store.browser.SearchDatastore_Task("[gpu-local]"))
    assert sorted(each.path for each in found.file) == ["bf-01", "bf-01 (0)", "bf-01 (1)"]
    assert site.inventory.dump()["Datastore /Singapore/datastore/gpu-local"]["files"] == [
        "bf-01 (0)",
        "bf-01 (1)",
    ]
    client.run(
        client.content.fileManager.DeleteDatastoreFile_Task("[gpu-local] bf-01 (0)", client.find("Singapore"))
    )


@pytest.mark.parametrize(
    "text", ["no xml", "<a/>", '<!DOCTYPE b [<!ENTITY a "aaaa">]><Envelope>&a;</Envelope>']
)
def test_what_is_no_descriptor_is_an_error_and_not_a_crash(client: Any, text: str) -> None:
    result = import_spec(client, text)
    assert result.error
    assert result.importSpec is None
    assert client.content.ovfManager.ParseDescriptor(
        text, vim.OvfManager.ParseDescriptorParams(locale="", deploymentOption="")
    ).error


def test_a_fault_rule_ends_the_lease_in_error(site: Any, client: Any, ovf: str) -> None:
    site.faults.add(
        {"api": "vcenter", "method": "ImportVApp", "object": "bf-01", "do": {"task": "GenericVmConfigFault"}}
    )
    lease = begin(client, import_spec(client, ovf).importSpec)
    assert isinstance(lease.error, vim.fault.GenericVmConfigFault)
    assert client.find("Singapore/vm/bf-01") is None
