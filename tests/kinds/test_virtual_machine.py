"""Virtual machines: what is decided, what the guide asks of nodes, and one with a PVRDMA adapter and a vGPU on the sandbox."""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from kinds.servers import INVENTORY
from pydantic import ValidationError
from rights.given import administrator

from bfinfra.backends.vcenter.vm import Machine, Nic
from bfinfra.kinds.virtual_machine.decide import MARK, Delete, Facts, Make, Reconfigure, Start, State, Stop, decide, encoded, identity
from bfinfra.kinds.virtual_machine.spec import Spec
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around
from bfinfra.model.mark import Mark

GIB = 1 << 30
OWN = Mark("s", "virtual_machine/w1")
TEMPLATE = Machine(moid="vm-1", name="centos-7.6", folder="f", pool="", datastores=frozenset(), host="host-1", on=False, connected=True, instance_uuid="t", cpus=1,
                   memory=GIB, reserved=False, firmware="bios", pci=(), nics=(Nic(4000, "", "network-1", ""),), disks=(), extra={}, properties={}, ip="", tools=False)


def spec(**changes):
    given = {"template": "centos-7.6", "cluster": INVENTORY.clusters[0].name, "datastore": INVENTORY.datastores[0].name, "cpus": 4, "memory": 24 * GIB,
             "adapters": [{"network": "VM Network"}]}
    return Spec(**{**given, **changes})


def around(**guests):
    return Around(OWN, facts=Facts(INVENTORY, {"centos-7.6": TEMPLATE}, guests))


def standing(wanted, **changes):
    mark = OWN.seal(wanted.applied())
    machine = replace(TEMPLATE, moid="vm-2", name="w1", on=True, tools=True, cpus=wanted.cpus, memory=wanted.memory, reserved=wanted.reserved, instance_uuid="i",
                      nics=(Nic(4000, "", INVENTORY.network("VM Network").moid, ""),), extra={MARK: mark.on("i").encode()})
    return State(mark=mark, machine=replace(machine, **changes))


def kinds(steps):
    return [type(step) for step in steps]


def test_a_clone_brings_its_mark_its_own_identity_and_its_own_adapters():
    (step,) = decide("w1", spec(), None, around(w1={"guestinfo.userdata": "x"}))
    assert isinstance(step, Make)
    hardware = step.clone.hardware
    own = identity("s", "w1")
    assert (hardware.instance_uuid, hardware.drop, hardware.add_nics) == (own, (4000,), (INVENTORY.network("VM Network").moid,))
    assert Mark.decode(hardware.extra[MARK]).where(own) == OWN.seal(spec().applied())
    assert (hardware.extra["guestinfo.userdata"], hardware.extra["guestinfo.userdata.encoding"]) == ("x", "gzip+base64")
    assert "guestinfo.metadata" not in hardware.extra


@pytest.mark.parametrize(("changes", "reserved"), [
    ({}, False), ({"reserve": True}, True), ({"vgpus": ["grid_v100d-16c"]}, True), ({"adapters": [{"network": "n", "type": "pvrdma"}]}, True),
])
def test_pvrdma_and_vgpus_want_all_memory_reserved(changes, reserved):
    assert spec(**changes).reserved is reserved


def test_pvrdma_wants_a_distributed_port_group_and_is_there_once():
    with pytest.raises(Refusal, match="no distributed port group"):
        decide("w1", spec(adapters=[{"network": "VM Network", "type": "pvrdma"}]), None, around())
    with pytest.raises(ValidationError, match="at most one PVRDMA"):
        spec(adapters=[{"network": "a", "type": "pvrdma"}, {"network": "b", "type": "pvrdma"}])


@pytest.mark.parametrize(("role", "changes", "fields"), [
    ("worker", {}, set()), ("worker", {"memory": 16 * GIB}, {"memory"}), ("control_plane", {"cpus": 2, "memory": 8 * GIB}, {"cpus", "memory"}), (None, {"cpus": 1}, set()),
])
def test_nodes_smaller_than_the_guides_are_warned_of(role, changes, fields):
    assert {field for field, _ in spec(role=role, **changes).warnings()} == fields


def test_what_agrees_needs_nothing():
    assert decide("w1", spec(), standing(spec()), around()) == ()


@pytest.mark.parametrize(("changes", "steps", "field"), [
    ({"cpus": 8}, [Stop, Reconfigure, Start], "cpus"), ({"extra": {"a.b": "1"}}, [Reconfigure], "extra.a.b"), ({"power": "off"}, [Stop, Reconfigure], "power"),
    ({"role": "worker"}, [Reconfigure], "role"),
])
def test_only_what_must_is_changed_while_it_is_off(changes, steps, field):
    found = decide("w1", spec(**changes), standing(spec()), around())
    assert kinds(found) == steps
    assert field in {change.field for change in found[0].changes}


def test_a_machine_that_somebody_switched_off_is_started():
    assert kinds(decide("w1", spec(), standing(spec(), on=False), around())) == [Start]


def test_other_devices_are_refused_by_name():
    with pytest.raises(Refusal, match="its vgpus are others"):
        decide("w1", spec(vgpus=["grid_v100d-16c"]), standing(spec(vgpus=["grid_v100d-16c"])), around())


def test_it_goes_in_one_step():
    assert kinds(decide("w1", None, standing(spec()), around())) == [Delete]


def test_what_cloud_init_reads_is_the_same_for_the_same_text():
    text = b"#cloud-config\nhostname: w1\n"
    assert encoded(text) == encoded(text)
    assert gzip.decompress(base64.b64decode(encoded(text))) == text


def test_one_with_pvrdma_and_cloud_init(sandbox, tmp_path):
    site = yaml.safe_load(EXAMPLES["virtual_machine"].read_text())
    site |= {"distributed_switch": {"roce": {"hosts": {"esx1.small.test": ["vmnic1"]}}}, "port_group": {"high-speed": {"switch": "roce"}}}
    machine = site["virtual_machine"]["sckubw01"]
    machine |= {"host": "esx1.small.test", "adapters": [{"network": "VM Network"}, {"network": "high-speed", "type": "pvrdma"}], "cloud_init": {"user_data": "user-data"}}
    (tmp_path / "user-data").write_text("#cloud-config\n")
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    with administrator(sandbox) as si:
        vm = si.content.searchIndex.FindByInventoryPath("/dc/vm/sckubw01")
        cards = [(type(d).__name__.rpartition(".")[2], getattr(d, "deviceProtocol", None)) for d in vm.config.hardware.device if "Vmxnet3" in type(d).__name__]
        assert cards == [("VirtualVmxnet3", None), ("VirtualVmxnet3Vrdma", "rocev2")]
        assert vm.config.memoryReservationLockedToMax
        assert {o.key: o.value for o in vm.config.extraConfig}["guestinfo.userdata.encoding"] == "gzip+base64"
    assert plan(path, sandbox).pending == ()
    (tmp_path / "user-data").write_text("#cloud-config\nntp: {enabled: true}\n")
    assert {str(i.key): {c.field for c in i.named} for i in plan(path, sandbox).pending} == {"virtual_machine/sckubw01": {"cloud_init.user_data"}}
    outcome = apply(path, sandbox, destroy=True)
    assert made(outcome), endings(outcome)
