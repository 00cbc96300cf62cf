"""A server on a port group that the same site makes, on the sandbox."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, KILLED, apply, difference, endings, kill_at, made, plan, world
from kinds.servers import context, spec, steps

import bfinfra
from bfinfra.app import privileges
from bfinfra.model.compare import Unknown
from bfinfra.model.context import ResolvedRef
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

pytestmark = pytest.mark.thorough

MANAGEMENT = {"network": "management", "address": "10.2.0.5/24", "gateway": "10.2.0.1"}


@pytest.fixture
def site(tmp_path):
    """The example's server, on a port group of its own."""
    given = yaml.load(EXAMPLES["bitfusion_server"].read_text(), yaml.BaseLoader)
    given |= {
        "distributed_switch": {"d": {"hosts": {"esx1.small.test": ["vmnic1"]}}},
        "port_group": {"management": {"switch": "d", "vlan": "31"}},
    }
    given["bitfusion_server"]["bf-01"]["networks"]["Network 1"] = MANAGEMENT
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    return tmp_path / "site.yaml"


def test_it_is_made_after_its_port_group_and_goes_before_it_in_one_run_each(site, sandbox):
    before, planned = world(sandbox), plan(site, sandbox)
    assert planned.problems == ()
    outcome = apply(site, sandbox)
    assert made(outcome), endings(outcome)
    assert set(endings(apply(site, sandbox)).values()) == {"kept"}
    gone = apply(site, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before, difference(world(sandbox), before)


def test_an_existing_server_moves_to_a_new_port_group_and_back(site, sandbox):
    old = EXAMPLES["bitfusion_server"]
    assert made(apply(old, sandbox))
    (moving,) = [item for item in plan(site, sandbox).pending if item.key.kind == "bitfusion_server"]
    assert [(change.field, change.now, change.wanted) for change in moving.changes] == [
        ("networks.Network 1.network", "VM Network", "management")
    ]
    outcome = apply(site, sandbox)
    assert made(outcome), endings(outcome)
    back = apply(old, sandbox)
    assert made(back), endings(back)
    assert set(endings(apply(old, sandbox)).values()) == {"kept"}


@pytest.mark.parametrize("nth", [1, 2])
def test_a_destroy_that_was_killed_goes_on_in_the_same_order(nth, site, sandbox, tmp_path):
    before = world(sandbox)
    assert made(apply(site, sandbox))
    assert kill_at(site, sandbox, nth, "after", tmp_path / "state", destroy=True) == KILLED
    gone = apply(site, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before, difference(world(sandbox), before)


def test_rights_are_wanted_on_all_networks_as_nobody_has_any_on_one_that_is_not_there(site, sandbox):
    entities = privileges.privileges(bfinfra.load(site, sandbox=sandbox)).entities
    assert [
        (entity.path, entity.propagate)
        for entity, privileges in entities.items()
        if "Network.Assign" in privileges
    ] == [("/*", True)]


def test_in_a_plan_the_network_comes_later():
    wanted, how = spec(networks={"Network 1": MANAGEMENT}), context()
    need = ResolvedRef(Key("port_group", "management"), SimpleNamespace(), None)
    how = type(how)(
        Mark("site", "bitfusion_server/bf-01"),
        {**how.needs, "networks.Network 1.network": need},
        {},
        how.facts,
    )
    assert steps(wanted, None, how)[0].target.adapters[0].network == Unknown(need.key, "group")
