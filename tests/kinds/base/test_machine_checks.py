"""A VM that no host can take is refused before anything is stopped, with what each host lacks."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kinds.base.test_machine_placement import HERE, INVENTORY, MOST

from bfinfra.backends.vcenter.esxi import Card, Room
from bfinfra.backends.vcenter.places import Datastore, Network
from bfinfra.kinds.vcenter.base.machine.checks import Asked, Seen, conflicts, due
from bfinfra.kinds.vcenter.base.machine.state import MachineState
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.mark import Mark
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
    machine=replace(HERE, moid="vm-1"),
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
    return together([asked], rooms, hosts)


def together(
    asked: list[Asked], rooms: Any = ROOMS, hosts: Any = INVENTORY.hosts, states: Any = None
) -> list[Conflict]:
    return [*conflicts(Seen(tuple(asked), rooms), replace(INVENTORY, hosts=tuple(hosts)), {}, states or {})]


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
    if field == "memory":  # said of all of a host's together
        return
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
    large = replace(VM, memory=200 * GIB)
    one = {"h1": replace(ROOM, reserved={"vm-9": ("theirs", 100 * GIB)})}
    (each,) = found(large, one, hosts=(ESX1,))
    assert each.why == "esx1 has 256GiB of memory, of which other VMs reserve 100GiB"
    (each,) = found(replace(large, memory=300 * GIB), hosts=(ESX1,))
    assert each.why == "esx1 has 256GiB of memory"
    (each,) = found(replace(large, host=ESX1), one)
    assert each.what == "its 200GiB don't fit on esx1, which has 256GiB"
    assert each.why == "all of its memory is reserved; the VM theirs holds 100GiB"


def named(name: str, **changes: Any) -> Asked:
    return replace(
        ON_ONE,
        key=Key("virtual_machine", name),
        machine=replace(HERE, moid=f"vm-{name}", host="h9"),
        **changes,
    )


def test_the_memory_of_all_that_go_to_one_host_is_summed() -> None:
    two = [named("a", memory=128 * GIB), named("b", memory=120 * GIB)]
    assert together(two) == []
    (each,) = together([*two, named("c", memory=32 * GIB)])
    assert each.at == Spot(Key("virtual_machine", "a"), "memory")
    assert each.others == (
        Spot(Key("virtual_machine", "b"), "memory"),
        Spot(Key("virtual_machine", "c"), "memory"),
    )
    assert each.what == "its 128GiB don't fit on esx1, which has 256GiB"
    assert each.why == (
        "all of its memory is reserved; virtual_machine/b takes 120GiB; virtual_machine/c takes 32GiB"
    )
    assert each.stops
    assert together([*two, named("c", memory=32 * GIB, reserved=False)]) == []
    assert together([*two, named("c", memory=32 * GIB, host=ESX2)]) == []
    assert together([*two, named("c", memory=32 * GIB)], {"h1": replace(ROOM, memory=0)}) == []


def test_the_reservation_of_a_machine_that_stays_as_it_is_counts_whoever_made_it() -> None:
    own = {"h1": replace(ROOM, reserved={"vm-a": ("a", 200 * GIB), "vm-b": ("b", 60 * GIB)})}
    assert together([named("a", memory=190 * GIB)], own) == []
    (each,) = together([named("a", memory=200 * GIB)], own)
    assert each.why == "all of its memory is reserved; the VM b holds 60GiB"


def test_what_a_machine_that_leaves_the_file_reserves_becomes_free() -> None:
    own = {"h1": replace(ROOM, reserved={"vm-old": ("old", 200 * GIB)})}
    leaving = MachineState(machine=replace(HERE, moid="vm-old"))
    assert len(together([named("a", memory=190 * GIB)], own)) == 1
    assert (
        together([named("a", memory=190 * GIB)], own, states={Key("virtual_machine", "old"): leaving}) == []
    )


GREAT = Card(34 * GIB)
Q16 = ("grid_v100d-16q",)


def vgpus(*counts: int, profile: tuple[str, ...] = Q16, **changes: Any) -> list[Asked]:
    names = "abcdef"
    return [
        named(names[n], memory=GIB, profiles=profile * count, **changes) for n, count in enumerate(counts)
    ]


def cards(*those: Card, profiles: tuple[str, ...] = (*Q16, "grid_v100d-8q")) -> dict[str, Room]:
    return dict.fromkeys(ROOMS, replace(ROOM, profiles=profiles, cards=those))


def test_vgpus_of_all_that_go_to_one_host_are_counted_against_its_cards() -> None:
    both = cards(GREAT, GREAT)
    assert together(vgpus(2, 2), both) == []
    (each,) = together(vgpus(2, 3), both)
    assert each.at == Spot(Key("virtual_machine", "b"), "vgpus")
    assert each.others == (Spot(Key("virtual_machine", "a"), "vgpus"),)
    assert each.what == "5 vGPUs are asked of esx1, whose cards hold 4 grid_v100d-16q"
    assert each.why == "it has 2 cards for vGPUs; other VMs use 0"
    assert each.stops


def test_vgpus_of_several_profiles_share_the_cards() -> None:
    half = named("z", memory=GIB, profiles=("grid_v100d-8q",) * 4)
    assert together([*vgpus(2), half], cards(GREAT, GREAT)) == []
    (each,) = together([*vgpus(3), half], cards(GREAT, GREAT))
    assert each.what.endswith("whose cards hold 8 grid_v100d-8q, 4 grid_v100d-16q")


def test_a_card_that_others_use_is_a_warning_and_one_that_the_changed_use_is_free() -> None:
    used = cards(GREAT, Card(34 * GIB, frozenset({"vm-9"})))
    (each,) = together(vgpus(4), used)
    assert (each.what, each.stops) == (
        "4 vGPUs are asked of esx1, where cards that no other VM uses hold 2 grid_v100d-16q",
        False,
    )
    assert each.why == "it has 2 cards for vGPUs; other VMs use 1"
    assert together(vgpus(4), cards(GREAT, Card(34 * GIB, frozenset({"vm-a"})))) == []


@pytest.mark.parametrize(
    ("those", "profile"),
    [((), Q16), ((Card(0), GREAT), Q16), ((GREAT,), ("odd",))],
    ids=["no card is told", "a card without a size", "a profile without a size"],
)
def test_what_nobody_can_count_is_not_refused(those: tuple[Card, ...], profile: tuple[str, ...]) -> None:
    assert together(vgpus(9, profile=profile), cards(*those, profiles=profile)) == []
    assert together(vgpus(9, profile=profile, host=None), cards(*those, profiles=profile)) == []


def test_a_machine_that_may_go_to_any_host_needs_one_whose_cards_hold_its_vgpus() -> None:
    assert together(vgpus(2, 2, 2, host=None), cards(GREAT)) == []
    (each,) = together(vgpus(3, host=None), cards(GREAT))
    assert (each.what, each.at.field) == ("no host of farm can run it", "vgpus")
    assert each.why == "esx1 has cards for 2 grid_v100d-16q, esx2 has cards for 2 grid_v100d-16q"


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
    assert len(together(others)) == len(others)


@pytest.mark.parametrize(
    ("state", "why"),
    [({"maintenance": True}, "is in maintenance mode"), ({"connected": False}, "is not connected")],
)
def test_hosts_that_take_none_now_are_said_and_others_still_count(state: Any, why: str) -> None:
    lost, new = replace(ESX1, **state), replace(VM, machine=None)
    (each,) = found(new, hosts=(lost, replace(ESX2, **state)))
    assert (each.what, each.stops) == ("no host of farm takes a VM now", True)
    assert (each.at.field, each.why) == ("cluster", f"esx1 {why}; esx2 {why}")
    assert each.next
    (each,) = found(replace(new, host=lost))
    assert (each.what, each.at.field) == ("esx1 takes no VM now", "host")
    assert found(new, {**ROOMS, "h2": replace(ROOM, cpus=4)}, hosts=(lost, ESX2)) != []


def test_one_that_is_on_such_a_host_stays_there_and_one_that_goes_to_it_is_refused() -> None:
    lost = replace(ESX1, maintenance=True)
    assert found(replace(VM, machine=replace(HERE, host="h1"), host=lost)) == []
    assert len(found(replace(VM, machine=replace(HERE, host="h2"), host=lost))) == 1


def test_a_host_that_this_site_has_in_maintenance_mode_leaves_it_before() -> None:
    lost, new = replace(ESX1, maintenance=True), replace(VM, machine=None)
    own = {Key("gpu_host", "esx1"): SimpleNamespace(begun="a restart")}
    assert together([replace(new, host=lost)], states=own) == []
    assert len(together([replace(new, host=lost)])) == 1


APPLIED = Mark("s", "virtual_machine/w1", {"a": 1})
RUNS = replace(HERE, on=True, cpus=4, memory=8 * GIB, reserved=False)
SIZES: dict[str, Any] = {"cpus": 4, "memory": 8 * GIB, "reserved": False}


def is_due(
    state: MachineState | None, machine: Any = None, spec: Any = None, sizes: Any = None, **of: Any
) -> bool:
    wanted: Any = SimpleNamespace(applied=lambda: {"a": 1}, power="on", **(spec or {}))
    whole = state and replace(state, machine=replace(RUNS, **(machine or {})), **of)
    return due(wanted, whole, **{**SIZES, **(sizes or {})})


AS_APPLIED = MachineState(mark=APPLIED, machine=RUNS)


def test_one_that_is_as_the_file_says_asks_nothing_of_a_host() -> None:
    assert not is_due(AS_APPLIED)
    assert not is_due(AS_APPLIED, sizes={"memory": 0}), "not known"
    assert not is_due(AS_APPLIED, machine={"reserved": True}, sizes={"reserved": None}), "it doesn't matter"


def test_one_to_make_asks_of_a_host() -> None:
    assert is_due(None)
    assert is_due(AS_APPLIED, importing=True)


@pytest.mark.parametrize("sizes", [{"cpus": 8}, {"memory": GIB}, {"reserved": True}])
def test_one_of_other_sizes_asks_of_a_host_but_not_one_that_is_adopted(sizes: Any) -> None:
    assert is_due(AS_APPLIED, sizes=sizes)
    assert not is_due(AS_APPLIED, sizes=sizes, mark=None)
    assert not is_due(AS_APPLIED, sizes=sizes, mark=replace(APPLIED, adopting=True))


def test_one_of_which_the_file_says_something_else_asks_of_a_host() -> None:
    assert is_due(AS_APPLIED, mark=replace(APPLIED, applied={"a": 2}))
    assert is_due(AS_APPLIED, mark=replace(APPLIED, applied=None))


def test_one_that_is_off_and_is_to_run_asks_of_a_host() -> None:
    assert is_due(AS_APPLIED, machine={"on": False})
    off: Any = SimpleNamespace(applied=lambda: {"a": 1}, power="off")
    assert not due(off, replace(AS_APPLIED, machine=replace(RUNS, on=False)), **SIZES)
    always: Any = SimpleNamespace(applied=lambda: {"a": 1})
    assert due(always, replace(AS_APPLIED, machine=replace(RUNS, on=False)), **SIZES)


def test_a_host_can_be_full_to_the_last_byte() -> None:
    own = {"h1": replace(ROOM, reserved={"vm-b": ("b", 60 * GIB)})}
    assert together([named("a", memory=196 * GIB)], own) == []
    (each,) = together([named("a", memory=196 * GIB + 1)], own)
    assert each.next == "lower memory, or use another host"


def test_what_to_do_is_said_of_one_card_and_of_one_host() -> None:
    (each,) = together(vgpus(3), cards(GREAT))
    assert each.why == "it has 1 card for vGPUs; other VMs use 0"
    assert each.next == "ask for fewer, or take a smaller profile"
    lost, new = replace(ESX1, maintenance=True), replace(VM, machine=None)
    (each,) = found(replace(new, host=lost))
    assert each.next == "bring it back, or name another one"
    (each,) = found(new, hosts=(lost, replace(ESX2, maintenance=True)))
    assert each.next == "bring one back first"
