"""pyVmomi as shipped on the running sandbox, after bfinfra made something there: everything can be read, and
what it does is seen.
"""

from __future__ import annotations

import gc
import ssl
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from pyVim.connect import Disconnect, SmartConnect
from pyVim.task import WaitForTask, WaitForTasks
from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import ManagedObject

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

SITE = EXAMPLES["bitfusion_server"]
ABSENT = (vmodl.fault.NotSupported, vmodl.fault.MethodNotFound)


def connect(sandbox: Running, **how: Any) -> Any:
    there = sandbox.lookup("vc.small.test", 443)
    assert there
    given = {
        "user": "admin@small.test",
        "pwd": sandbox.env["VCENTER_PASSWORD"],
        "sslContext": ssl.create_default_context(cafile=str(sandbox.ca_file)),
        **how,
    }
    return SmartConnect(host=there[0], port=there[1], httpConnectionTimeout=20, **given)


@pytest.fixture
def si(sandbox: Running) -> Iterator[Any]:
    assert made(found := apply(SITE, sandbox)), endings(found)
    si = connect(sandbox)
    yield si
    Disconnect(si)


def all_of(si: Any, *types: Any) -> list[Any]:
    view = si.content.viewManager.CreateContainerView(si.content.rootFolder, list(types), recursive=True)
    try:
        return list(view.view)
    finally:
        view.Destroy()


def server(si: Any) -> Any:
    return next(each for each in all_of(si, vim.VirtualMachine) if each.name == "bf-01")


def test_a_certificate_of_another_authority_is_refused(sandbox: Running) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(sandbox, sslContext=ssl.create_default_context())


def test_a_wrong_password_is_refused(sandbox: Running) -> None:
    with pytest.raises(vim.fault.InvalidLogin):
        connect(sandbox, pwd="wrong")
    with warnings.catch_warnings():  # pyVmomi leaves its socket open when a login fails
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_the_newest_api_is_negotiated(si: Any) -> None:
    assert si._stub.version == "vim.version.v8_0_3_0"
    assert si.content.about.apiType == "VirtualCenter"


def test_every_property_of_every_object_can_be_read_one_by_one(si: Any) -> None:
    """Attribute access is what scripts do; it uses another method than property collectors. An absent
    property is None, never a broken answer.
    """
    content = si.RetrieveContent()
    services = [
        getattr(content, each.name)
        for each in content._GetPropertyList()
        if isinstance(getattr(content, each.name, None), ManagedObject)
    ]
    broken: list[str] = []
    read = 0
    for each in [*services, *all_of(si, vim.ManagedEntity)]:
        for prop in each._GetPropertyList():
            try:
                getattr(each, prop.name)
                read += 1
            except ABSENT:
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what a script would see
                broken.append(
                    f"{type(each).__name__}.{prop.name}: {type(error).__name__}: "
                    f"{getattr(error, 'reason', error)}"
                )
    assert not broken, "\n".join(broken)
    assert read > 300


def test_a_hosts_systems_tell_of_its_time_services_and_volumes(si: Any) -> None:
    host = all_of(si, vim.HostSystem)[0]
    systems = host.configManager
    volumes = [each.volume.name for each in systems.storageSystem.fileSystemVolumeInfo.mountInfo]
    assert volumes == [store.name for store in host.datastore] != []
    assert [each.key for each in systems.serviceSystem.serviceInfo.service] == ["ntpd"]
    assert systems.dateTimeSystem.dateTimeInfo.timeZone.key == "UTC"
    assert systems.networkSystem.networkInfo.dnsConfig.hostName == host.name.partition(".")[0]


def test_a_manager_of_which_the_sandbox_has_no_method_is_there_and_says_so(si: Any) -> None:
    with pytest.raises(vmodl.fault.MethodNotFound, match="does not implement PerformanceManager"):
        si.content.perfManager.QueryPerfCounter([1])


def test_a_collector_reads_whole_machines(si: Any) -> None:
    found = server(si)
    filters = [
        vmodl.query.PropertyCollector.FilterSpec(
            objectSet=[vmodl.query.PropertyCollector.ObjectSpec(obj=found)],
            propSet=[vmodl.query.PropertyCollector.PropertySpec(type=vim.VirtualMachine, all=True)],
        )
    ]
    (answer,) = si.content.propertyCollector.RetrieveContents(filters)
    assert not answer.missingSet
    values = {each.name: each.val for each in answer.propSet}
    assert values["config"].hardware.memoryMB == values["summary"].config.memorySizeMB
    assert values["runtime"].powerState == values["summary"].runtime.powerState == "poweredOn"
    assert values["guest"].ipAddress == values["summary"].guest.ipAddress == "10.2.0.5"


def test_what_a_script_changes_is_drift(si: Any, sandbox: Running) -> None:
    found = server(si)
    WaitForTask(found.PowerOffVM_Task())
    spec = vim.vm.ConfigSpec(
        numCPUs=2, extraConfig=[vim.option.OptionValue(key="pciPassthru.use64bitMMIO", value="FALSE")]
    )
    WaitForTasks([found.ReconfigVM_Task(spec)], si=si)
    (item,) = plan(SITE, sandbox).pending
    assert {change.field for change in item.changes} == {"power", "cpus", "mmio"}
    apply(SITE, sandbox)
    assert (found.config.hardware.numCPU, found.runtime.powerState) == (4, "poweredOn")


def test_an_open_session_sees_an_update_when_bfinfra_destroys(si: Any, sandbox: Running) -> None:
    found = server(si)
    collector = si.content.propertyCollector.CreatePropertyCollector()
    spec = vmodl.query.PropertyCollector.FilterSpec(
        objectSet=[vmodl.query.PropertyCollector.ObjectSpec(obj=found)],
        propSet=[
            vmodl.query.PropertyCollector.PropertySpec(
                type=vim.VirtualMachine, pathSet=["runtime.powerState"]
            )
        ],
    )
    collector.CreateFilter(spec, partialUpdates=False)
    first = collector.WaitForUpdatesEx(None, vmodl.query.PropertyCollector.WaitOptions(maxWaitSeconds=5))
    assert first.filterSet[0].objectSet[0].changeSet[0].val == "poweredOn"
    apply(SITE, sandbox, destroy=True)
    kinds, version = [], first.version
    while "leave" not in kinds:
        update = collector.WaitForUpdatesEx(
            version, vmodl.query.PropertyCollector.WaitOptions(maxWaitSeconds=5)
        )
        assert update, "no update came"
        version = update.version
        kinds += [str(each.kind) for one in update.filterSet for each in one.objectSet]
    collector.Destroy()


def test_sessions_that_are_ended_answer_not_authenticated(si: Any, sandbox: Running) -> None:
    sandbox.expire()
    with pytest.raises(vim.fault.NotAuthenticated):
        si.CurrentTime()


def test_a_machine_that_a_script_makes_is_left_alone(si: Any, sandbox: Running) -> None:
    """A machine without a mark is nobody's of ours: no plan touches it, destroy neither."""
    cluster = next(each for each in all_of(si, vim.ClusterComputeResource) if each.name == "farm")
    folder = si.content.rootFolder.childEntity[0].vmFolder
    spec = vim.vm.ConfigSpec(
        name="theirs", numCPUs=1, memoryMB=512, files=vim.vm.FileInfo(vmPathName="[local]")
    )
    WaitForTask(folder.CreateVM_Task(spec, cluster.resourcePool))
    assert plan(SITE, sandbox).pending == ()
    assert made(apply(SITE, sandbox, destroy=True))
    assert [each.name for each in all_of(si, vim.VirtualMachine) if not each.config.template] == ["theirs"]
