"""Supervisor namespaces and what they may name, over REST."""

from __future__ import annotations

from dataclasses import replace

import pytest
from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.namespaces import (
    INSTANCES,
    LIBRARIES,
    POLICIES,
    SUPERVISORS,
    Catalog,
    Grant,
    Namespaces,
    Settings,
)
from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.vm_classes import VM_CLASSES, Device, VmClass, VmClasses
from bfinfra.model.errors import Busy, Exists, Forbidden, Missing, Rejected

GIB = 1 << 30
CATALOG = "vcsim: a supervisor's details are empty, storage policies and libraries are not there"


def clusters(vcenter: VCenterSide, vc) -> str:
    found = only(vc.inventory.read().cluster(vcenter.supervisor))
    assert found
    return str(found.moid)


@call("rest.get", case="supervisors")
def test_supervisors_are_listed(vcenter: VCenterSide, account: Account) -> None:
    (found,) = vcenter.open().rest.get(SUPERVISORS)
    assert (found["config_status"], found["kubernetes_status"]) == ("RUNNING", "READY")
    assert found["cluster_name"] in (vcenter.supervisor, "")
    account.note(f"cluster_name {'is told' if found['cluster_name'] else 'is empty'}")


@call("namespaces.catalog", case="what a namespace may name")
@lacks(CATALOG)
def test_the_catalog(vcenter: VCenterSide) -> None:
    found = Namespaces(vcenter.open()).catalog()
    assert found.supervisors[vcenter.supervisor].running
    assert (list(found.policies), list(found.libraries)) == (["gold"], ["tkr"])
    assert found.vm_classes["best-effort-small"].memory == 4 * GIB


@pytest.mark.parametrize("path", [POLICIES, LIBRARIES])
@call("rest.get", case="storage policies; content libraries")
@lacks("vcsim: /api/vcenter/storage/policies and /api/content/library are not there")
def test_policies_and_libraries_are_listed(path: str, vcenter: VCenterSide) -> None:
    assert isinstance(vcenter.open().rest.get(path), list)


@call(
    "vm_classes.list",
    "vm_classes.create",
    "vm_classes.update",
    "vm_classes.delete",
    case="made, read, changed, removed, removed again",
)
@lacks(
    "vcsim: a VM class's memory is called memory_mb, its devices dynamic_direct_path_io_devices, and it "
    "has no description"
)
def test_the_life_of_a_vm_class(vcenter: VCenterSide) -> None:
    classes = VmClasses(vcenter.open())
    wanted = VmClass(4, 8 * GIB, 0, 100, "ours", (), (Device(0x10DE, 0x1EB8),))
    classes.create("contract-class", wanted)
    try:
        assert classes.list()["contract-class"] == wanted
        bare = VmClass(2, 4 * GIB)
        classes.update("contract-class", bare, lambda _: True)
        assert classes.list()["contract-class"] == bare
    finally:
        classes.delete("contract-class")
        classes.delete("contract-class")
    assert "contract-class" not in classes.list()


@call(
    "namespaces.list", "rest.post", "namespaces.delete", case="made with its cluster alone, listed, removed"
)
def test_a_plain_namespace_comes_and_goes(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    spaces = Namespaces(vc)
    vc.rest.post(INSTANCES, {"namespace": "plain", "cluster": clusters(vcenter, vc)})
    assert "plain" in spaces.list()
    assert vc.rest.get(f"{INSTANCES}/plain")["config_status"] in ("CONFIGURING", "RUNNING")
    spaces.delete("plain")
    vcenter.until(lambda: "plain" not in spaces.list())
    spaces.delete("plain")


@call("namespaces.create", "namespaces.details", "namespaces.update", case="everything that can be set")
@lacks(CATALOG)
def test_the_life_of_a_namespace(vcenter: VCenterSide) -> None:
    spaces = Namespaces(vcenter.open())
    wanted = Settings(
        description="ours",
        cpu=4000,
        memory=8 * GIB,
        storage={"gold": 10 * GIB},
        vm_classes=("best-effort-small",),
        libraries=("tkr",),
        access=(Grant("reader@vsphere.local", group=False, role="view"),),
    )
    spaces.create("contract", vcenter.supervisor, wanted)
    found = settled(spaces, "contract")
    everywhere = replace(wanted, zones=("zone-1", "zone-2"))
    assert (found.status, found.settings, found.cluster) == ("RUNNING", everywhere, vcenter.supervisor)
    assert found.creator == "", "vCenter tells of one where self-service made the namespace"
    spaces.update("contract", Settings(description="theirs"), lambda _: True)
    assert settled(spaces, "contract").settings == replace(
        Settings(description="theirs"), zones=("zone-1", "zone-2")
    )


@call(
    "namespaces.create",
    "namespaces.update",
    "namespaces.zones",
    case="zones with reserved VMs, and one of them fewer",
)
@lacks(CATALOG)
def test_a_namespace_has_zones(vcenter: VCenterSide) -> None:
    spaces = Namespaces(vcenter.open())
    assert spaces.zones([vcenter.supervisor], spaces.catalog()) == {vcenter.supervisor: ("zone-1", "zone-2")}
    wanted = Settings(
        vm_classes=("best-effort-small",), zones=("zone-1", "zone-2"), reserved={"best-effort-small": 2}
    )
    spaces.create("zoned", vcenter.supervisor, wanted)
    assert settled(spaces, "zoned").settings.zones == ("zone-1", "zone-2")
    spaces.update("zoned", replace(wanted, zones=("zone-2",)), lambda field: field == "zones")
    assert settled(spaces, "zoned").settings.zones == ("zone-2",)
    spaces.delete("zoned")


def settled(spaces: Namespaces, name: str):
    for _ in range(500):
        found = spaces.details([name], spaces.catalog())[name]
        if found.status == "RUNNING":
            return found
    raise AssertionError(found)


@call("namespaces.details", case="a namespace that isn't there is left out")
def test_a_namespace_that_is_not_there_is_left_out(vcenter: VCenterSide) -> None:
    assert Namespaces(vcenter.open()).details(["nothing"], Catalog()) == {}


@call("rest.get", "rest.patch", "rest.put", case="a namespace that isn't there")
@lacks("vcsim: a PATCH or PUT of a namespace that isn't there is answered 200")
def test_a_namespace_that_is_not_there_is_missing(vcenter: VCenterSide, account: Account) -> None:
    rest = vcenter.open().rest
    for ask in (
        lambda: rest.get(f"{INSTANCES}/nothing"),
        lambda: rest.patch(f"{INSTANCES}/nothing", {"description": "x"}),
        lambda: rest.put(f"{INSTANCES}/nothing", {"description": "x"}),
    ):
        with account.refused(Missing):
            ask()


@call("rest.post", case="a namespace whose name is taken")
@lacks("vcsim: a second POST of a namespace overwrites it")
def test_a_namespace_is_made_once(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    body = {"namespace": "twice", "cluster": clusters(vcenter, vc)}
    try:
        vc.rest.post(INSTANCES, body)
        with account.refused(Exists):
            vc.rest.post(INSTANCES, body)
    finally:
        Namespaces(vc).delete("twice")


@call("rest.post", case="a namespace on a cluster that isn't there, or with a name that isn't one")
@lacks("vcsim: name and cluster of a namespace are not checked")
def test_a_namespace_that_can_not_be(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    for name, cluster in (("nowhere", "domain-c99999"), ("No_Name", clusters(vcenter, vc))):
        try:
            with account.refused(Rejected, Missing):
                vc.rest.post(INSTANCES, {"namespace": name, "cluster": cluster})
        finally:
            Namespaces(vc).delete(name)


@call("rest.post", case="without the right to")
@lacks("vcsim: privileges are stored and never enforced")
def test_without_a_right_no_namespace_is_made(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open("reader@vsphere.local" if vcenter.mode == "sandbox" else "administrator@vsphere.local")
    body = {"namespace": "denied", "cluster": clusters(vcenter, vc)}
    try:
        with account.refused(Forbidden):
            vc.rest.post(INSTANCES, body)
    except (AssertionError, pytest.fail.Exception):
        Namespaces(vc).delete("denied")
        raise


@call("rest.get", case="503 Service Unavailable")
@lacks("vcsim: REST has no faults", run=False)
def test_rest_that_is_not_available_is_busy(vcenter: VCenterSide, account: Account) -> None:
    rest = vcenter.open().rest
    rest.get(VM_CLASSES)
    assert vcenter.world
    vcenter.world.faults({"api": "rest", "nth": 1, "do": {"status": 503, "retry_after": 7}})
    with account.refused(Busy) as failed:
        rest.get(VM_CLASSES)
    assert failed.value.retry_after == 7
