"""Machines that go to another host, and that get their name back."""

from __future__ import annotations

from contract.calls import Account, call, lacks
from contract.machines import GIB, imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.events import MOVED
from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.pools import Allocation, ResourcePools
from bfinfra.backends.vcenter.vm import Hardware, NewDisk, Relocation
from bfinfra.model.errors import Exists, Missing, Rejected

NOWHERE = "vm-99999"
CPU, MEMORY = Allocation(reservation=100), Allocation()
OTHER_HOST, FOREIGN_HOST = "DC0_C0_H1", "DC0_C1_H0"


def host_of(vc: VCenter, name: str) -> str:
    found = only(vc.inventory.read().host(name))
    assert found
    return found.moid


@call("machines.relocate", case="off, to another host of its cluster, its disk with it")
def test_a_machine_that_is_off_goes_to_another_host(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "relocated")
    vc.machines.reconfigure(moid, Hardware(add_disks=(NewDisk("scsi0:0", GIB),)))
    (before,) = vc.machines.read([moid], [])
    (store,), (disk,) = before.datastores, before.disks
    heard: list[int] = []
    writes = vc.transport.tally.writes
    vc.machines.relocate(
        moid,
        Relocation(pool=before.pool, host=host_of(vc, OTHER_HOST), datastore=store, disks={disk.key: store}),
        heard.append,
    )
    assert vc.transport.tally.writes == writes + 1
    (after,) = vc.machines.read([moid], [])
    assert (before.host, after.host) == (host_of(vc, vcenter.host), host_of(vc, OTHER_HOST))
    assert (after.pool, after.datastores, after.disks) == (before.pool, before.datastores, before.disks)


@call("machines.relocate", case="running, to another host, and back by its host alone")
def test_a_machine_that_runs_goes_to_another_host(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "migrated")
    vc.machines.power_on(moid)
    for name in (OTHER_HOST, vcenter.host):
        vc.machines.relocate(moid, Relocation(host=host_of(vc, name)))
        (found,) = vc.machines.read([moid], [])
        assert (found.on, found.host) == (True, host_of(vc, name))


@call("machines.relocate", "events.of", case="who moved it")
def test_a_move_is_told_with_its_user(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "told")
    for moves, name in enumerate((OTHER_HOST, vcenter.host), 1):
        vc.machines.relocate(moid, Relocation(host=host_of(vc, name)))
        told = [each for each in vc.events.of(moid) if each.what == MOVED]
        assert (len(told), told[0].name) == (moves, "told")
        assert "administrator" in told[0].by.lower()
        vc.machines.power_on(moid)


@call("machines.relocate", case="into another resource pool")
def test_a_machine_goes_to_the_pool_of_its_cluster(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "pooled")
    cluster = only(vc.inventory.read().cluster(vcenter.cluster))
    assert cluster
    pools = ResourcePools(vc.session, vc.tasks)
    pool = pools.create(cluster.pool, "relocated", CPU, MEMORY)
    vcenter.closing.insert(1, lambda: pools.remove(pool))
    vc.machines.relocate(moid, Relocation(pool=pool))
    (found,) = vc.machines.read([moid], [])
    assert (found.pool, found.host) == (pool, host_of(vc, vcenter.host))


@call("machines.relocate", case="a host of another cluster than the pool's")
@lacks("vcsim: a machine's host can be of another cluster than its resource pool")
def test_a_host_of_another_cluster_is_refused(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "foreign")
    name = "dc0-c1-h0" if vcenter.peer == "sandbox" else FOREIGN_HOST
    with account.refused(Rejected):
        vc.machines.relocate(moid, Relocation(host=host_of(vc, name)))


@call("machines.relocate", case="a machine that isn't there")
def test_a_machine_that_is_not_there_is_missing(vcenter: VCenterSide, account: Account) -> None:
    with account.refused(Missing):
        vcenter.open().machines.relocate(NOWHERE, Relocation())


@call("machines.reconfigure", case="another name, and the old one again")
def test_a_renamed_machine_gets_its_name_back(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "its-name")
    for name in ("100% other/name", "its-name"):
        vc.machines.reconfigure(moid, Hardware(name=name))
        (found,) = vc.machines.read([moid], [])
        assert (found.name, found.cpus) == (name, 2)


@call("machines.reconfigure", case="a name that a neighbour has")
@lacks("vcsim: a reconfiguration takes a name that a neighbour has")
def test_a_name_that_is_taken_is_refused(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    imported(vcenter, vc, "first-name")
    second = imported(vcenter, vc, "second-name")
    with account.refused(Exists):
        vc.machines.reconfigure(second, Hardware(name="first-name"))
    assert vc.machines.read([second], [])[0].name == "second-name"
