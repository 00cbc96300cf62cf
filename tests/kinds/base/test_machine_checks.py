"""A VM that no host can take is refused before anything is stopped, with what each host lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kinds.base.test_machine_placement import INVENTORY, MOST

from bfinfra.backends.vcenter.esxi import Room
from bfinfra.backends.vcenter.places import Datastore, Network
from bfinfra.kinds.vcenter.base.machine.checks import Asked, conflicts
from bfinfra.model.conflict import Conflict
from bfinfra.model.refs import Key

GIB = 1 << 30
ESX1, ESX2, ESX3 = INVENTORY.hosts
STORE = Datastore(
    moid="d1", name="slow", free=1, capacity=1, accessible=True, hosts=frozenset({"h1", "h2"}), **MOST
)
GROUP = Network(moid="n1", name="roce", distributed=True, hosts=frozenset({"h1", "h2"}), **MOST)
ROOM = Room(memory=256 * GIB, cpus=64, profiles=("p-8q",), networks=frozenset({"n1"}))
ROOMS = {"h1": ROOM, "h2": ROOM, "h3": ROOM}
VM = Asked(
    key=Key("virtual_machine", "w1"),
    cluster=INVENTORY.clusters[0],
    cpus=8,
    memory=64 * GIB,
    reserved=True,
    profiles=("p-8q",),
    datastores={"datastore": STORE},
    networks={"adapters.0.network": GROUP},
)
ON_ONE = replace(VM, host=ESX1)


def found(asked: Asked = VM, rooms: Any = ROOMS, hosts: Any = INVENTORY.hosts) -> list[Conflict]:
    return [*conflicts([asked], replace(INVENTORY, hosts=tuple(hosts)), rooms, {"vm-1"})]


def test_a_machine_that_fits_is_not_spoken_of() -> None:
    whole = replace(VM, cpus=64, memory=256 * GIB)
    assert found() == found(ON_ONE) == found(VM, {}) == found(whole) == []


@pytest.mark.parametrize(
    ("changes", "field", "lacks"),
    [
        ({"cpus": 65}, "cpus", "has 64 logical CPUs"),
        ({"memory": 257 * GIB}, "memory", "has 256GiB of memory"),
        ({"profiles": ("p-8q", "p-16q")}, "vgpus", "offers no vGPU profile p-16q"),
        (
            {"datastores": {"datastore": replace(STORE, hosts=frozenset())}},
            "datastore",
            "does not have the datastore slow",
        ),
        (
            {"datastores": {"datastore": replace(STORE, accessible=False)}},
            "datastore",
            "can't reach the datastore slow",
        ),
        (
            {"networks": {"adapters.1.network": replace(GROUP, moid="n2")}},
            "adapters.1.network",
            "does not have the network roce",
        ),
    ],
)
def test_what_every_host_lacks_is_said_at_the_field_that_asks_for_it(
    changes: Any, field: str, lacks: str
) -> None:
    (anywhere,) = found(replace(VM, **changes))
    assert (anywhere.what, anywhere.at.field, anywhere.stops) == ("no host of farm can run it", field, True)
    assert anywhere.why.startswith(f"esx1 {lacks}")
    assert f", esx2 {lacks}" in anywhere.why
    (there,) = found(replace(ON_ONE, **changes))
    assert (there.what, there.at.field) == ("esx1 can't run it", field)
    assert there.why.startswith(f"esx1 {lacks}")
    assert there.next


def test_one_host_that_can_is_enough() -> None:
    small = {**ROOMS, "h1": replace(ROOM, cpus=4)}
    assert found(VM, small) == []
    assert found(ON_ONE, small) != []


def test_hosts_that_lack_different_things_are_each_named() -> None:
    (each,) = found(
        replace(VM, datastores={"datastore": replace(STORE, hosts=frozenset({"h1"}))}),
        {**ROOMS, "h1": replace(ROOM, cpus=4)},
    )
    assert each.at.field == "cluster"
    (alone,) = found(replace(ON_ONE, datastores={}), {"h1": replace(ROOM, cpus=4, profiles=())})
    assert alone.at.field == "cpus"
    assert each.why == "esx1 has 4 logical CPUs, esx2 does not have the datastore slow"


def test_memory_is_said_with_what_others_reserve_of_it_only_where_they_do() -> None:
    large = replace(ON_ONE, memory=200 * GIB)
    (each,) = found(large, {"h1": replace(ROOM, reserved={"vm-9": ("theirs", 100 * GIB)})})
    assert each.why == "esx1 has 256GiB of memory, of which other VMs reserve 100GiB"
    (each,) = found(replace(large, memory=300 * GIB))
    assert each.why == "esx1 has 256GiB of memory"


@pytest.mark.parametrize(
    ("reserved", "fits"),
    [({}, True), ({"vm-9": ("theirs", 200 * GIB)}, False), ({"vm-1": ("ours", 200 * GIB)}, True)],
)
def test_memory_that_others_reserve_is_not_free_but_this_sites_may_become_so(
    reserved: Any, fits: bool
) -> None:
    rooms = {"h1": replace(ROOM, reserved=reserved)}
    assert (found(ON_ONE, rooms) == []) is fits
    assert found(replace(ON_ONE, reserved=False), rooms) == []


def test_a_host_of_another_cluster_is_refused() -> None:
    (each,) = found(replace(VM, host=ESX3))
    assert (each.what, each.at.field) == ("esx3 is not in the cluster farm", "host")
    assert each.next
    others = [replace(VM, host=ESX3), replace(VM, cpus=65)]
    assert len([*conflicts(others, INVENTORY, ROOMS, ())]) == len(others)


@pytest.mark.parametrize(
    ("state", "why"),
    [({"maintenance": True}, "is in maintenance mode"), ({"connected": False}, "is not connected")],
)
def test_hosts_that_take_none_for_now_are_a_warning_and_others_still_count(state: Any, why: str) -> None:
    lost = replace(ESX1, **state)
    (each,) = found(VM, hosts=(lost, replace(ESX2, **state)))
    assert (each.what, each.stops) == ("no host of farm takes a VM now", False)
    assert (each.at.field, each.why) == ("cluster", f"esx1 {why}; esx2 {why}")
    assert each.next
    (each,) = found(replace(VM, host=lost))
    assert each.at.field == "host"
    assert found(VM, {**ROOMS, "h2": replace(ROOM, cpus=4)}, hosts=(lost, ESX2)) != []
