"""Virtual machines: survey, reconfigure, power, move, destroy, and what is refused."""

from __future__ import annotations

from dataclasses import replace

from contract.calls import Account, call, lacks
from contract.machines import GIB, MARK, active, imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import properties
from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.vm import Attach, Hardware, NewDisk
from bfinfra.model.errors import Conflict, Missing, Rejected

NOWHERE = "vm-99999"
CARD = Attach(address="0000:17:00.0", vendor=0x10DE, device=0x1DB6, name="gpu")


@call("machines.survey", "machines.read", case="the mark and everything of a machine")
def test_a_machine_is_found_by_its_mark_and_read_whole(vcenter: VCenterSide, secret: str) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "read", properties={"customer_password": secret})
    assert [(b.moid, b.name) for b in vc.machines.survey(MARK) if b.mark == "mark of read"] == [
        (moid, "read")
    ]
    assert vc.machines.survey(MARK) == vc.machines.survey(MARK)
    (found,) = vc.machines.read([moid], [MARK])
    assert (found.name, found.cpus, found.memory, found.on, found.connected, found.pci) == (
        "read",
        2,
        4 * GIB,
        False,
        True,
        (),
    )
    assert found.extra == {MARK: "mark of read"}
    assert found.properties["hostname"] == vcenter.hidden("machine")
    assert len(found.nics) == 1
    assert found.host and found.folder and found.pool and found.datastores
    assert secret not in repr(found)


@call("machines.read", case="a password property")
@lacks("vcsim: vApp properties of type password are read back in clear")
def test_a_password_property_reads_back_empty(vcenter: VCenterSide, secret: str) -> None:
    vc = vcenter.open()
    (found,) = vc.machines.read(
        [imported(vcenter, vc, "password", properties={"customer_password": secret})], []
    )
    assert found.properties["customer_password"] == ""


@call("machines.origins", case="what tells of an appliance")
def test_the_origin_of_a_machine_is_read_from_its_properties(vcenter: VCenterSide, secret: str) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "origin", properties={"customer_password": secret})
    (found,) = [each for each in vc.machines.origins() if each.moid == moid]
    assert (found.name, found.template, found.owner) == ("origin", False, "")
    assert "customer_password" in {key.rpartition(".")[2] for key in found.labels}
    assert secret not in repr(found)


@call("machines.origins", case="which properties are secret")
@lacks("vcsim: vApp properties of type password are read back in clear")
def test_secret_properties_are_distinguished_from_others(vcenter: VCenterSide, secret: str) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "secret", properties={"customer_password": secret})
    (found,) = [each for each in vc.machines.origins() if each.moid == moid]
    assert "customer_password" in {key.rpartition(".")[2] for key in found.passwords}


@call("machines.read", case="machines that are gone are left out")
def test_machines_that_are_gone_are_left_out(vcenter: VCenterSide) -> None:
    assert vcenter.open().machines.read([NOWHERE], [MARK]) == []


@call("machines.sockets", case="cores per socket, and a machine that is gone")
def test_machines_say_how_many_cores_a_socket_has(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "sockets")
    assert vc.machines.sockets([moid, NOWHERE]) == {moid: 1}


@call("machines.reconfigure", case="CPUs, memory, options, properties, network adapters in one task")
def test_a_reconfiguration_is_one_task(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "reconfigured")
    network = only(vc.inventory.read().network(vcenter.network))
    assert network
    writes = vc.transport.tally.writes
    vc.machines.reconfigure(
        moid,
        Hardware(
            cpus=4,
            memory=8 * GIB,
            extra={"a.b": "1"},
            properties={"hostname": "other"},
            add_nics=(network.moid,),
            firmware="efi",
        ),
    )
    assert vc.transport.tally.writes == writes + 1
    (after,) = vc.machines.read([moid], [MARK, "a.b"])
    assert (after.cpus, after.memory, after.firmware) == (4, 8 * GIB, "efi")
    assert after.extra == {MARK: "mark of reconfigured", "a.b": "1"}
    assert after.properties["hostname"] == vcenter.hidden("other")
    assert {n.network for n in after.nics} == {network.moid} and len(after.nics) == 2
    vc.machines.reconfigure(moid, Hardware(extra={"a.b": ""}, drop=(after.nics[1].key,)))
    (last,) = vc.machines.read([moid], ["a.b"])
    assert (last.extra, len(last.nics)) == ({}, 1)


MACS = ("00:50:56:00:00:01", "02:50:56:00:00:02", "00:50:56:00:00:03")


@call("ovf.run", "machines.reconfigure", case="MAC addresses: of an OVF's, a new and a present adapter")
def test_adapters_get_their_mac_addresses(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "macs", macs={0: MACS[0]})
    (first,) = vc.machines.read([moid], [])[0].nics
    assert (first.mac, first.manual) == (MACS[0], True)
    vc.machines.reconfigure(
        moid,
        Hardware(macs={first.key: MACS[2]}, add_nics=(first.network, first.network), add_macs=(MACS[1], "")),
    )
    after, second, third = vc.machines.read([moid], [])[0].nics
    assert after == replace(first, mac=MACS[2])
    assert (second.mac, second.manual, second.network) == (MACS[1], True, first.network)
    assert third.mac not in ("", *MACS) and not third.manual


@call("machines.reconfigure", case="a MAC address that none is")
@lacks("vcsim: every text is a MAC address")
def test_a_malformed_mac_address_is_rejected(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "malformed")
    (nic,) = vc.machines.read([moid], [])[0].nics
    with account.refused(Rejected):
        vc.machines.reconfigure(moid, Hardware(macs={nic.key: "00:50:56:00:00"}))
    assert vc.machines.read([moid], [])[0].nics == (nic,)


@call("machines.reconfigure", case="the MAC address of a machine that runs")
@lacks("vcsim: a running machine's MAC address can be changed")
def test_the_mac_address_of_a_running_machine_stays(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "running-mac")
    vc.machines.power_on(moid)
    (nic,) = vc.machines.read([moid], [])[0].nics
    with account.refused(Rejected):
        vc.machines.reconfigure(moid, Hardware(macs={nic.key: MACS[0]}))
    assert vc.machines.read([moid], [])[0].nics == (nic,)
    vc.machines.stop(moid)


@call("machines.addresses", case="a guest that doesn't run, and machines that are gone")
def test_a_guest_that_does_not_run_reports_no_addresses(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "silent")
    assert vc.machines.addresses([moid, NOWHERE]) == {moid: frozenset()}


@call("machines.addresses", case="all addresses that Tools report")
@lacks("vcsim: guests that have not been customised report no adapters", run=False)
def test_a_running_guest_reports_its_addresses(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "reporting")
    vc.machines.power_on(moid)
    found = vcenter.until(lambda: vc.machines.addresses([moid])[moid])
    assert vc.machines.read([moid], [])[0].ip in found
    vc.machines.stop(moid)


@call("machines.reconfigure", case="disks: put in with their controller, grown, deleted with their files")
def test_a_disk_comes_grows_and_goes(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "disks")
    store = only(vc.inventory.read().datastore(vcenter.datastore))
    assert store
    vc.machines.reconfigure(
        moid,
        Hardware(add_disks=(NewDisk("scsi1:0", 2 * GIB), NewDisk("scsi1:3", GIB, store.moid, thin=False))),
    )
    first, second = vc.machines.read([moid], [])[0].disks
    assert [(d.address, d.capacity) for d in (first, second)] == [("scsi1:0", 2 * GIB), ("scsi1:3", GIB)]
    assert f"[{vcenter.datastore}]" in second.file
    vc.machines.reconfigure(moid, Hardware(grow={second.key: 3 * GIB}, destroy=(first.key,)))
    (left,) = vc.machines.read([moid], [])[0].disks
    assert (left.key, left.address, left.capacity) == (second.key, "scsi1:3", 3 * GIB)


@call("machines.reconfigure", case="a GPU by address: put in, read, taken out")
def test_a_card_is_put_in_and_taken_out(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    active(vc, vcenter)
    moid = imported(vcenter, vc, "card")
    card = Attach(address="0000:17:00.0", vendor=0x10DE, device=0x1DB6, name="gpu")
    vc.machines.reconfigure(moid, Hardware(attach=(card,), reserve=True, memory=4 * GIB))
    (found,) = vc.machines.read([moid], [])
    assert [(p.way, p.address) for p in found.pci] == [("static", "0000:17:00.0")]
    assert found.reserved
    vc.machines.power_on(moid)
    (host,) = vc.hosts.read([found.host], MARK)
    assert [(h.name, h.on, h.addresses, h.mark) for h in host.holders] == [
        ("card", True, ("0000:17:00.0",), "mark of card")
    ]
    assert vc.hosts.read([found.host], MARK, machines=[moid]) == [host]
    vc.machines.stop(moid)
    vc.machines.reconfigure(moid, Hardware(drop=(found.pci[0].key,)))
    assert vc.machines.read([moid], [])[0].pci == ()


@call("machines.reconfigure", case="any GPU of vendor and device")
def test_a_card_by_vendor_and_device(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    active(vc, vcenter)
    moid = imported(vcenter, vc, "dynamic")
    vc.machines.reconfigure(
        moid, Hardware(attach=(Attach(vendor=0x10DE, device=0x1DB6),), reserve=True, memory=4 * GIB)
    )
    assert [(p.way, p.allowed) for p in vc.machines.read([moid], [])[0].pci] == [
        ("dynamic", ((0x10DE, 0x1DB6),))
    ]


@call("machines.power_on", case="a GPU that a running machine holds")
@lacks("vcsim: one GPU can be held by two running machines")
def test_a_card_that_is_held_is_refused(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    active(vc, vcenter)
    first, second = (imported(vcenter, vc, name) for name in ("holder", "wanting"))
    card = Attach(address="0000:17:00.0", vendor=0x10DE, device=0x1DB6, name="gpu")
    with account.refused(Rejected) as failed:
        for moid in (first, second):
            vc.machines.reconfigure(moid, Hardware(attach=(card,), reserve=True, memory=4 * GIB))
            vc.machines.power_on(moid)
    assert "in use" in str(failed.value)


@call("machines.power_on", case="a GPU without all memory reserved")
@lacks("vcsim: a machine with a GPU starts without its memory reserved")
def test_a_card_wants_its_memory_reserved(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    active(vc, vcenter)
    moid = imported(vcenter, vc, "unreserved")
    vc.machines.reconfigure(
        moid, Hardware(attach=(Attach(address="0000:17:00.0", vendor=0x10DE, device=0x1DB6, name="gpu"),))
    )
    with account.refused(Rejected) as failed:
        vc.machines.power_on(moid)
    assert "memory" in str(failed.value)


@call("machines.reconfigure", case="a GPU for a machine that runs")
@lacks("vcsim: a GPU can be put into a running machine")
def test_a_card_needs_a_machine_that_is_off(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    active(vc, vcenter)
    moid = imported(vcenter, vc, "running")
    vc.machines.power_on(moid)
    with account.refused(Rejected):
        vc.machines.reconfigure(moid, Hardware(attach=(CARD,)))
    vc.machines.stop(moid)


@call("machines.reconfigure", case="a property that isn't there")
def test_a_property_that_is_not_there_is_missing(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    with account.refused(Missing):
        vc.machines.reconfigure(imported(vcenter, vc, "no-property"), Hardware(properties={"nothing": "x"}))


@call("machines.reconfigure", case="a machine that isn't there")
def test_a_machine_that_is_not_there_is_missing(vcenter: VCenterSide, account: Account) -> None:
    with account.refused(Missing):
        vcenter.open().machines.reconfigure(NOWHERE, Hardware(cpus=2))


@call("machines.power_on", "machines.stop", case="on, on again, off, off again")
def test_power_is_harmless_to_repeat(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "power")
    for _ in range(2):
        vc.machines.power_on(moid)
    assert vc.machines.read([moid], [])[0].on
    for _ in range(2):
        vc.machines.stop(moid)
    assert not vc.machines.read([moid], [])[0].on
    assert vc.transport.tally.names["PowerOnVM_Task"] == 1


@call("machines.power_on", case="a machine that isn't there")
def test_power_of_a_machine_that_is_not_there(vcenter: VCenterSide, account: Account) -> None:
    with account.refused(Missing):
        vcenter.open().machines.power_on(NOWHERE)


@call("tasks.run", case="powering on twice: invalid power state")
def test_an_invalid_power_state_is_rejected(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "twice")
    vc.machines.power_on(moid)
    with account.refused(Rejected) as failed:
        vc.tasks.run(lambda _: vc.machines._ref(moid).PowerOnVM_Task(None), "powering on")
    assert "InvalidPowerState" in str(failed.value)


@call("tasks.run", case="powering off what is off: invalid power state")
def test_what_is_off_is_not_powered_off(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "off")
    with account.refused(Rejected) as failed:
        vc.tasks.run(lambda _: vc.machines._ref(moid).PowerOffVM_Task(), "powering off")
    assert "InvalidPowerState" in str(failed.value)


@call("machines.destroy", case="a machine that runs")
def test_a_machine_that_runs_is_not_destroyed(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "alive")
    vc.machines.power_on(moid)
    with account.refused(Rejected) as failed:
        vc.machines.destroy(moid)
    assert "InvalidPowerState" in str(failed.value)
    assert vc.machines.read([moid], [])[0].on


@call("machines.destroy", case="a machine that is off; then it is gone")
def test_a_machine_is_destroyed(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "destroyed")
    vc.machines.destroy(moid)
    assert vc.machines.read([moid], []) == []
    with account.refused(Missing):
        vc.machines.destroy(moid)


@call("tasks.run", case="a task fails with a fault of its own, by a fault rule")
@lacks("vcsim: its fault injector fails calls, not tasks", run=False)
def test_a_task_that_fails_says_why(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "failing")
    vcenter.fail_task("ReconfigVM_Task", "GenericVmConfigFault")
    with account.refused(Rejected):
        vc.machines.reconfigure(moid, Hardware(cpus=4))
    assert vc.machines.read([moid], [])[0].cpus == 2


@call("tasks.run", case="the object was changed by somebody else, by a fault rule")
@lacks(
    "vcsim: its fault injector doesn't know ConcurrentAccess, and a stale changeVersion is accepted",
    run=False,
)
def test_a_change_in_between_is_a_conflict(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "changed")
    vcenter.fail_task("ReconfigVM_Task", "ConcurrentAccess")
    with account.refused(Conflict):
        vc.machines.reconfigure(moid, Hardware(cpus=4))


@call("machines.move", case="into another folder")
def test_a_machine_is_moved(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "moved")
    inventory = vc.inventory.read()
    root = only(inventory.folder("", "/DC0"))
    assert root
    made = vc.session.write(
        lambda content: properties_ref(content, "Folder", root.moid).CreateFolder("theirs")
    )
    folder = str(made._GetMoId())
    vcenter.closing.insert(1, lambda: vc.tasks.run(lambda _: made.Destroy_Task(), "removing the folder"))
    vc.machines.move(moid, folder, "")
    assert vc.machines.read([moid], [])[0].folder == folder


@call("machines.move", case="into another resource pool")
@lacks("vcsim: machines can't be moved between resource pools")
def test_a_machine_is_moved_to_another_pool(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "swimmer")
    cluster = only(vc.inventory.read().cluster(vcenter.cluster))
    assert cluster
    share = properties.vim.ResourceAllocationInfo(
        reservation=0,
        limit=-1,
        expandableReservation=True,
        shares=properties.vim.SharesInfo(level="normal", shares=0),
    )
    spec = properties.vim.ResourceConfigSpec(cpuAllocation=share, memoryAllocation=share)
    pool = vc.session.write(
        lambda content: properties_ref(content, "ResourcePool", cluster.pool).CreateResourcePool(
            "theirs", spec
        )
    )._GetMoId()
    vc.machines.move(moid, "", pool)
    assert vc.machines.read([moid], [])[0].pool == pool
    vc.machines.move(moid, "", cluster.pool)


@call("machines.move", case="a folder that isn't there")
def test_a_move_to_nowhere(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "nowhere")
    with account.refused(Missing, Rejected):
        vc.machines.move(moid, "group-v99999", "")


@call("machines.discard", case="a finished machine stays, a half-imported one goes")
def test_a_half_imported_machine_is_discarded(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "half")
    vc.machines.discard(moid, "bfinfra.importing", cancel=False)
    assert vc.machines.read([moid], [])
    vc.machines.reconfigure(moid, Hardware(extra={"bfinfra.importing": "x"}))
    vc.machines.discard(moid, "bfinfra.importing", cancel=True)
    assert vc.machines.read([moid], []) == []


def properties_ref(content, kind: str, moid: str):
    return properties.refs.refer(content, getattr(properties.vim, kind), moid)
