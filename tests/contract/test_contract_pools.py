"""Resource pools: made, read, changed, moved, noted, removed."""

from __future__ import annotations

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.places import Allocation, ResourcePool
from bfinfra.backends.vcenter.pools import ResourcePools
from bfinfra.model.errors import Exists

NOTE = "bfinfra.contract"
CPU, MEMORY = (
    Allocation(reservation=100, limit=2000, shares="high"),
    Allocation(shares=5000, expandable=False),
)


def made(vcenter: VCenterSide, name: str) -> tuple[ResourcePools, str, str]:
    """A pool in a cluster's own, which goes with the test: the backend, its id, its parent's."""
    client = vcenter.open()
    pools = ResourcePools(client.session, client.tasks)
    root = next(each.pool for each in client.inventory.read().clusters if each.name == vcenter.cluster)
    moid = pools.create(root, name, CPU, MEMORY)
    vcenter.closing.append(lambda: pools.remove(moid))
    return pools, moid, root


def pool(pools: ResourcePools, moid: str) -> ResourcePool:
    return next(each for each in pools.read(NOTE) if each.moid == moid)


@call("pools.create", "pools.read", "pools.remove", case="a pool is read back as it was made, and goes")
def test_a_pool_is_read_back(vcenter: VCenterSide) -> None:
    pools, moid, root = made(vcenter, "gpu")
    found = pool(pools, moid)
    assert (found.name, found.parent, found.cpu, found.memory) == ("gpu", root, CPU, MEMORY)
    assert (found.vms, found.note) == ((), "")


@call("pools.create", "pools.rename", case="the name is taken in the same pool")
def test_a_name_is_taken_once_in_a_pool(vcenter: VCenterSide, account: Account) -> None:
    pools, moid, root = made(vcenter, "gpu")
    with account.refused(Exists):
        pools.create(root, "gpu", CPU, MEMORY)
    other = pools.create(moid, "gpu", CPU, MEMORY)
    pools.remove(other)


@call("pools.update", "pools.rename", case="another name, another share, a name alone")
def test_a_pool_is_changed(vcenter: VCenterSide) -> None:
    pools, moid, _ = made(vcenter, "gpu")
    cpu, memory = (
        Allocation(reservation=200, shares=700),
        Allocation(reservation=64, limit=128, expandable=False),
    )
    pools.update(moid, "gpus", (cpu, memory), lambda _: True)
    found = pool(pools, moid)
    assert (found.name, found.cpu, found.memory) == ("gpus", cpu, memory)
    pools.rename(moid, "gpu")
    found = pool(pools, moid)
    assert (found.name, found.cpu, found.memory) == ("gpu", cpu, memory)


@call("pools.update", case="more than the reservation may no longer come out of the parent's")
@lacks("vcsim: whether a reservation can be expanded is never changed")
def test_a_reservation_is_no_longer_expanded(vcenter: VCenterSide) -> None:
    pools, moid, _ = made(vcenter, "gpu")
    pools.update(moid, "gpu", (MEMORY, CPU), lambda _: True)
    assert not pool(pools, moid).cpu.expandable


@call("pools.move", case="into another pool of the cluster and back")
@lacks("vcsim: pools can't be moved")
def test_a_pool_is_moved(vcenter: VCenterSide) -> None:
    pools, moid, root = made(vcenter, "gpu")
    inner = pools.create(root, "inner", CPU, MEMORY)
    pools.move(inner, moid)
    assert pool(pools, inner).parent == moid
    pools.move(inner, root)
    assert pool(pools, inner).parent == root
    pools.remove(inner)


@call("pools.note", "pools.forget", case="a note comes and goes")
def test_a_note_on_a_pool_comes_and_goes(vcenter: VCenterSide) -> None:
    pools, moid, _ = made(vcenter, "gpu")
    pools.note(moid, NOTE, "ours")
    assert pool(pools, moid).note == "ours"
    pools.forget(moid, NOTE)
    assert pool(pools, moid).note == ""
