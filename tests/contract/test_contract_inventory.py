"""Reading the inventory, hosts and their devices; what is done to hosts."""

from __future__ import annotations

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import hosts, tasks
from bfinfra.backends.vcenter.inventory import NoDatacenter
from bfinfra.backends.vcenter.places import only
from bfinfra.model.errors import Missing, Rejected, StillRunning

KEY, NOTE = "bfinfra.contract", "bfinfra.contract.note"


@call("inventory.read", case="everything in one collector call")
def test_the_inventory_is_read_in_one_call(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    found = vc.inventory.read()
    assert {c.name for c in found.clusters} == {vcenter.cluster, vcenter.supervisor}
    assert sorted(h.name.upper().replace("-", "_") for h in found.hosts) == [
        f"DC0_C{c}_H{n}" for c in (0, 1) for n in range(3)
    ]
    assert all(h.connected and not h.maintenance for h in found.hosts)
    store = only(found.datastore(vcenter.datastore))
    assert store and store.accessible and 0 < store.free <= store.capacity and store.hosts
    network, folder = only(found.network(vcenter.network)), only(found.folder("", "/DC0"))
    assert network and not network.distributed and folder and folder.path == "vm"
    cluster = only(found.cluster(vcenter.cluster))
    pool = next((p for p in found.pools if p.owner == cluster.moid and p.root), None) if cluster else None
    assert cluster and pool and pool.moid == cluster.pool
    assert vc.transport.tally.names["RetrievePropertiesEx"] == 1


@call("inventory.pools", case="clusters and their pools alone, as in everything")
def test_pools_are_read_without_all_else(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    found, everything = vc.inventory.pools(), vc.inventory.read()
    assert (found.clusters, found.pools) == (everything.clusters, everything.pools)
    assert found.pools and not (found.hosts or found.datastores or found.networks)


@call("inventory.clusters", case="names alone ask nothing; a path is looked up")
def test_clusters_are_looked_up_where_a_name_is_not_enough(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    known = {each.moid: each.name for each in vc.inventory.pools().clusters}
    asked = vc.transport.tally.names["RetrievePropertiesEx"]
    assert {each.name for each in vc.inventory.clusters(known, [vcenter.cluster])} == {*known.values()}
    assert vc.transport.tally.names["RetrievePropertiesEx"] == asked
    path = f"/DC0/host/{vcenter.cluster}"
    found = vc.inventory.clusters(known, [path])
    assert [each.name for each in found if each.is_called(path)] == [vcenter.cluster]
    assert vc.transport.tally.names["RetrievePropertiesEx"] == asked + 1


@call("inventory.read", case="a distributed port group")
@lacks("sandbox: its worlds have standard networks only")
def test_distributed_port_groups_are_distinguished(vcenter: VCenterSide) -> None:
    network = only(vcenter.open().inventory.read().network("DC0_DVPG0"))
    assert network and network.distributed


@call("inventory.read", case="a datacenter that isn't there")
def test_an_unknown_datacenter_is_refused_with_what_there_is(vcenter: VCenterSide, account: Account) -> None:
    with account.refused(NoDatacenter) as failed:
        vcenter.open(datacenter="DC9").inventory.read()
    assert "there are: DC0" in str(failed.value)


@call("capacity.read", case="what clusters have for machines")
def test_clusters_say_what_they_have(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    cluster = only(vc.inventory.read().cluster(vcenter.cluster))
    assert cluster
    found = vc.capacity.read()[cluster.moid]
    assert found.cpu >= found.core > 0
    assert found.memory > 1 << 30


@call("hosts.read", case="PCI devices and passthrough")
def test_hosts_say_what_cards_they_have(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    (found,) = vc.hosts.read([host(vc, vcenter)], KEY)
    cards = {
        d.address: (hex(d.vendor), hex(d.device), d.display, d.capable, d.enabled, d.active)
        for d in found.devices
        if d.vendor == 0x10DE
    }
    assert cards == dict.fromkeys(
        ("0000:17:00.0", "0000:28:00.0"), ("0x10de", "0x1db6", True, True, False, False)
    )
    assert (found.name, found.connected, found.maintenance, found.holders) == (vcenter.host, True, False, ())
    assert found.boot and found.datastores and found.networks


@call("hosts.rooms", case="what a host on which nothing runs has for VMs, and one that is gone")
def test_hosts_say_how_many_cpus_and_how_much_memory_they_have(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = host(vc, vcenter)
    found = vc.hosts.rooms([moid, "host-99999"])
    assert found.keys() == {moid}
    assert found[moid].memory > 1 << 30
    assert found[moid].cpus > 0
    assert found[moid].networks
    assert (found[moid].reserved, found[moid].cards) == ({}, ())


@call("hosts.read", case="a host that is gone is left out")
def test_a_host_that_is_gone_is_left_out(vcenter: VCenterSide) -> None:
    assert vcenter.open().hosts.read(["host-99999"], KEY) == []


@call(
    "hosts.survey",
    "hosts.notes",
    "hosts.set_attribute",
    "hosts.drop_attribute",
    case="define, set, set again, drop with the last",
)
def test_a_host_keeps_notes(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid, other = host(vc, vcenter), host(vc, vcenter, "DC0_C0_H1")
    vc.hosts.set_attribute(moid, NOTE, "one")
    vc.hosts.set_attribute(moid, NOTE, "two")
    vc.hosts.set_attribute(other, NOTE, "three")
    notes, clusters, machines = vc.hosts.survey(NOTE)
    assert notes[vcenter.host] == (moid, "two")
    assert vcenter.cluster in clusters.values()
    assert machines.keys() == {there for there, _ in notes.values()}
    vc.hosts.drop_attribute(moid, NOTE)
    assert vc.hosts.notes(NOTE)[vcenter.host] == (moid, "")
    assert vc.hosts.notes(NOTE)["DC0_C0_H1"] == (other, "three")
    vc.hosts.drop_attribute(other, NOTE)
    assert vc.hosts.notes(NOTE)["DC0_C0_H1"] == (other, "")


@call("hosts.set_attribute", case="a host that isn't there")
@lacks(
    "vcsim: a note on a host that isn't there makes it panic, and custom attributes hang from then on",
    run=False,
)
def test_a_note_on_a_host_that_is_not_there(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    try:
        with account.refused(Missing):
            vc.hosts.set_attribute("host-99999", NOTE, "x")
    finally:
        vc.hosts.drop_attribute("host-99999", NOTE)


@call(
    "hosts.set_passthrough",
    "hosts.enter_maintenance",
    "hosts.reboot",
    "hosts.exit_maintenance",
    "tasks.run",
    "tasks.watch",
    case="on, reboot, off, reboot",
)
def test_passthrough_takes_effect_with_a_reboot(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = host(vc, vcenter)
    for wanted in (True, False):
        vc.hosts.set_passthrough(moid, {"0000:17:00.0": wanted})
        (before,) = vc.hosts.read([moid], KEY)
        assert {(d.enabled, d.active) for d in before.devices if d.address == "0000:17:00.0"} == {
            (wanted, not wanted)
        }
        vc.hosts.enter_maintenance(moid)
        assert vc.hosts.read([moid], KEY)[0].maintenance
        vc.hosts.reboot(moid, before.boot)
        vcenter.until(lambda: vc.hosts.read([moid], KEY)[0].connected)
        vc.hosts.exit_maintenance(moid)
        (after,) = vc.hosts.read([moid], KEY)
        assert after.boot != before.boot
        assert {(d.enabled, d.active) for d in after.devices if d.address == "0000:17:00.0"} == {
            (wanted, wanted)
        }


@call("hosts.set_passthrough", case="a device that the host doesn't have")
@lacks("vcsim: passthrough of a device that the host doesn't have is accepted")
def test_passthrough_of_no_such_device_is_refused(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    with account.refused(Rejected, Missing):
        vc.hosts.set_passthrough(host(vc, vcenter), {"0000:99:00.0": True})


@call("hosts.reboot", "tasks.wait", case="outside maintenance mode: the task fails")
def test_a_reboot_outside_maintenance_mode_fails(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    (found,) = vc.hosts.read([host(vc, vcenter)], KEY)
    with account.refused(Rejected) as failed:
        vc.hosts.reboot(found.moid, found.boot)
    assert "InvalidState" in str(failed.value)


@call("hosts.reboot", case="it has started since it was looked at: not again")
def test_a_host_that_restarted_meanwhile_is_left_alone(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    vc.hosts.reboot(host(vc, vcenter), "2001-01-01T00:00:00+00:00")
    assert vc.transport.tally.names["RebootHost_Task"] == 0


@call("hosts.enter_maintenance", case="a host that isn't there")
def test_maintenance_of_a_host_that_is_not_there(vcenter: VCenterSide, account: Account) -> None:
    with account.refused(Missing):
        vcenter.open().hosts.enter_maintenance("host-99999")


@call("tasks.wait", case="the task doesn't end in time")
@lacks("vcsim: its tasks can't be held up by a client")
def test_a_task_that_takes_too_long_still_runs(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = host(vc, vcenter)
    assert vcenter.world, "no control over how long tasks take"
    vcenter.world.pace(30)
    try:
        task = vc.session.write(
            lambda content: properties_host(content, moid).EnterMaintenanceMode_Task(
                timeout=60, evacuatePoweredOffVms=False
            )
        )
        with account.refused(StillRunning):
            short(vc, task)
    finally:
        vcenter.world.pace(0)


def short(vc, task) -> None:
    """One look, then the deadline is over."""
    before, tasks.ROUND = tasks.ROUND, 0
    try:
        vc.tasks.wait(task, "maintenance", limit=0)
    finally:
        tasks.ROUND = before


def properties_host(content, moid):
    return hosts._host(content, moid)


def host(vc, side: VCenterSide, name: str = "") -> str:
    found = only(vc.inventory.read().host(name or side.host))
    assert found
    return str(found.moid)
