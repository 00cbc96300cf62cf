"""Whether disks fit on their datastores, reported before anything is written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kinds import servers
from kinds.lifecycle import EXAMPLES, run_context, world
from kinds.servers import GIB
from kinds.virtual_machine import test_virtual_machine

import bfinfra
from bfinfra.backends.vcenter.places import Found
from bfinfra.backends.vcenter.vm import Disk
from bfinfra.kinds.vcenter.bitfusion_server.kind import BitfusionServer
from bfinfra.kinds.vcenter.bitfusion_server.state import BitfusionServerFacts
from bfinfra.kinds.vcenter.gpu_host.state import read as read_host
from bfinfra.kinds.vcenter.virtual_machine.kind import VirtualMachine
from bfinfra.kinds.vcenter.virtual_machine.state import VirtualMachineFacts
from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key

TIB = 1 << 40
ESX = Key("gpu_host", "esx1")


def holding(free=TIB, capacity=TIB):
    return replace(
        servers.INVENTORY,
        datastores=(replace(servers.INVENTORY.datastores[0], free=free, capacity=capacity),),
    )


def short(found):
    return [(str(each.at.key), each.at.field, each.what, each.stops) for each in found]


def of_servers(specs, states=None, **store):
    keys = {Key("bitfusion_server", name): each for name, each in specs.items()}
    seen = {
        ESX: read_host(servers.HOST, "farm"),
        **{Key("bitfusion_server", name): each for name, each in (states or {}).items()},
    }
    facts = BitfusionServerFacts(
        holding(**store), {each.ova.text: servers.package() for each in specs.values()}
    )
    return short(BitfusionServer.conflicts({ESX: None, **keys}, seen, facts))


def of_machines(specs, states=None, template=(), **store):
    keys = {Key("virtual_machine", name): each for name, each in specs.items()}
    facts = VirtualMachineFacts(
        holding(**store), {"centos-7.6": Found(replace(test_virtual_machine.TEMPLATE, disks=template))}
    )
    return short(
        VirtualMachine.conflicts(
            keys, {Key("virtual_machine", name): each for name, each in (states or {}).items()}, facts
        )
    )


def test_a_disk_that_is_larger_than_its_datastore_is_refused():
    assert of_servers({"a": servers.spec(disk="2TiB")}) == [
        ("bitfusion_server/a", "disk", "a disk of 2TiB does not fit on local, which has 1TiB", True)
    ]
    assert of_servers({"a": servers.spec()}, capacity=40 * GIB) == [
        ("bitfusion_server/a", "ova", "a disk of 50GiB does not fit on local, which has 40GiB", True)
    ]
    disks = {"scsi0:1": {"size": "2TiB"}}
    assert of_machines({"a": test_virtual_machine.spec(disks=disks)}) == [
        (
            "virtual_machine/a",
            "disks.scsi0:1.size",
            "a disk of 2TiB does not fit on local, which has 1TiB",
            True,
        )
    ]


@pytest.mark.parametrize(("provisioning", "stops"), [("thin", False), ("thick", True)])
def test_disks_larger_than_the_free_space_are_reported_and_refused_where_they_are_thick(provisioning, stops):
    two = {name: servers.spec(disk_provisioning=provisioning, datastore="local") for name in ("a", "b")}
    assert of_servers(two, free=100 * GIB) == []
    assert of_servers(two, free=99 * GIB) == [
        ("bitfusion_server/a", "datastore", "disks need 100GiB of local, where 99GiB are free", stops)
    ]


def test_what_a_template_brings_and_what_a_machine_has_already_counts():
    first = Disk(2000, "Hard disk 1", 40 * GIB, "scsi0:0", "[local] centos/centos.vmdk", thin=True)
    wanted = test_virtual_machine.spec(disk=60 * GIB, disks={"scsi0:1": {"size": "10GiB", "thin": False}})
    assert of_machines({"a": wanted}, template=(first,), free=69 * GIB) == [
        ("virtual_machine/a", "disk", "disks need 70GiB of local, where 69GiB are free", False)
    ]
    there = {"a": test_virtual_machine.existing(wanted, disks=(first,))}
    assert of_machines({"a": wanted}, there, free=30 * GIB) == []
    assert of_machines({"a": wanted}, there, free=29 * GIB) == [
        ("virtual_machine/a", "disk", "disks need 30GiB of local, where 29GiB are free", False)
    ]
    assert of_machines({"a": wanted}, there, free=9 * GIB) == [
        ("virtual_machine/a", "disk", "disks need 30GiB of local, where 9GiB are free", True)
    ]
    gone = {**there, "b": test_virtual_machine.existing(wanted, disks=(first,))}
    assert of_machines({"a": wanted}, gone, free=9 * GIB)[0][3] is False


def test_an_up_to_date_machine_needs_no_more_space():
    full = servers.machine(disks=(Disk(2000, "Hard disk 1", 50 * GIB, "scsi0:0", "[local] bf/bf.vmdk"),))
    assert of_servers({"a": servers.spec()}, {"a": servers.state(full)}, free=0) == []


def test_nothing_is_made_before_a_disk_that_can_not_fit_is_refused(sandbox, tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(EXAMPLES["virtual_machine"].read_text().replace("size: 40GiB", "size: 2TiB"))
    before, site = world(sandbox), bfinfra.load(path, sandbox=sandbox)
    [problem] = bfinfra.plan(site, context=run_context(sandbox)).problems
    assert str(problem).startswith(
        f"{path}:16:29: virtual_machine/sckubw01: a disk of 2TiB does not fit on local, which has 1TiB"
    )
    with pytest.raises(BfinfraError, match="does not fit"):
        bfinfra.apply(site, context=run_context(sandbox))
    assert world(sandbox) == before
