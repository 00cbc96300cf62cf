"""Resource pools: what they take in."""

from __future__ import annotations

from typing import Any

import pytest
from moving import FARM, below, machine, root
from pyVmomi import vmodl


@pytest.fixture
def client(make_site: Any) -> Any:
    return make_site(**FARM).login()


@pytest.mark.parametrize("what", ["a machine", "a pool", "the pool above"])
def test_a_pool_takes_nothing_from_another_cluster_nor_what_is_above_it(client: Any, what: str) -> None:
    vm, near = machine(client), below(root(client, "farm"), "near")
    far, inner = below(root(client, "compute"), "far"), below(near, "inner")
    into, moved = {"a machine": (far, [vm]), "a pool": (near, [vm, far]), "the pool above": (inner, [near])}[
        what
    ]
    with pytest.raises(vmodl.fault.InvalidArgument):
        into.MoveInto(moved)
    assert (vm.resourcePool, far.parent, near.parent) == (
        root(client, "farm"),
        root(client, "compute"),
        root(client, "farm"),
    )
