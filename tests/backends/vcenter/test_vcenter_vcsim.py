"""The SOAP half against vcsim: the wire of a peer that shares no code with us."""

from __future__ import annotations

import io
import uuid
from dataclasses import replace

import pytest
from pyVmomi import vim
from vcsim_peer import ENV

from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, properties, refs, soap
from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.vm import Attach, Hardware, Import
from bfinfra.model.errors import Exists, Expired, Missing, Rejected
from bfinfra.sandbox.factories.descriptor import Appliance, Disk, descriptor

pytestmark = pytest.mark.peers
MARK = "bfinfra.mark"
DATA = b"x" * 3_000_000


@pytest.fixture
def vcenter(vcsim):
    made = vcsim.vcenter()
    yield made
    made.close()


@pytest.fixture
def place(vcenter):
    inventory = vcenter.inventory.read()
    return inventory, only(inventory.host("DC0_C0_H0"))


@pytest.fixture
def card(vcenter, place):
    """The address of a card that machines on the host can have."""
    moid, address = place[1].moid, "0000:17:00.0"
    (host,) = vcenter.hosts.read([moid], MARK)
    if not next(device.active for device in host.devices if device.address == address):
        vcenter.hosts.set_passthrough(moid, {address: True})
        vcenter.hosts.enter_maintenance(moid)
        vcenter.hosts.reboot(moid, host.boot)
        vcenter.hosts.exit_maintenance(moid)
    return address


def wanted(place, name: str, *cards: str, **more) -> Import:
    inventory, host = place
    text = descriptor(
        Appliance(
            name, "Server", "1-1", (Disk("disk1.vmdk", len(DATA), 50 << 30),), ("Network 1", "Network 2")
        )
    )
    network = only(inventory.network("DC0_DVPG0")).moid
    settings = {
        "hardware": Hardware(
            cpus=8,
            memory=64 << 30,
            reserve=True,
            firmware="efi",
            instance_uuid=str(uuid.uuid4()),
            extra={MARK: f"mark of {name}"},
            attach=tuple(Attach(address=card, vendor=0x10DE, device=0x20B5, name="gpu") for card in cards),
        ),
        "surplus": frozenset({1}),
    } | more
    return Import(
        name=name,
        descriptor=text,
        networks={"Network 1": network, "Network 2": network},
        properties={"hostname": name, "customer_password": "long-secret"},
        folder=only(inventory.folder("", "/DC0")).moid,
        pool=only(inventory.cluster("DC0_C0")).pool,
        host=host.moid,
        datastore=only(inventory.datastore("LocalDS_0")).moid,
        files={"disk1.vmdk": len(DATA)},
        open=lambda _: io.BytesIO(DATA),
        **settings,
    )


def test_the_inventory_is_read_in_one_collector_call(vcsim):
    vcenter = vcsim.vcenter(read_only=True)
    inventory = vcenter.inventory.read()
    assert only(inventory.cluster("DC0_C0")).datacenter == "/DC0"
    assert only(inventory.network("DC0_DVPG0")).distributed
    assert only(inventory.datastore("LocalDS_0")).free > 0
    assert only(inventory.folder("", "/DC0")).path == "vm"
    assert vcenter.transport.tally.names["RetrievePropertiesEx"] == 1
    vcenter.close()
    assert vcenter.transport.tally.names["Logout"] == 1


def test_an_unknown_datacenter_is_refused_with_what_there_is(vcsim):
    vcenter = VCenter(vcsim.settings(datacenter="DC9"), Transport(), ENV)
    with pytest.raises(Rejected, match="there are: DC0"):
        vcenter.inventory.read()
    vcenter.close()


def test_an_ended_session_is_renewed_for_reads(vcenter):
    vcenter.inventory.read()
    vcenter.session.content().sessionManager.Logout()
    assert vcenter.inventory.read().hosts
    assert vcenter.transport.tally.names["Login"] == 2


def test_an_ended_session_never_looks_like_an_empty_world(vcenter):
    content = vcenter.session.content()
    content.sessionManager.Logout()
    with pytest.raises(Expired):
        properties.of(content, vim.Folder, [refs.moid(content.rootFolder)], ["name"], properties.whole)


def test_a_write_on_an_ended_session_is_not_repeated(vcenter, place):
    vcenter.session.content().sessionManager.Logout()
    with pytest.raises(Expired):
        vcenter.hosts.set_passthrough(place[1].moid, {"0000:17:00.0": True})
    assert vcenter.transport.tally.names["Login"] == 1


def test_an_object_that_is_gone_is_missing(vcenter):
    with pytest.raises(Missing):
        vcenter.machines.power_on("vm-99999")


def test_a_host_keeps_notes_in_custom_attributes(vcenter, place):
    moid = place[1].moid
    other = only(place[0].host("DC0_C0_H1")).moid
    vcenter.hosts.set_attribute(moid, "bfinfra.test", "one")
    vcenter.hosts.set_attribute(moid, "bfinfra.test", "two")
    vcenter.hosts.set_attribute(other, "bfinfra.test", "three")
    assert vcenter.hosts.notes("bfinfra.test")["DC0_C0_H0"] == (moid, "two")
    vcenter.hosts.drop_attribute(moid, "bfinfra.test")
    assert vcenter.hosts.notes("bfinfra.test")["DC0_C0_H0"] == (moid, "")
    assert vcenter.hosts.notes("bfinfra.test")["DC0_C0_H1"] == (other, "three")
    vcenter.hosts.drop_attribute(other, "bfinfra.test")
    assert vcenter.hosts.notes("bfinfra.test")["DC0_C0_H1"] == (other, "")


def test_passthrough_takes_effect_with_a_reboot(vcenter, place):
    moid = place[1].moid
    vcenter.hosts.set_passthrough(moid, {"0000:17:00.0": True, "0000:28:00.0": False})
    boot = vcenter.hosts.read([moid], MARK)[0].boot
    vcenter.hosts.enter_maintenance(moid)
    vcenter.hosts.reboot(moid, boot)
    vcenter.hosts.exit_maintenance(moid)
    found = vcenter.hosts.read([moid], MARK)[0]
    assert found.boot != boot
    assert not found.maintenance
    cards = {d.address: (d.enabled, d.active) for d in found.devices if d.capable}
    assert cards == {"0000:17:00.0": (True, True), "0000:28:00.0": (False, False)}


def test_a_reboot_outside_maintenance_mode_fails_with_the_servers_reason(vcenter, place):
    (host,) = vcenter.hosts.read([place[1].moid], MARK)
    with pytest.raises(Rejected, match="InvalidState"):
        vcenter.hosts.reboot(host.moid, host.boot)


def test_an_import_carries_mark_hardware_and_devices_from_the_first_moment(vcenter, place, card):
    seen = []

    def look(done: int, total: int) -> None:
        if not seen:
            seen.extend(
                vcenter.machines.read(
                    [b.moid for b in vcenter.machines.survey(MARK) if b.mark == "mark of bf-1"], [MARK]
                )
            )

    moid = vcenter.imports.run(wanted(place, "bf-1", card), look)
    assert [m.moid for m in seen] == [moid]
    assert seen[0].extra == {MARK: "mark of bf-1"}
    assert (seen[0].cpus, seen[0].memory, seen[0].reserved, seen[0].firmware) == (8, 64 << 30, True, "efi")
    assert [p.address for p in seen[0].pci] == [card]
    assert len(seen[0].nics) == 1, "the second adapter of the OVF was left out"
    vcenter.machines.power_on(moid)
    assert [(h.name, h.on, h.addresses) for h in vcenter.hosts.read([place[1].moid], MARK)[0].holders] == [
        ("bf-1", True, (card,))
    ]
    vcenter.machines.stop(moid)
    vcenter.machines.destroy(moid)


def test_an_import_that_meets_another_one_leaves_no_folder_on_the_datastore(vcsim, vcenter, place, peers):
    refused = []
    user = {"user": ENV["GOVC_USERNAME"], "password": ENV["GOVC_PASSWORD"]}
    server = wanted(place, "bf-6", hardware=Hardware(extra={MARK: "mark of bf-6"}))

    def folders() -> list[str]:
        listed = peers.govc("datastore.ls", "-dc", "DC0", "-ds", "LocalDS_0", server=vcsim.server, **user)
        return [line for line in listed.splitlines() if line.startswith("bf-6")]

    def meet(*_: object) -> None:
        if not refused:
            other = vcsim.vcenter()
            with pytest.raises(Exists) as error:
                other.imports.run(server, lambda *_: None)
            refused.append(
                (str(error.value.problems[0].what), other.transport.tally.names["ImportVApp"], folders())
            )
            other.close()

    moid = vcenter.imports.run(server, meet)
    vcenter.machines.destroy(moid)
    assert refused == [("vCenter has a VM bf-6 in this folder already", 0, ["bf-6"])]


def test_a_reconfiguration_is_one_task(vcenter, place, card):
    moid = vcenter.imports.run(wanted(place, "bf-2", card), lambda *_: None)
    before = vcenter.machines.read([moid], [MARK])[0]
    writes = vcenter.transport.tally.writes
    network = only(place[0].network("VM Network")).moid
    vcenter.machines.reconfigure(
        moid,
        Hardware(
            cpus=4,
            extra={"a.b": "1"},
            properties={"hostname": "other"},
            drop=(before.pci[0].key,),
            add_nics=(network,),
            attach=(Attach(vendor=0x10DE, device=0x20B5),),
            nics={before.nics[0].key: network},
        ),
    )
    assert vcenter.transport.tally.writes == writes + 1
    after = vcenter.machines.read([moid], [MARK, "a.b"])[0]
    assert (after.cpus, after.extra["a.b"], after.properties["hostname"]) == (4, "1", "other")
    assert [(p.way, p.allowed) for p in after.pci] == [("dynamic", ((0x10DE, 0x20B5),))]
    assert {n.network for n in after.nics} == {network}
    assert "long-secret" not in repr(after)
    vcenter.machines.destroy(moid)


def test_an_upload_that_fails_gives_its_lease_up(vcenter, place):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        vcenter.imports.run(replace(wanted(place, "bf-3"), open=lambda _: Broken()), lambda *_: None)
    assert vcenter.transport.tally.names["HttpNfcLeaseAbort"] == 1
    assert vcenter.transport.tally.names["HttpNfcLeaseComplete"] == 0


def test_a_half_imported_machine_is_discarded_and_a_finished_one_is_not(vcenter, place):
    hardware = Hardware(extra={MARK: "half", "bfinfra.importing": "x"})
    moid = vcenter.imports.run(wanted(place, "bf-4", hardware=hardware), lambda *_: None)
    vcenter.machines.reconfigure(moid, Hardware(extra={"bfinfra.importing": ""}))
    vcenter.machines.discard(moid, "bfinfra.importing", cancel=False)
    assert vcenter.machines.read([moid], [MARK])
    vcenter.machines.reconfigure(moid, Hardware(extra={"bfinfra.importing": "x"}))
    vcenter.machines.discard(moid, "bfinfra.importing", cancel=True)
    assert not vcenter.machines.read([moid], [MARK])


def test_an_api_older_than_seven_is_refused(vcsim, monkeypatch):
    monkeypatch.setattr(soap, "OLDEST", (99, 0))
    vcenter = vcsim.vcenter()
    with pytest.raises(Rejected, match="too old"):
        vcenter.inventory.read()
    vcenter.close()


def test_types_of_pyvmomi_are_not_in_what_kinds_get(vcenter, place):
    assert not isinstance(place[1].moid, vim.HostSystem)
