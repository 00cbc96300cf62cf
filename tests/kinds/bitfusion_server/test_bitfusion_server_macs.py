"""MAC addresses of a server's adapters: as they are compared, and on the sandbox."""

from __future__ import annotations

import json

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from kinds.servers import MARK, MARK_KEY, machine, spec, state, steps, titles
from pyVmomi import vim
from rights.given import administrator

from bfinfra.backends.vcenter.vm import Nic, Origin
from bfinfra.kinds.vcenter.base.machine.places import MachinePlaces
from bfinfra.kinds.vcenter.bitfusion_server.describe import description

FIRST, SECOND, THIRD = (f"00:50:56:00:00:0{n}" for n in "abc")
ADDRESS = {"address": "10.0.0.5/24", "gateway": "10.0.0.1"}
LABELS = ("Network 1", "storage", "more")


def adapters(*wanted):
    return spec(
        networks={
            label: {"network": network, **({"mac": mac} if mac else {}), **at}
            for label, at, (network, mac) in zip(LABELS, (ADDRESS, {}, {}), wanted, strict=False)
        }
    )


def applied(wanted, *given):
    nics = tuple(
        Nic(4000 + n, f"nic {n}", {"VM Network": "network-1", "Storage": "network-2"}[network], mac)
        for n, (network, mac) in enumerate(given)
    )
    mark = MARK.committed(wanted.applied()).encode()
    return state(machine(nics=nics, extra={**machine().extra, MARK_KEY: mark}))


ONE, OTHER = "VM Network", "Storage"


@pytest.mark.parametrize(
    ("wanted", "there", "hardware", "fields"),
    [
        ([(ONE, FIRST)], [(ONE, FIRST.upper())], {}, set()),
        ([(ONE, None)], [(ONE, FIRST)], {}, set()),
        ([(ONE, FIRST)], [(ONE, SECOND)], {"macs": {4000: FIRST}}, {"networks.Network 1.mac"}),
        (
            [(OTHER, FIRST)],
            [(ONE, SECOND)],
            {"macs": {4000: FIRST}, "nics": {4000: "network-2"}},
            {"networks.Network 1.mac", "networks.Network 1.network"},
        ),
        (
            [(ONE, FIRST), (OTHER, SECOND)],
            [(ONE, SECOND), (OTHER, FIRST)],
            {"macs": {4000: FIRST, 4001: SECOND}},
            {"networks.Network 1.mac", "networks.storage.mac"},
        ),
        ([(ONE, SECOND), (ONE, None)], [(ONE, FIRST), (ONE, SECOND)], {}, set()),
        ([(ONE, SECOND)], [(ONE, FIRST), (ONE, SECOND)], {"drop": (4000,)}, {"networks.nic 0"}),
        (
            [(ONE, FIRST), (OTHER, SECOND)],
            [(OTHER, SECOND)],
            {"add_nics": ("network-1",), "add_macs": (FIRST,)},
            {"networks.Network 1"},
        ),
    ],
)
def test_adapters_are_matched_by_their_macs_first(wanted, there, hardware, fields):
    site = adapters(*wanted)
    found = steps(site, applied(site, *there))
    assert {change.field for step in found for change in step.changes} == fields
    assert titles(found) == (["Stop", "Write", "Start"] if hardware else [])
    for given in (step.hardware for step in found[1:2]):
        names = ("nics", "macs", "add_nics", "add_macs", "drop")
        assert {name: value for name in names if (value := getattr(given, name))} == hardware


def test_a_description_has_the_macs_that_were_assigned_by_hand():
    nics = (
        Nic(4000, "Network 1", "network-1", FIRST.upper(), manual=True),
        Nic(4001, "two", "network-2", SECOND),
    )
    places = MachinePlaces("esx1", "farm", "local", "", "", (ONE, OTHER))
    fields = description(state(machine(nics=nics)), Origin("vm-1", "bf-01"), places).fields
    assert [each.get("mac") for each in fields["networks"].values()] == [FIRST, None]


@pytest.mark.thorough
@pytest.mark.parametrize("library", [False, True])
def test_a_server_has_its_macs_from_its_import_on(library, sandbox, tmp_path):
    site = yaml.load(EXAMPLES["bitfusion_server"].read_text(), yaml.BaseLoader)
    server = site["bitfusion_server"]["bf-01"]
    if library:
        server["library"] = {"name": "appliances", "datastore": "local"}
    server["networks"]["Network 1"]["mac"] = FIRST.upper()
    server["networks"]["more"] = {"network": "VM Network", "mac": SECOND}
    path = tmp_path / "site.yaml"

    def done() -> list[str]:
        path.write_text(json.dumps(site))
        outcome = apply(path, sandbox)
        assert made(outcome), endings(outcome)
        assert plan(path, sandbox).pending == ()
        with administrator(sandbox) as si:
            vm = si.content.searchIndex.FindByInventoryPath("/dc/vm/bf-01")
            assert vm.runtime.powerState == "poweredOn"
            cards = vim.vm.device.VirtualEthernetCard
            return [each.macAddress for each in vm.config.hardware.device if isinstance(each, cards)]

    assert done() == [FIRST, SECOND]
    server["networks"]["Network 1"]["mac"] = THIRD
    assert done() == [THIRD, SECOND]
    del server["networks"]["Network 1"]["mac"]
    assert done() == [THIRD, SECOND]
