"""What the doctor, a plan and drift say of the hosts of a distributed switch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from kinds.checking import GOOD, WARNING
from kinds.hosts_seen import SETUP, VIBS, findings
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from kinds.unmanaged import Entry, Look, network, port_group_on, switch
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, paths

from bfinfra.backends.vcenter import switches
from bfinfra.backends.vcenter.inventory import Paths
from bfinfra.backends.vcenter.networks import Networks, Switch
from bfinfra.backends.vcenter.properties import Row
from bfinfra.kinds.vcenter.distributed_switch import kind
from bfinfra.kinds.vcenter.distributed_switch.checks import CHECKS, alike, software
from bfinfra.kinds.vcenter.distributed_switch.kind import DistributedSwitch
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Forbidden
from bfinfra.model.finding import Blocked
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

ON_SWITCH = SimpleNamespace(hosts={"a": (), "b": (), "c": ()})


@pytest.mark.parametrize(
    ("changes", "health", "words"),
    [
        ({}, GOOD, "its 3 hosts are alike: R740, build 13006603"),
        ({"build": "9"}, WARNING, "c has build 9, most have 13006603"),
        ({"model": "R640"}, WARNING, "c has model R640"),
        ({"firmware": "1"}, WARNING, "c has firmware 1, most have 2.19.1"),
        (
            {"cards": frozenset({"0000:5e:00.0 15b3:1015"})},
            WARNING,
            "c lacks 0000:3b:00.0 15b3:1015 and has 0000:5e:00.0 15b3:1015 besides",
        ),
    ],
)
def test_hosts_of_a_switch_are_alike(changes, health, words):
    ((found, text),) = findings(
        alike, {"a": SETUP, "b": SETUP, "c": replace(SETUP, **changes)}, distributed_switch=ON_SWITCH
    )
    assert found is health
    assert words in text


@pytest.mark.parametrize(
    ("third", "health", "words"),
    [
        (VIBS, GOOD, "its 3 hosts have the same 2 VIBs"),
        (frozenset({"esx-base 8.0.3"}), WARNING, "c: lacks nmlx5-core 4.23"),
        (
            VIBS - {"nmlx5-core 4.23"} | {"nmlx5-core 4.24"},
            WARNING,
            "c: lacks nmlx5-core 4.23 and has nmlx5-core 4.24 in addition",
        ),
        (VIBS | {f"extra{n} 1" for n in range(9)}, WARNING, "extra4 1 in addition (4 more)"),
    ],
)
def test_hosts_of_one_switch_have_the_same_vibs(third, health, words):
    ((found, text),) = findings(
        software,
        dict.fromkeys("abc", SETUP),
        {"a": VIBS, "b": VIBS, "c": third},
        distributed_switch=ON_SWITCH,
    )
    assert found is health
    assert words in text


def test_hosts_whose_vibs_nobody_may_see_are_skipped():
    with pytest.raises(Blocked, match=r"Host\.Config\.Image"):
        findings(software, dict.fromkeys("abc", SETUP), Forbidden("no"), distributed_switch=ON_SWITCH)
    assert findings(software, dict.fromkeys("abc", SETUP), {"a": VIBS}, distributed_switch=ON_SWITCH) == []


def test_a_site_without_hosts_asks_for_none():
    for check in CHECKS.values():
        assert findings(check, {}) == []


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    switch(sandbox, name)
    return network(sandbox, name)


UNMANAGED = Entry(
    at="roce",
    plant=unmanaged,
    inside=(lambda sandbox: port_group_on(sandbox, "theirs", "roce"), "port group theirs"),
)


CHANGED_FIELDS = [{"mtu": 1500}, {"uplinks": 2}, {"hosts": {"esx1.small.test": ["vmnic1"]}}]
SLOW_TO_CHANGE = True


def _disconnect(sandbox: Running, host: str) -> None:
    with administrator(sandbox) as si:
        (found,) = (each for each in paths(si).values() if each.name == host)
        WaitForTask(found.DisconnectHost_Task())


def test_a_host_that_is_disconnected_is_told_and_not_changed(sandbox: Running, tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(EXAMPLES["distributed_switch"].read_text())
    assert made(apply(path, sandbox))
    _disconnect(sandbox, "esx2.small.test")
    told = [str(each.problem) for each in drift(path, sandbox).warnings]
    assert any("its NICs of esx2.small.test are as vCenter last saw them" in each for each in told), told
    text = path.read_text().replace(", esx2.small.test: [vmnic1]", "")
    path.write_text(text.replace("mtu: 9000", "mtu: 8000"))
    (problem,) = plan(path, sandbox).problems
    assert "the NICs of esx2.small.test can't be changed" in str(problem)
    assert "esx2.small.test is disconnected" in str(problem)
    path.write_text(text.replace("[vmnic1]}", "[vmnic1], esx2.small.test: [vmnic1]}").replace("9000", "8000"))
    assert made(outcome := apply(path, sandbox)), endings(outcome)


SEEN = Networks(hosts={"a": "host-1", "b": "host-2"}, folders={"/dc": "group-n1"})
MARKED = Mark("s", "distributed_switch/roce")


def of_members(**fields: object) -> kind.State:
    given = {
        "moid": "dvs-1",
        "name": "roce",
        "uuid": "u",
        "folder": "group-n1",
        "description": "",
        "mtu": 1500,
        "version": "8.0.3",
        "uplinks": ("Uplink 1",),
        "hosts": {"host-1": ("vmnic1",), "host-2": ("vmnic1",), "host-9": ("vmnic1",)},
    }
    return kind._state(Switch(**{**given, **fields}), SEEN)


def test_a_host_out_of_sight_stays_on_the_switch_whatever_the_file_says_and_is_told() -> None:
    found, spec = of_members(), kind.Spec(hosts={"a": ("vmnic1",)})
    assert {*found.hosts} == {"a", "b"}
    marked = replace(found, mark=MARKED.committed(spec.applied()))
    (step,) = DistributedSwitch.steps("roce", spec, marked, PlanContext(MARKED, {}, facts=SEEN))
    assert step.plan.leaving == {"host-2"}
    key = Key("distributed_switch", "roce")
    (told,) = DistributedSwitch.conflicts({key: spec}, {key: found}, SEEN)
    assert (told.what, told.stops) == ("1 of its hosts can't be seen, and stay on it", False)
    assert "host-9" in told.why


def test_a_member_whose_host_vcenter_no_longer_has_is_told_and_no_host_of_the_switch() -> None:
    member = vim.dvs.HostMember(config=vim.dvs.HostMember.ConfigInfo(host=None))
    there = vim.dvs.HostMember(config=vim.dvs.HostMember.ConfigInfo(host=vim.HostSystem("host-1")))
    config = vim.DistributedVirtualSwitch.ConfigInfo(name="roce", host=[member, there])
    row = Row(vim.DistributedVirtualSwitch("dvs-1"), {"name": "roce", "uuid": "u", "config": config})
    read = switches._switch(row, Paths([row]))
    assert (read.hosts, read.gone) == ({"host-1": ()}, 1)
    key, state = Key("distributed_switch", "roce"), kind._state(read, SEEN)
    (told,) = DistributedSwitch.conflicts({key: kind.Spec()}, {key: state}, SEEN)
    assert told.what == "1 of its members are hosts that vCenter no longer has"
