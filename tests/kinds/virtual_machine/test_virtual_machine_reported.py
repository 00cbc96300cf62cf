"""The addresses of Linux machines, and what VMware Tools report of the VMs that they are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan

from bfinfra.kinds.vcenter.virtual_machine import reported
from bfinfra.model.conflict import Spot
from bfinfra.model.refs import Key

HOST = Key("linux_host", "node")


def host(address, vm="w1"):
    return {HOST: SimpleNamespace(address=address, vm=vm), Key("virtual_machine", "w1"): SimpleNamespace()}


@pytest.mark.parametrize(
    ("address", "there", "warned"),
    [
        ("10.0.0.5", {"10.0.0.5", "fe80::1"}, False),
        ("10.0.0.5", {"10.0.0.6", "fe80::1"}, True),
        ("fd00::0:5", {"10.0.0.6", "fd00::5"}, False),
        ("10.0.0.5", set(), False),
        ("node.example.com", {"10.0.0.6"}, False),
    ],
)
def test_an_address_that_its_vm_does_not_have_is_warned_of(address, there, warned):
    found = [*reported.conflicts(host(address), {"w1": frozenset(there)})]
    assert [(each.at, each.stops) for each in found] == ([(Spot(HOST, "address"), False)] if warned else [])
    assert [*reported.conflicts(host(address), {})] == []
    assert [*reported.conflicts(host(address, vm=None), {"w1": frozenset(there)})] == []


@pytest.mark.parametrize(
    ("on", "tools", "address", "vm"),
    [
        (True, True, "10.0.0.5", "w1"),
        (False, False, "10.0.0.5", "w1"),
        (True, False, "10.0.0.5", "w1"),
        (True, True, "node.example.com", "w1"),
        (True, True, "10.0.0.5", None),
    ],
)
def test_only_guests_that_can_answer_and_that_a_linux_machine_is_are_asked(on, tools, address, vm):
    states = {
        name: SimpleNamespace(machine=SimpleNamespace(moid=f"vm-{name}", on=on, tools=tools))
        for name in ("w1", "w2")
    }
    expected = {"w1": "vm-w1"} if (on, tools, address, vm) == (True, True, "10.0.0.5", "w1") else {}
    assert reported.asked(host(address, vm), states) == expected


def test_a_plan_warns_at_the_address_of_the_linux_machine(sandbox, tmp_path):
    site = yaml.safe_load(EXAMPLES["virtual_machine"].read_text())
    machine = site["virtual_machine"]["sckubw01"]
    machine["extra"] = {"guestinfo.ipaddress": "10.0.0.6/24"}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    (tmp_path / "known_hosts").write_text("")
    node = {
        "vm": "sckubw01",
        "password": {"env": "VCENTER_PASSWORD"},
        "trust": {"known_hosts": "known_hosts"},
    }
    warned = {}
    for address in ("10.0.0.5", "10.0.0.6"):
        site["linux_host"] = {"node": {**node, "address": address}}
        path.write_text(yaml.safe_dump(site))
        found = plan(path, sandbox).warnings
        warned[address] = [(each.problem.what, each.problem.why.partition(";")[0]) for each in found]
    assert warned == {
        "10.0.0.5": [
            (
                "linux_host/node: the VM sckubw01 doesn't have the address 10.0.0.5",
                "its VMware Tools report 10.0.0.6",
            )
        ],
        "10.0.0.6": [],
    }
