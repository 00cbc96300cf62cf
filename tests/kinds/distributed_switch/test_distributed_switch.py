"""What the doctor says of the hosts of a distributed switch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from kinds.checking import GOOD, WARNING
from kinds.hosts_seen import SETUP, VIBS, findings
from kinds.unmanaged import Entry, Look, network, port_group_on, switch

from bfinfra.kinds.vcenter.distributed_switch.checks import CHECKS, alike, software
from bfinfra.model.errors import Forbidden
from bfinfra.model.finding import Blocked
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
