from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from kinds.of_several import of_several
from kinds.servers import (
    CARDS,
    GIB,
    HOST,
    MARK,
    MARK_KEY,
    PW,
    context,
    machine,
    package,
    spec,
    state,
    steps,
    titles,
)
from kinds.unmanaged import Entry, Look, somebodys_machine
from pydantic import ValidationError

from bfinfra.backends.survey_cache import KnownObjects
from bfinfra.backends.vcenter.places import Folder
from bfinfra.backends.vcenter.vm import Attached, Disk
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty
from bfinfra.kinds.vcenter.base.machine.state import identity
from bfinfra.kinds.vcenter.base.machine.steps import Start
from bfinfra.kinds.vcenter.bitfusion_server import gpus as sizing
from bfinfra.kinds.vcenter.bitfusion_server.appliance import Runs
from bfinfra.kinds.vcenter.bitfusion_server.state import MMIO, MMIO_SIZE
from bfinfra.model.compare import Change
from bfinfra.model.errors import Conflict, Missing, Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.secret import Secret
from bfinfra.model.siblings import Siblings
from bfinfra.model.site import Site
from bfinfra.model.step import Disruption
from bfinfra.sandbox import Running


def refused(**how) -> Refusal:
    facts = how.pop("facts", {})
    with pytest.raises(Refusal) as raised:
        steps(spec(**how), None, context(**facts))
    return raised.value


@pytest.mark.parametrize(("gpus", "cpus"), [(0, 4), (1, 4), (2, 8), (4, 16)])
def test_cpus_are_four_for_each_gpu_and_at_least_four(gpus, cpus):
    assert sizing.cpus_for(gpus) == cpus


@pytest.mark.parametrize(
    ("sizes", "window"),
    [((24, 24), 128), ((16,), 32), ((32, 32), 128), ((32,), 64), ((80,), 256), ((40, 40, 40), 256)],
)
def test_the_mmio_window_is_twice_the_next_power_of_two(sizes, window):
    assert sizing.mmio_for(sum(sizes) * GIB) == window * GIB


def test_memory_is_one_and_a_half_times_the_gpus():
    assert sizing.memory_for(64 * GIB) == 96 * GIB


@of_several("bitfusion_server.gpus")
def test_an_absent_server_is_deployed_powered_on_and_committed():
    deploy, *rest = steps(spec(), None)
    assert [type(s).__name__ for s in (deploy, *rest)] == ["Deploy", "Start", "Note"]
    target = deploy.target
    assert (target.cpus, target.memory, target.extra[MMIO_SIZE]) == (8, 96 * GIB, "128")
    assert [a.address for a in target.attach] == list(CARDS)
    assert [(a.ovf, a.network) for a in target.adapters] == [("Network 1", "network-1")]
    assert target.properties["network.ip_cidr.1"] == "10.0.0.5/24"
    assert target.properties["network.gateway.1"] == "10.0.0.1"


def test_steps_contain_secrets_as_references_only():
    deploy = steps(spec(), None)[0]
    assert isinstance(deploy.target.properties["password"], Secret)
    assert PW not in repr(deploy)


def test_what_agrees_needs_nothing():
    assert steps(spec(), state()) == []


def test_a_half_imported_server_is_discarded_and_made_anew_with_the_same_cards():
    found = steps(spec(), state(importing=True))
    assert [type(s).__name__ for s in found] == ["Discard", "Deploy", "Start", "Note"]
    assert max(list(Disruption).index(s.disruption) for s in found) == 0
    assert len(found[1].target.attach) == 2


def test_a_half_imported_server_goes_once_its_import_is_over():
    assert [(type(s).__name__, s.importing) for s in steps(None, state(importing=True))] == [("Delete", True)]


@of_several("bitfusion_server.cpus")
def test_new_hardware_is_one_reconfiguration_and_a_power_cycle():
    found = steps(spec(cpus=12, memory="128GiB"), state())
    assert [type(s).__name__ for s in found] == ["Stop", "Write", "Start", "Note"]
    assert found[0].disruption is Disruption.POWER_CYCLE
    assert (found[1].hardware.cpus, found[1].hardware.memory) == (12, 128 * GIB)
    assert {"cpus", "memory"} <= {c.field for c in found[0].changes}


def test_another_network_needs_no_power_cycle():
    wanted = spec(
        networks={"Network 1": {"network": "Storage", "address": "10.0.0.5/24", "gateway": "10.0.0.1"}}
    )
    assert titles(steps(wanted, state())) == ["Write", "Note"]


def test_one_adapter_more_does():
    networks = {
        "Network 1": {"network": "VM Network", "address": "10.0.0.5/24", "gateway": "10.0.0.1"},
        "storage": {"network": "Storage"},
    }
    found = steps(spec(networks=networks), state())
    assert titles(found) == ["Stop", "Write", "Start", "Note"]
    assert found[1].hardware.add_nics == ("network-2",)


def test_a_server_that_was_switched_off_is_drift():
    found = steps(spec(), state(machine(on=False)))
    assert titles(found) == ["Start"]
    assert [c.field for c in found[0].changes] == ["power"]


def test_a_changed_secret_is_written_again_without_its_value_in_the_plan():
    found = steps(spec(), state(), context(secrets={("bf-01", "password"): SecretProperty(stale=True)}))
    assert titles(found) == ["Stop", "Write", "Start"]
    assert [c.field for c in found[0].changes] == ["properties.password"]
    assert PW not in repr(found)


def test_a_new_appliance_replaces_the_server_and_keeps_its_cards():
    found = steps(spec(), state(), context(ova=package(version="4.0")))
    assert titles(found) == ["Replace", "Deploy", "Start", "Note"]
    assert found[0].disruption is Disruption.REPLACE
    assert len(found[1].target.attach) == 2


@pytest.mark.parametrize(
    ("extra", "window"),
    [
        ({MMIO: "FALSE", MMIO_SIZE: "128"}, "off"),
        ({MMIO_SIZE: "128"}, "off"),
        ({MMIO: "TRUE", MMIO_SIZE: "64"}, "64GiB"),
        ({MMIO: "TRUE"}, "on, without a size"),
    ],
)
def test_drift_of_the_mmio_window_says_what_differs(extra, window):
    kept = {key: value for key, value in machine().extra.items() if key not in (MMIO, MMIO_SIZE)}
    found = steps(spec(), state(machine(extra=kept | extra)))
    assert found[0].changes == (Change("mmio", window, "128GiB"),)
    assert {MMIO: "TRUE", MMIO_SIZE: "128"}.items() >= found[1].hardware.extra.items() > {}.items()


def test_a_switch_in_other_letters_is_the_same_switch():
    assert steps(spec(), state(machine(extra={**machine().extra, MMIO: "true"}))) == []


def test_what_only_the_spec_has_is_a_new_commit_that_names_its_field():
    found = steps(spec(readiness="port"), state())
    assert titles(found) == ["Note"]
    assert [c.field for c in found[0].changes] == ["readiness"]


def test_deleting_is_one_destructive_step():
    found = steps(None, state())
    assert titles(found) == ["Delete"]
    assert found[0].destructive


def test_each_card_goes_to_one_server():
    first, second = spec(gpus=1), spec(gpus=1)
    one = steps(first, None, context(siblings={"bf-02": (second, None)}))[0].target.attach
    two = steps(second, None, context("bf-02", siblings={"bf-01": (first, None)}), name="bf-02")[
        0
    ].target.attach
    assert {a.address for a in (*one, *two)} == set(CARDS)


def test_cards_are_shared_out_once_for_all_but_who_is_judged_by_another_spec_than_its_peers_know():
    wanted, others = spec(gpus=1), spec(gpus=1)
    siblings = Siblings({"bf-01": (wanted, None), "bf-02": (others, None)})
    here = context()
    known = {
        name: replace(here, mark=Mark("site", f"bitfusion_server/{name}"), siblings=siblings.but(name))
        for name in ("bf-01", "bf-02")
    }
    cards = [
        steps(each, None, known[name], name=name)[0].target.attach
        for name, each in (("bf-01", wanted), ("bf-02", others))
    ]
    assert {a.address for found in cards for a in found} == set(CARDS)
    with pytest.raises(Refusal, match="bf-01 takes 1"):
        steps(spec(gpus=2), None, known["bf-02"], name="bf-02")
    assert steps(spec(gpus=0), None, known["bf-01"])[0].target.attach == ()


def test_an_existing_server_keeps_its_card_whatever_its_name():
    pci = (Attached(1, "static", CARDS[0]),)
    existing = state(machine(pci=pci, name="zz"), name="zz")
    found = steps(spec(gpus=1), None, context(siblings={"zz": (spec(gpus=1), existing)}))
    assert [a.address for a in found[0].target.attach] == [CARDS[1]]


def test_too_many_gpus_name_the_field_and_who_has_them():
    error = refused(
        gpus=2,
        facts={
            "siblings": {
                "bf-00": (spec(gpus=1), state(machine(pci=(Attached(1, "static", CARDS[0]),)), name="bf-00"))
            }
        },
    )
    assert error.field == "gpus"
    assert "bf-00 takes 1" in str(error)


def test_dynamic_devices_name_the_make_instead_of_an_address():
    attach = steps(spec(attach="dynamic"), None)[0].target.attach
    assert [(a.vendor, a.device, a.address) for a in attach] == [(0x10DE, 0x1DB6, "")] * 2


def test_a_vgpu_is_a_share_by_a_profile_that_the_host_offers():
    found = steps(spec(attach="vgpu", vgpu_profile="grid_v100d-8q"), None)[0].target
    assert [a.profile for a in found.attach] == ["grid_v100d-8q"] * 2
    assert (found.memory, found.extra[MMIO_SIZE]) == (24 * GIB, "32")
    assert refused(attach="vgpu", vgpu_profile="grid_v100d-9q").field == "vgpu_profile"


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"datastore": "nope"}, "datastore"),
        ({"folder": "nope"}, "folder"),
        ({"resource_pool": "nope"}, "resource_pool"),
        ({"networks": {"Network 1": {"network": "nope"}}}, "networks.Network 1.network"),
        ({"disk": "1GiB"}, "disk"),
        ({"properties": {"hostnam": "x", "password": {"env": "PW"}}}, "properties.hostnam"),
        ({"properties": {"password": {"env": "PW"}}}, "properties"),
        ({"properties": {"hostname": "x", "password": "literal"}}, "properties.password"),
        ({"properties": {"hostname": "x", "password": {"env": "NOT_SET"}}}, "properties.password"),
        (
            {"properties": {"hostname": "x", "password": {"env": "PW"}, "network.mtu.1": "much"}},
            "properties.network.mtu.1",
        ),
        ({"ova": {"file": "other.ova"}}, "ova.file"),
    ],
)
def test_what_is_unknown_or_unfit_is_refused_at_its_field(how, field):
    assert refused(**how).field == field


def committed(written, **fields):
    extra = {**machine().extra, MARK_KEY: MARK.committed(written.applied()).encode()}
    return state(machine(extra=extra, **fields))


@pytest.mark.parametrize(
    ("before", "thin", "now", "message"),
    [
        (
            {"disk": "80GiB"},
            True,
            {"disk": "60GiB"},
            "disk: the disk of bf-01 has 80GiB already; a disk can't shrink; write 80GiB, or leave it out",
        ),
        (
            {"disk": "60GiB"},
            True,
            {"disk": "60GiB"},
            "disk: the disk of bf-01 has 80GiB already; a disk can't shrink; write 80GiB, or leave it out",
        ),
        (
            {"disk_provisioning": "thick"},
            False,
            {},
            (
                "disk_provisioning: the disks of bf-01 are thick; how a disk takes space is decided when it is created; write "
                "thick, or convert them in vCenter first"
            ),
        ),
        (
            {},
            True,
            {"disk_provisioning": "thick"},
            (
                "disk_provisioning: the disks of bf-01 are thin; how a disk takes space is decided when it is created; write "
                "thin, or convert them in vCenter first"
            ),
        ),
        ({}, False, {"disk_provisioning": "thick"}, None),
        ({}, False, {}, None),
    ],
)
def test_what_no_disk_becomes_is_refused_and_never_noted_as_applied(before, thin, now, message):
    """A thin disk that stands thick was converted, or is on NFS, which makes all of them its own way."""
    existing = committed(spec(**before), disks=(Disk(2000, "Hard disk 1", 80 * GIB, thin=thin),))
    if message is None:
        assert all(type(step).__name__ == "Note" for step in steps(spec(**now), existing))
        return
    with pytest.raises(Refusal) as refusal:
        steps(spec(**now), existing)
    assert f"{refusal.value.field}: {refusal.value}" == message


def test_a_disk_grows_while_its_server_runs():
    [grow, commit] = steps(spec(disk="80GiB"), committed(spec()))
    assert (grow.hardware.grow, titles([commit])) == ({2000: 80 * GIB}, ["Note"])


def test_memory_that_vsphere_gives_no_machine_is_refused_where_it_is_written():
    with pytest.raises(ValidationError) as raised:
        spec(memory="1000000KiB")
    assert [error["loc"] for error in raised.value.errors()] == [("memory",)]


def test_a_host_that_is_not_there_is_refused():
    with pytest.raises(Refusal) as raised:
        steps(spec(), None, replace(context(), needs={}))
    assert raised.value.field == "host"


def test_unknown_memory_asks_for_it():
    cards = tuple(replace(d, device=0x9999) for d in HOST.devices)
    error = refused(facts={"host": replace(HOST, devices=cards), "device": "0x9999"})
    assert error.field in ("memory", "mmio")
    assert "gpu_memory" in str(error)


def test_the_instance_uuid_is_the_same_every_time():
    assert identity("a", "bitfusion_server/bf-01") == "c8fb04cf-3367-59c5-8a41-3408b471cceb"


def test_every_disruption_says_why():
    for found in (steps(spec(cpus=12), state()), steps(spec(), state(), context(ova=package(version="4.0")))):
        assert all(step.why for step in found if step.disruption is not Disruption.NONE)


def test_a_vm_in_another_folder_is_moved_and_both_folders_are_named():
    existing = state()
    moved = replace(existing, machine=replace(existing.machine, folder="group-v99"))
    how = context()
    theirs = Folder(moid="group-v99", name="theirs", datacenter="dc", path="vm/theirs")
    inventory = replace(how.facts.inventory, folders=(*how.facts.inventory.folders, theirs))
    [move] = steps(spec(), moved, replace(how, facts=replace(how.facts, inventory=inventory)))
    assert move.changes == (Change("folder", "theirs", ""),)


@pytest.mark.parametrize(("left", "error"), [([], Conflict), ([machine()], Missing)])
def test_a_vm_that_this_run_made_and_another_run_removed_is_decided_anew(left, error):
    """What was there before, or is there still, is another matter: that is reported."""

    def gone(_):
        raise Missing("vm-1 is gone")

    known: KnownObjects[str, None] = KnownObjects()
    runs = Runs(
        SimpleNamespace(machines=SimpleNamespace(power_on=gone, read=lambda *_: left)),
        Site("s", None, {}),
        None,
        known,
    )
    with pytest.raises(Missing):
        runs.small(Start(name="bf-01", moid="vm-1"))
    known.made("bf-01", "vm-1")
    with pytest.raises(error):
        runs.small(Start(name="bf-01", moid="vm-1"))
    assert known.of(["bf-01"]) == (None if error is Conflict else frozenset({"vm-1"}))


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return somebodys_machine(sandbox, name)


UNMANAGED = Entry(
    at="bf-01", plant=unmanaged, inside="a VM holds its own disks; what else has the name is no part of it"
)


CHANGED_FIELDS = [
    {"cpus": 8},
    {"memory": "32GiB"},
    {"mmio": "64GiB"},
    {"disk": "2MiB"},
    {"disk": "1MiB"},
    {"disk_provisioning": "thick"},
    {"attach": "dynamic"},
    {"networks": {"Network 1": {"network": "VM Network", "address": "10.2.0.6/24", "gateway": "10.2.0.1"}}},
    {
        "networks": {
            "Network 1": {
                "network": "VM Network",
                "address": "10.2.0.6/24",
                "gateway": "10.2.0.1",
                "mac": "00:50:56:00:00:0a",
            }
        }
    },
    {"properties": {"hostname": "other.small.test"}},
    {"gpus": 0},
    {"datastore": "shared"},
    {"folder": "gpu"},
    {"resource_pool": "gpu"},
    {"host": "esx2.small.test"},
]
