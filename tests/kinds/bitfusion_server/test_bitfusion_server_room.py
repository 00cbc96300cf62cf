"""Whether servers fit on their host, reported before anything is written; and that the one who answers is the
server.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kinds.lifecycle import EXAMPLES, QUICK, apply, made, run_context, world
from kinds.servers import GIB, HOST, INVENTORY, machine, spec, state

import bfinfra
from bfinfra.backends.vcenter.esxi import Card, Room
from bfinfra.backends.vcenter.places import Host as VHost
from bfinfra.kinds.vcenter.base.machine.checks import Seen
from bfinfra.kinds.vcenter.bitfusion_server.checks import asked
from bfinfra.kinds.vcenter.bitfusion_server.kind import BitfusionServer
from bfinfra.kinds.vcenter.bitfusion_server.state import BitfusionServerFacts
from bfinfra.kinds.vcenter.gpu_host.spec import Spec as HostSpec
from bfinfra.kinds.vcenter.gpu_host.state import read as read_host
from bfinfra.model.errors import BfinfraError
from bfinfra.model.readiness import Ready
from bfinfra.model.refs import Key

ESX = Key("gpu_host", "esx1")
WITH_HOST = replace(
    INVENTORY,
    hosts=(
        VHost(moid="host-1", name="esx1", datacenter="dc", cluster="c1", connected=True, maintenance=False),
    ),
)
OFFERS = Room(0, profiles=("grid_v100d-16q",), cards=(Card(32 * GIB),) * 2)


def server(name):
    return Key("bitfusion_server", name)


def problems(servers, room=None, states=None, **host):
    wanted = {
        ESX: HostSpec.model_validate({"passthrough": [{"vendor": "0x10de", "device": "0x1db6", "count": 2}]}),
        **{server(name): each for name, each in servers.items()},
    }
    seen = {ESX: read_host(replace(HOST, **host), "farm"), **(states or {})}
    found = Seen(tuple(asked(wanted, seen, WITH_HOST)), {"host-1": room} if room else {})
    return [
        f"{each.at.key}: {each.at.field}: {each.what}; {each.why}"
        for each in BitfusionServer.conflicts(wanted, seen, BitfusionServerFacts(WITH_HOST, seen=found))
    ]


def test_memory_of_a_hosts_servers_is_summed_with_what_other_vms_hold():
    room = Room(256 * GIB, {"vm-1": ("bf-01", 96 * GIB), "vm-9": ("theirs", 32 * GIB)})
    existing = {server("a"): state(machine())}
    assert problems({"a": spec(memory="128GiB"), "b": spec(memory="96GiB")}, room, existing) == []
    assert problems({"a": spec(memory="132GiB"), "b": spec(memory="96GiB")}, room, existing) == [
        (
            "bitfusion_server/a: memory: its 132GiB don't fit on esx1, which has 256GiB; "
            "all of its memory is reserved; bitfusion_server/b takes 96GiB; the VM "
            "theirs holds 32GiB"
        )
    ]


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"gpus": 2}, True),
        ({"gpus": 3}, False),
        ({"gpus": 1, "gpu_memory": "96GiB"}, False),
        ({"gpus": 0, "memory": "512GiB"}, True),
    ],
)
def test_the_default_of_memory_counts_and_a_server_without_gpus_reserves_none(fields, fits):
    assert (problems({"a": spec(**fields)}, Room(128 * GIB)) == []) is fits


def test_a_host_of_which_nobody_knows_the_memory_refuses_nothing():
    assert problems({"a": spec(memory="512GiB")}) == []
    assert problems({"a": spec(memory="512GiB")}, Room(0)) == []


def test_vgpus_are_counted_against_what_cards_hold():
    nine = {
        "a": spec(attach="vgpu", vgpu_profile="grid_v100d-16q", gpus=4),
        "b": spec(attach="vgpu", vgpu_profile="grid_v100d-16q", gpus=5),
    }
    assert problems(nine, OFFERS) == [
        (
            "bitfusion_server/b: gpus: 9 vGPUs are asked of esx1, whose cards hold 4 grid_v100d-16q; it has 2 cards "
            "for vGPUs; other VMs use 0"
        )
    ]
    assert problems({"a": nine["a"]}, OFFERS) == []


@pytest.mark.parametrize(
    ("fields", "ip", "says"),
    [
        ({}, "10.0.0.5", ""),
        ({}, "10.0.0.9", "VMware Tools report 10.0.0.9: whatever answers at 10.0.0.5 is another machine"),
        ({}, "fe80::1", ""),
        ({}, "", "VMware Tools report no address yet"),
        ({"networks": {"Network 1": {"network": "VM Network"}}}, "10.0.0.9", ""),
        (
            {"readiness": "port"},
            "10.0.0.9",
            "VMware Tools report 10.0.0.9: whatever answers at 10.0.0.5 is another machine",
        ),
    ],
)
def test_who_answers_for_a_server_must_be_it(fields, ip, says):
    class Listening:
        def connect(self, address, port, seconds):
            """Somebody always answers."""

    kind = object.__new__(BitfusionServer)
    kind._transport = Listening()
    found = kind.ready(spec(**fields), state(machine(ip=ip)))
    assert (found.status, found.why) == ((Ready.WAITING, says) if says else (Ready.READY, ""))


@pytest.mark.thorough
def test_a_running_server_is_not_shut_down_for_memory_that_its_host_does_not_have(sandbox, tmp_path: Path):
    path = EXAMPLES["bitfusion_server"]
    assert made(apply(path, sandbox))
    before, larger = world(sandbox), tmp_path / "site.yaml"
    larger.write_text(path.read_text().replace("    gpus: 1\n", "    gpus: 1\n    memory: 256GiB\n"))
    site = bfinfra.load(larger, sandbox=sandbox)
    [problem] = bfinfra.plan(site, context=run_context(sandbox)).problems
    assert str(problem).startswith(
        f"{larger}:16:13: bitfusion_server/bf-01: its 256GiB don't fit on esx1.small.test, which has 128GiB"
    )
    with pytest.raises(BfinfraError, match="don't fit"):
        bfinfra.apply(site, context=bfinfra.RunContext(sandbox=sandbox, retry=QUICK))
    assert world(sandbox) == before
