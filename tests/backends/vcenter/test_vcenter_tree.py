"""What is read in bulk through lxml is what pyVmomi would have made of the same answer: every property of
everything in the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import DataObject, ManagedObject

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import (
    VCenter,
    capacity,
    devices,
    hardware,
    hosts,
    inventory,
    machines,
    properties,
    refs,
    tree,
)
from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.vm import Attach
from bfinfra.model.errors import Denied, Malformed
from bfinfra.model.mark import Mark
from bfinfra.sandbox import Running

SITE = """
site: trees
vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}
"""
MARK = 'config.extraConfig["bfinfra.mark"]'
READ = {
    **{kind: [*paths] for kind, paths in inventory.PATHS.items() if kind is not vim.HostSystem},
    vim.HostSystem: [*hosts.DETAIL, *capacity.PATHS[vim.HostSystem], "config.option", "hardware.systemInfo"],
    vim.VirtualMachine: [
        *machines.DETAIL,
        MARK,
        "config.extraConfig",
        "config.files",
        "layoutEx.timestamp",
        "network",
    ],
}


@pytest.fixture
def vcenter(sandbox: Running, tmp_path) -> Iterator[VCenter]:
    (tmp_path / "site.yaml").write_text(SITE)
    transport = Transport(route=sandbox.lookup)
    made = VCenter(bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox).vcenter, transport)
    yield made
    made.close()
    transport.close()


def machine(vcenter: VCenter) -> None:
    """A VM with a GPU, an adapter, a mark and a property."""
    here = vcenter.inventory.read()
    detail = next(d for d in vcenter.hosts.read([h.moid for h in here.hosts], "bfinfra.mark") if d.devices)
    host, gpu = next(h for h in here.hosts if h.moid == detail.moid), detail.devices[0]
    store, folder = (
        next(d for d in here.datastores if host.moid in d.hosts),
        only(here.folder("", host.datacenter)),
    )
    card = devices.add_pci(
        Attach(vendor=gpu.vendor, device=gpu.device, address=gpu.address, name=gpu.name), -200, "BYPASS"
    )
    mark = vim.option.OptionValue(key="bfinfra.mark", value=Mark("trees", "bitfusion_server/one").encode())
    app = vim.vApp.VmConfigSpec(
        property=[
            vim.vApp.PropertySpec(
                operation="add",
                info=vim.vApp.PropertyInfo(key=0, id="hostname", type="string", value="a <b> &"),
            )
        ]
    )

    def start(content: Any) -> Any:
        nic = devices.add_nic(hardware.network_backing(content, min(detail.networks)), -300)
        spec = vim.vm.ConfigSpec(
            name="one",
            guestId="otherGuest64",
            numCPUs=4,
            memoryMB=1024,
            memoryReservationLockedToMax=True,
            deviceChange=[card, nic],
            extraConfig=[mark],
            vAppConfig=app,
            files=vim.vm.FileInfo(vmPathName=f"[{store.name}]"),
        )
        pool = next(p for p in here.pools if p.owner == host.cluster and p.root)
        return refs.refer(content, vim.Folder, folder.moid).CreateVM_Task(
            spec, refs.refer(content, vim.ResourcePool, pool.moid), host.ref
        )

    vcenter.tasks.run(start, "making a VM")


def plain(found: Any, model: Any) -> Any:
    """`found` with every attribute that pyVmomi's `model` of it has, as plain data."""
    if isinstance(model, list):
        assert len(found) == len(model)
        return [plain(f, m) for f, m in zip(found, model, strict=True)]
    if isinstance(model, DataObject):
        assert tree.is_a(found, type(model))
        assert not isinstance(found, tree.Node) or found.kind is type(model)
        return {
            p.name: plain(getattr(found, p.name), getattr(model, p.name)) for p in model._GetPropertyList()
        }
    if isinstance(model, ManagedObject):
        assert type(found) is type(model)
        return found._GetMoId()
    assert type(found) is type(model)
    return found


def test_every_property_comes_out_as_pyvmomi_has_it(vcenter):
    machine(vcenter)
    content = vcenter.session.content()
    rows = properties.below(content, content.rootFolder, READ, properties.whole)
    assert {type(row.ref) for row in rows} >= {vim.VirtualMachine, vim.HostSystem, vim.Datacenter}
    compared = 0
    for row in rows:
        paths = [path for kind in READ if isinstance(row.ref, kind) for path in READ[kind]]
        model = properties.one(content, row.ref, paths)
        assert row.values.keys() == model.values.keys()
        for path, value in model.values.items():
            if not path.startswith("summary.effective"):
                assert plain(row[path], value) == plain(value, value), path
                compared += 1
    assert compared > 90


def test_pages_are_joined(vcenter, monkeypatch):
    content = vcenter.session.content()
    whole = properties.below(
        content, content.rootFolder, {vim.ManagedEntity: ["name"]}, lambda row: (row.moid, row["name"])
    )
    monkeypatch.setattr(properties, "PAGE", 2)
    assert (
        properties.below(
            content, content.rootFolder, {vim.ManagedEntity: ["name"]}, lambda row: (row.moid, row["name"])
        )
        == whole
    )
    assert vcenter.transport.tally.names["ContinueRetrievePropertiesEx"] >= len(whole) // 2


def test_what_is_gone_is_left_out_and_what_may_not_be_read_is_an_error(vcenter):
    content = vcenter.session.content()
    there = properties.below(content, content.rootFolder, {vim.HostSystem: ["name"]}, lambda row: row.ref)
    moids = [refs.moid(ref) for ref in there]
    assert (
        properties.of(content, vim.HostSystem, [*moids, "host-404", '<&">'], ["name"], lambda row: row.ref)
        == there
    )
    fault = vim.fault.NoPermission(privilegeId="System.Read")
    with pytest.raises(Denied, match="privilege System"):
        properties._check([("name", fault)], there[0], content)


@pytest.mark.parametrize("text", ["", "<a>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"])
def test_what_is_no_answer_is_malformed(vcenter, monkeypatch, text):
    content = vcenter.session.content()
    blocks = iter([text.encode()])
    parse = tree.parse
    monkeypatch.setattr(tree, "parse", lambda _: parse(blocks))
    with pytest.raises(Malformed):
        properties.below(content, content.rootFolder, {vim.HostSystem: ["name"]}, properties.whole)


def test_a_value_that_its_type_does_not_allow_is_refused():
    spaces = (
        b'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
    )
    val = tree.parse([b"<val ", spaces, b' xsi:type="xsd:boolean">perhaps</val>'])
    with pytest.raises(tree.Unfit, match="perhaps"):
        tree.value(val, object, None)


def nodes(text: str) -> tree.Nodes:
    """The PCI devices of a host, of this text."""
    return tree.Nodes(tree.parse([f'<val xmlns="urn:vim25">{text}</val>'.encode()]), vim.host.PciDevice, None)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            "<d><id>a</id><vendorId>7</vendorId></d><d><id>b</id><vendorId>8</vendorId></d>",
            [("a", "7"), ("b", "8")],
        ),
        ("<d><id>a</id></d><d><vendorId>8</vendorId><id>b</id></d>", [("a", None), ("b", "8")]),
        ("<d><id>a</id><vendorId/></d>", [("a", "")]),
        ("", []),
    ],
    ids=["all given", "one not given", "one given as nothing", "none"],
)
def test_a_table_has_text_for_what_is_set_and_none_for_what_is_not(text, rows):
    assert nodes(text).table("id", "vendorId") == rows


PCI = "<d><id>0000:3b:00.0</id><classId>{sort}</classId><vendorId>4318</vendorId><deviceId>7864</deviceId><deviceName>T4</deviceName></d>"
PASSTHROUGH = "<d><id>0000:3b:00.0</id><passthruCapable>true</passthruCapable><passthruEnabled>{enabled}</passthruEnabled></d>"


@pytest.mark.parametrize(
    ("sort", "enabled", "what"),
    [
        ("gpu", "true", "classId: .*gpu"),
        ("", "true", "classId"),
        ("768", "perhaps", "passthruEnabled: .*perhaps"),
        ("768", "", "passthruEnabled"),
    ],
)
def test_a_device_that_is_not_what_its_type_says_is_refused_by_the_name_of_the_attribute(sort, enabled, what):
    with pytest.raises(tree.Unfit, match=what):
        hosts._devices(nodes(PCI.format(sort=sort)), nodes(PASSTHROUGH.format(enabled=enabled)))


def test_passthrough_that_is_not_spoken_of_is_off():
    (card,) = hosts._devices(nodes(PCI.format(sort=768)), nodes(PASSTHROUGH.format(enabled="true")))
    assert (card.display, card.capable, card.enabled, card.active) == (True, True, True, False)
    (card,) = hosts._devices(nodes(PCI.format(sort=768)), None)
    assert (card.display, card.capable, card.enabled, card.active) == (True, False, False, False)


def test_an_attribute_that_the_type_does_not_have_is_an_error(vcenter):
    content = vcenter.session.content()
    first = properties.below(
        content,
        content.rootFolder,
        {vim.HostSystem: ["hardware.pciDevice"]},
        lambda row: row["hardware.pciDevice"],
    )
    first = next(found[0] for found in first if found)
    assert first.id
    with pytest.raises(AttributeError):
        _ = first.nothing_of_the_kind
    assert vmodl.fault.ManagedObjectNotFound in properties.ABSENT
