"""What the doctor says of the hosts of virtual machines."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from kinds.checking import BAD, GOOD, WARNING
from kinds.hosts_seen import SETUP, findings

from bfinfra.kinds.vcenter.virtual_machine.checks import CHECKS, graphics

ON_HOST = SimpleNamespace(host="a", vgpus=("grid_t4-16c",))


@pytest.mark.parametrize(
    ("changes", "health", "words"),
    [
        ({}, GOOD, "keeps its time by ntp.example.com"),
        ({"ntp": ()}, WARNING, "no time servers"),
        ({"ntp_runs": False}, WARNING, "its NTP service does not run"),
    ],
)
def test_hosts_keep_their_time(changes, health, words):
    ((found, text),) = findings(
        CHECKS["hosts.clocks"], {"a": replace(SETUP, **changes)}, virtual_machine=ON_HOST
    )
    assert found is health
    assert words in text


@pytest.mark.parametrize(("type_", "health"), [("sharedDirect", GOOD), ("shared", BAD), ("", BAD)])
def test_hosts_of_machines_with_vgpus_share_their_cards_directly(type_, health):
    ((found, _),) = findings(graphics, {"a": replace(SETUP, graphics=type_)}, virtual_machine=ON_HOST)
    assert found is health


def test_a_site_without_hosts_asks_for_none():
    for check in CHECKS.values():
        assert findings(check, {}) == []
