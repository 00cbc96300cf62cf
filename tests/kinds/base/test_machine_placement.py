"""Where a VM is and where its site wants it: each place that differs is a change, and is moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bfinfra.backends.vcenter.places import Cluster, Datastore, Folder, Host, Inventory, Pool
from bfinfra.backends.vcenter.vm import Attached, Disk, Nic, Relocation, Vm
from bfinfra.kinds.vcenter.base.machine.placement import Moves, Place, moves
from bfinfra.kinds.vcenter.base.machine.steps import Move, Relocate
from bfinfra.model.compare import Unknown
from bfinfra.model.refs import Key

GIB = 1 << 30
MOST: dict[str, Any] = {"datacenter": "/dc"}
INVENTORY = Inventory(
    clusters=(
        Cluster(moid="c1", name="farm", pool="root-1", **MOST),
        Cluster(moid="c2", name="barn", pool="root-2", **MOST),
    ),
    hosts=tuple(
        Host(moid=moid, name=name, cluster=cluster, connected=True, maintenance=False, **MOST)
        for moid, name, cluster in (("h1", "esx1", "c1"), ("h2", "esx2", "c1"), ("h3", "esx3", "c2"))
    ),
    datastores=tuple(
        Datastore(moid=m, name=n, free=1, capacity=1, accessible=True, hosts=frozenset(), **MOST)
        for m, n in (("d1", "slow"), ("d2", "fast"), ("d3", "other"))
    ),
    folders=(
        Folder(moid="f1", name="vm", path="vm", **MOST),
        Folder(moid="f2", name="gpu", path="vm/gpu", **MOST),
    ),
    pools=(
        Pool(moid="root-1", name="Resources", owner="c1", root=True, **MOST),
        Pool(moid="p1", name="gpu", owner="c1", root=False, **MOST),
        Pool(moid="root-2", name="Resources", owner="c2", root=True, **MOST),
    ),
)
SAID = {
    "cluster": "farm",
    "host": "esx1",
    "folder": "",
    "resource_pool": None,
    "datastore": "slow",
    "disks.scsi0:1.datastore": "fast",
}
PLACE = Place(
    cluster="c1", host="h1", folder="f1", pool="root-1", datastore="d1", disks={"scsi0:1": "d2"}, said=SAID
)
FIRST, SECOND = (
    Disk(2000, "", GIB, "scsi0:0", "[slow] w1/w1.vmdk"),
    Disk(2001, "", GIB, "scsi0:1", "[fast] w1/w1_1.vmdk"),
)
HERE = Vm(
    moid="vm-1",
    name="w1",
    folder="f1",
    pool="root-1",
    datastores=frozenset({"d1", "d2", "d3"}),
    host="h1",
    on=True,
    connection="connected",
    instance_uuid="i",
    cpus=1,
    memory=GIB,
    reserved=False,
    firmware="efi",
    pci=(),
    nics=(),
    disks=(FIRST, SECOND),
    extra={},
    properties={},
    ip="",
    tools=True,
)


def found(place: Place = PLACE, **moved: Any) -> Moves:
    return moves("w1", place, replace(HERE, **moved), INVENTORY)


def at(disk: Disk, store: str) -> Disk:
    return replace(disk, file=f"[{store}] w1/w1.vmdk")


def test_a_machine_in_its_place_is_left_there() -> None:
    assert found() == Moves()


@pytest.mark.parametrize(
    ("moved", "field", "now", "step"),
    [
        ({"folder": "f2"}, "folder", "gpu", ("f1", "")),
        ({"folder": "f9"}, "folder", "out of sight", ("f1", "")),
        ({"pool": "p1"}, "resource_pool", "gpu", ("", "root-1")),
        ({"pool": "p9"}, "resource_pool", "out of sight", ("", "root-1")),
        ({"host": "h2"}, "host", "esx2", Relocation(host="h1")),
        ({"host": "h9"}, "host", "out of sight", Relocation(host="h1")),
        ({"host": "h2", "disks": ()}, "host", "esx2", Relocation(host="h1")),
        ({"disks": (), "datastores": frozenset({"d2"})}, "datastore", "fast", Relocation(datastore="d1")),
        (
            {"disks": (), "datastores": frozenset({"d9"})},
            "datastore",
            "out of sight",
            Relocation(datastore="d1"),
        ),
        (
            {"disks": (at(FIRST, "other"), SECOND)},
            "datastore",
            "other",
            Relocation(datastore="d1", disks={2001: "d2"}),
        ),
        (
            {"disks": (FIRST, at(SECOND, "other"))},
            "disks.scsi0:1.datastore",
            "other",
            Relocation(disks={2001: "d2"}),
        ),
    ],
)
def test_a_machine_that_somebody_moved_is_moved_back(moved: Any, field: str, now: str, step: Any) -> None:
    there = found(**moved)
    assert [(each.field, each.now, each.wanted) for each in there.changes] == [(field, now, SAID[field])]
    (only,) = there.steps
    assert (only.to if isinstance(only, Relocate) else (only.folder, only.pool)) == step
    assert not there.off


def test_a_machine_of_another_cluster_is_relocated_into_the_pool_and_onto_the_host() -> None:
    there = found(host="h3", pool="root-2", folder="f2")
    assert [each.field for each in there.changes] == ["cluster", "host", "folder"]
    relocated, moved = there.steps
    assert isinstance(relocated, Relocate)
    assert isinstance(moved, Move)
    assert (relocated.to, relocated.title()) == (
        Relocation(pool="root-1", host="h1"),
        "relocate VM w1 to farm, esx1",
    )
    assert (moved.folder, moved.pool) == ("f1", "")


def test_what_is_relocated_is_said_without_what_is_only_moved() -> None:
    relocated, moved = found(host="h2", pool="p1", folder="f2").steps
    assert relocated.title() == "relocate VM w1 to esx1"
    assert isinstance(moved, Move)
    assert (moved.folder, moved.pool) == ("f1", "root-1")


def test_a_disk_whose_datastore_is_not_known_is_not_spoken_of() -> None:
    strange = Disk(2002, "", GIB, "scsi0:2", "[nowhere] w1/w1_2.vmdk")
    (step,) = found(disks=(at(FIRST, "other"), strange)).steps
    assert isinstance(step, Relocate)
    assert step.to == Relocation(datastore="d1")


def test_vcenter_chooses_the_host_where_the_site_names_none() -> None:
    anywhere = replace(PLACE, host="")
    assert found(anywhere, host="h2") == Moves()
    (step,) = found(anywhere, host="h3", pool="root-2").steps
    assert isinstance(step, Relocate)
    assert step.to == Relocation(pool="root-1")
    (step,) = found(host="h1", pool="root-1", disks=(at(FIRST, "other"),)).steps
    assert isinstance(step, Relocate)
    assert step.to == Relocation(datastore="d1")


@pytest.mark.parametrize(("third", "stays"), [("slow", {2001: "d2"}), ("other", {2001: "d2", 2002: "d3"})])
def test_a_disk_that_the_site_does_not_list_goes_along_only_from_beside_the_first(
    third: str, stays: Any
) -> None:
    more = Disk(2002, "", GIB, "scsi0:2", f"[{third}] w1/w1_2.vmdk")
    assert found(disks=(FIRST, SECOND, more)) == Moves()
    moved = replace(PLACE, datastore="d2", disks={"scsi0:1": "d2"}, said={**SAID, "datastore": "fast"})
    (step,) = found(moved, disks=(FIRST, SECOND, more)).steps
    assert isinstance(step, Relocate)
    assert step.to == Relocation(
        datastore="d2", disks={key: each for key, each in stays.items() if each != "d2"}
    )


@pytest.mark.parametrize(
    "held",
    [
        {"pci": (Attached(13000, "vgpu", profile="grid_v100d-8q"),)},
        {"nics": (Nic(4000, "", "n1", "", grouped=True, rdma="rocev2"),)},
    ],
)
def test_only_a_machine_whose_devices_stay_with_its_host_has_to_be_off(held: Any) -> None:
    assert found(host="h2", **held).off
    assert not found(folder="f2", **held).off


def test_a_machine_whose_datastores_nobody_reports_is_left_where_it_is() -> None:
    assert found(disks=(), datastores=frozenset()) == Moves()


def test_a_machine_in_a_vapp_has_no_folder_and_no_pool_of_its_own() -> None:
    assert found(folder="", pool="") == Moves()


def test_a_pool_that_is_still_to_be_made_is_not_known_yet() -> None:
    pool = Unknown(Key("resource_pool", "gpu"), "pool")
    later = replace(PLACE, pool=pool, said={**SAID, "resource_pool": "gpu"})
    (moved,) = found(later).steps
    assert isinstance(moved, Move)
    assert moved.pool == pool
    (relocated,) = found(later, host="h3", pool="root-2").steps
    assert isinstance(relocated, Relocate)
    assert relocated.to == pool
