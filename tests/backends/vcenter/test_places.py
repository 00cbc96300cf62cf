"""What a name or a path in a site leads to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyVmomi import vim

from bfinfra.backends.vcenter.inventory import Paths
from bfinfra.backends.vcenter.places import (
    Cluster,
    Folder,
    Found,
    Inventory,
    Network,
    Nowhere,
    Several,
    lookup,
    only,
)
from bfinfra.backends.vcenter.properties import Row


def cluster(moid: str, where: str) -> Cluster:
    _, datacenter, *_, name = where.split("/")
    return Cluster(moid=moid, name=name, datacenter=datacenter, where=where, pool="")


FARM, OTHER, PROD = (
    cluster("c1", "/DC0/host/farm"),
    cluster("c2", "/DC1/host/farm"),
    cluster("c3", "/DC1/host/prod/gpu"),
)
CLUSTERS = (FARM, OTHER, PROD)
NAMES = st.text("ab/ %2fü\n", min_size=1, max_size=4).filter(lambda name: name.strip("/"))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("gpu", Found(PROD)),
        ("prod/gpu", Found(PROD)),
        ("/DC1/host/prod/gpu", Found(PROD)),
        ("/DC0/host/farm", Found(FARM)),
        ("DC1/host/farm", Found(OTHER)),
        ("farm", Several(("/DC0/host/farm", "/DC1/host/farm"))),
        ("arm", Nowhere(("farm", "farm", "gpu"))),
        ("rod/gpu", Nowhere(("farm", "farm", "gpu"))),
        ("FARM", Nowhere(("farm", "farm", "gpu"))),
        ("", Nowhere(("farm", "farm", "gpu"))),
        ("/", Nowhere(("/DC0/host/farm", "/DC1/host/farm", "/DC1/host/prod/gpu"))),
    ],
)
def test_a_name_a_path_or_the_end_of_a_path_means_an_object(text: str, meant: object) -> None:
    assert Inventory(clusters=CLUSTERS).cluster(text) == meant


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=5, unique_by=tuple))
def test_the_whole_path_always_leads_to_the_object_or_to_several(places: list[list[str]]) -> None:
    """Names may hold slashes, so that two paths read alike: then neither is guessed."""
    things = [
        Cluster(moid=str(at), name=place[-1], where="/" + "/".join(place), pool="")
        for at, place in enumerate(places)
    ]
    for thing in things:
        found = lookup(things, thing.where)
        assert only(found) in (thing, None)
        if isinstance(found, Several):
            assert thing.where in found.paths


def test_a_port_group_is_found_by_its_switch() -> None:
    groups = tuple(
        Network(
            moid=switch,
            name="vlan-20",
            where="/DC0/network/vlan-20",
            distributed=True,
            hosts=frozenset(),
            switch=switch,
        )
        for switch in ("dvsA", "dvsB")
    )
    inventory = Inventory(networks=groups)
    assert inventory.network("dvsB/vlan-20") == Found(groups[1])
    assert inventory.network("vlan-20") == Several(("/DC0/network/dvsA/vlan-20", "/DC0/network/dvsB/vlan-20"))
    assert inventory.network("/DC0/network/dvsA/vlan-20") == Found(groups[0])


def test_a_folder_is_looked_for_below_the_root_for_machines_of_its_datacenter() -> None:
    folders = tuple(
        Folder(
            moid=f"{center}{path}",
            name=path.rpartition("/")[2],
            datacenter=center,
            where=f"/{center}/{path}",
            path=path,
        )
        for center in ("DC0", "DC1")
        for path in ("vm", "vm/gpu", "host/gpu", "vmx/gpu")
    )
    inventory = Inventory(folders=folders)
    assert only(inventory.folder("gpu", "DC1")) == folders[5]
    assert only(inventory.folder("", "DC0")) == folders[0]
    assert only(inventory.folder("/DC0/vm/gpu")) == folders[1]
    assert inventory.folder("gpu") == Several(("/DC0/vm/gpu", "/DC1/vm/gpu"))
    assert inventory.folder("cpu", "DC0") == Nowhere(("gpu",))


def row(sort: type, moid: str, name: str, parent: Row | None = None, **more: object) -> Row:
    return Row(sort(moid), {"name": name, "parent": parent and parent.ref, **more})


def test_the_root_folder_is_known_by_its_id_whatever_it_is_called_and_a_datacenter_may_stand_in_a_folder() -> (
    None
):
    above = row(vim.Folder, "group-1", "DC0")
    center = row(vim.Datacenter, "datacenter-1", "DC0", above, vmFolder=vim.Folder("group-2"))
    root = row(vim.Folder, "group-2", "Machines", center)
    inner = row(vim.Folder, "group-3", "a%2fb", root)
    paths = Paths([inner, root, center, above])
    assert paths.of(inner) == "/DC0/DC0/vm/a/b"
    assert (paths.below(root), paths.below(inner)) == ("vm", "vm/a/b")
    assert (paths.datacenter(inner), paths.datacenter(center), paths.datacenter(above)) == (
        "/DC0/DC0",
        "/DC0/DC0",
        "",
    )


def test_parents_in_a_circle_end() -> None:
    one = row(vim.Folder, "group-1", "a")
    two = row(vim.Folder, "group-2", "b", one)
    paths = Paths([Row(one.ref, {"name": "a", "parent": two.ref}), two])
    assert paths.of(two)
    assert paths.datacenter(two) == ""
