"""Virtual machines: what is decided, what the guide asks of nodes, and one with a PVRDMA adapter and a vGPU
on the sandbox.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from kinds.of_several import of_several
from kinds.servers import INVENTORY
from kinds.unmanaged import Entry, Look, somebodys_machine
from pydantic import ValidationError
from pyVmomi import vim
from rights.given import administrator

from bfinfra.backends.vcenter import devices
from bfinfra.backends.vcenter.library_items import Declared, Item
from bfinfra.backends.vcenter.places import Found, Nowhere, only
from bfinfra.backends.vcenter.vm import Attach, Attached, Disk, NewDisk, Nic, Relocation, Vm
from bfinfra.engine.guard import Allow, check
from bfinfra.kinds.vcenter.base.machine.notes import SECRETS
from bfinfra.kinds.vcenter.base.machine.places import MachinePlaces
from bfinfra.kinds.vcenter.base.machine.state import identity
from bfinfra.kinds.vcenter.base.machine.steps import Delete, Discard, Relocate, Replace, Start, Stop, Write
from bfinfra.kinds.vcenter.virtual_machine.decide import decide
from bfinfra.kinds.vcenter.virtual_machine.describe import description
from bfinfra.kinds.vcenter.virtual_machine.devices import fitted
from bfinfra.kinds.vcenter.virtual_machine.properties import look
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import MARK, State, VirtualMachineFacts, encoded
from bfinfra.kinds.vcenter.virtual_machine.steps import DeleteDisks, Deployed, Make
from bfinfra.model.awaited import UNNOTED, Absent, Awaited
from bfinfra.model.compare import Unknown
from bfinfra.model.conflict import Spot, twice
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal, Unsafe
from bfinfra.model.mark import Mark
from bfinfra.model.plan import Action, Plan, step_data
from bfinfra.model.plan import Item as PlanItem
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret, digest
from bfinfra.model.sources import Sources
from bfinfra.sandbox import Running

GIB = 1 << 30
OWN = Mark("s", "virtual_machine/w1")
TEMPLATE = Vm(
    moid="vm-1",
    name="centos-7.6",
    folder="folder-1",
    pool="pool-1",
    datastores=frozenset({"ds-1"}),
    host="host-1",
    on=False,
    connection="connected",
    instance_uuid="t",
    cpus=1,
    memory=GIB,
    reserved=False,
    firmware="bios",
    pci=(),
    nics=(Nic(4000, "", "network-1", ""),),
    disks=(),
    extra={},
    properties={},
    ip="",
    tools=False,
)


def spec(**changes):
    given = {
        "template": "centos-7.6",
        "cluster": INVENTORY.clusters[0].name,
        "datastore": INVENTORY.datastores[0].name,
        "cpus": 4,
        "memory": 24 * GIB,
        "adapters": [{"network": "VM Network"}],
    }
    return Spec(**{**given, **changes})


def context(**guests):
    return PlanContext(
        OWN, facts=VirtualMachineFacts(INVENTORY, {"centos-7.6": Found(TEMPLATE)}, guests=guests)
    )


def existing(wanted, **changes):
    mark = OWN.committed(wanted.applied())
    machine = replace(
        TEMPLATE,
        moid="vm-2",
        name="w1",
        on=True,
        tools=True,
        cpus=wanted.cpus,
        memory=wanted.memory,
        reserved=wanted.reserved,
        instance_uuid="i",
        nics=(Nic(4000, "", only(INVENTORY.network("VM Network")).moid, ""),),
        extra={MARK: mark.on("i").encode()},
    )
    return State(mark=mark, machine=replace(machine, **changes))


def given(state, digests):
    """With the digests of secrets among the notes of the VM."""
    extra = {**state.machine.extra, SECRETS: OWN.committed(digests).encode()}
    return replace(state, machine=replace(state.machine, extra=extra))


def kinds(steps):
    return [type(step) for step in steps]


def test_a_clone_brings_its_mark_its_own_identity_and_its_own_adapters():
    step, *_ = decide("w1", spec(), None, context(w1={"guestinfo.userdata": "x"}))
    assert isinstance(step, Make)
    hardware = step.how.hardware
    own = identity("s", "virtual_machine/w1")
    assert (hardware.instance_uuid, hardware.drop, hardware.add_nics) == (
        own,
        (4000,),
        (only(INVENTORY.network("VM Network")).moid,),
    )
    assert Mark.decode(hardware.extra[MARK]).where(own) == OWN.committed(spec().applied())
    assert (hardware.extra["guestinfo.userdata"], hardware.extra["guestinfo.userdata.encoding"]) == (
        "x",
        "gzip+base64",
    )
    assert "guestinfo.metadata" not in hardware.extra


LIBRARY = {"template": None, "library": {"name": "images", "item": "ubuntu"}}


def held(item, template=None):
    return PlanContext(
        OWN,
        facts=VirtualMachineFacts(INVENTORY, items={("images", "ubuntu"): (item, template)} if item else {}),
    )


def test_an_items_vm_template_is_cloned_and_an_ovf_gets_its_hardware_once_it_is_deployed():
    cloned, *_ = decide("w1", spec(**LIBRARY), None, held(Item("i", "vm-template", "vm-1"), TEMPLATE))
    deployed, *_ = decide("w1", spec(**LIBRARY), None, held(Item("i", "ovf")))
    assert (cloned.how.source, cloned.how.hardware.drop, cloned.exclusive) == ("vm-1", (4000,), True)
    assert isinstance(deployed.how, Deployed)
    assert (
        deployed.how.item,
        deployed.how.deployment.extra,
        deployed.how.deployment.networks,
        deployed.exclusive,
    ) == ("i", {MARK: OWN.encode()}, {}, False)
    assert replace(cloned.how.hardware, drop=()) == deployed.how.hardware
    assert deployed.title() == "make w1 from ubuntu of the library images"


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (None, "no item ubuntu"),
        (Item("i", "iso"), "is of type iso"),
        (Item("i", "vm-template", "vm-1"), "can't be read"),
    ],
)
def test_what_no_machine_can_be_made_of_is_refused(item, why):
    with pytest.raises(Refusal, match=why):
        decide("w1", spec(**LIBRARY), None, held(item))


def test_the_items_of_this_sites_library_are_not_known_before_it_exists():
    key = Key("content_library", "images")
    step, *_ = decide(
        "w1",
        spec(**LIBRARY),
        None,
        replace(held(None), needs={"library.name": ResolvedRef(key, object(), None)}),
    )
    assert step.how == Unknown(key, "library")


def test_a_deployment_that_was_cut_short_is_removed_and_made_anew():
    started = replace(existing(spec(**LIBRARY)), importing=True)
    assert kinds(decide("w1", spec(**LIBRARY), started, held(Item("i", "ovf")))) == [Discard, Make, Start]


SECRET = Secret("env", "PASSWORD", Sources(env={"PASSWORD": "long-enough"}))
OFFERED = (
    Declared("guest.hostname", "string"),
    Declared("guest.port", "uint16"),
    Declared("password", "password"),
)


def offering(wanted, **secrets):
    return PlanContext(
        OWN,
        facts=VirtualMachineFacts(
            INVENTORY,
            items={("images", "ubuntu"): (Item("i", "ovf"), None)},
            declared={("images", "ubuntu"): OFFERED},
            secrets={"w1": secrets or look(wanted, None, OFFERED, "")},
        ),
    )


def test_an_ovfs_properties_come_with_its_machine_and_secrets_by_reference_only():
    wanted = spec(**LIBRARY, properties={"guest.hostname": "w1", "password": SECRET})
    step, *_ = decide("w1", wanted, None, offering(wanted))
    assert step.how.properties == {"guest.hostname": "w1", "password": SECRET}
    assert {change.field: change.wanted for change in step.changes}["properties.password.env"] == "PASSWORD"
    assert "long-enough" not in f"{step}{step_data(step)}"


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"guest.hostnam": "w1"}, "no property guest.hostnam"),
        ({"guest.port": "many"}, "does not fit the property guest.port"),
        ({"password": "literal"}, "is a password"),
        ({"password": Secret("env", "NONE", Sources(env={}))}, "has no usable value"),
    ],
)
def test_properties_are_held_against_what_the_item_declares_before_anything_is_made(properties, why):
    wanted = spec(**LIBRARY, properties=properties)
    with pytest.raises(Refusal, match=why):
        decide("w1", wanted, None, offering(wanted))


def test_a_property_that_differs_is_set_while_it_is_off_and_other_secrets_stay_known():
    wanted = spec(**LIBRARY, properties={"guest.hostname": "w2", "password": SECRET})
    had = given(
        existing(wanted, properties={"guest.hostname": "w1", "password": ""}),
        {"password": digest("long-enough"), "gone": "x"},
    )
    found = decide("w1", wanted, had, offering(wanted, **look(wanted, had.digests, (), "")))
    assert (kinds(found), found[1].properties, found[1].keep) == (
        OFF,
        {"guest.hostname": "w2"},
        {"password": had.digests["password"]},
    )
    other = given(had, {"password": digest("another")})
    found = decide("w1", wanted, other, offering(wanted, **look(wanted, other.digests, (), "")))
    assert (found[1].properties, found[1].keep) == ({"guest.hostname": "w2", "password": SECRET}, {})
    assert {change.field for change in found[1].changes} == {
        "properties.guest.hostname",
        "properties.password",
    }


def test_only_ovfs_have_properties():
    with pytest.raises(ValidationError, match="only an OVF item"):
        spec(properties={"a": "b"})
    with pytest.raises(Refusal, match="is a VM template"):
        decide(
            "w1",
            spec(**LIBRARY, properties={"a": "b"}),
            None,
            held(Item("i", "vm-template", "vm-1"), TEMPLATE),
        )


@pytest.mark.parametrize("given", [{"template": None}, {"library": {"name": "a", "item": "b"}}])
def test_a_machine_is_made_of_one_thing(given):
    with pytest.raises(ValidationError, match="give either template or library"):
        spec(**given)


def test_memory_that_vsphere_gives_no_machine_is_refused_where_it_is_written():
    with pytest.raises(ValidationError) as raised:
        spec(memory="1000000KiB")
    assert [error["loc"] for error in raised.value.errors()] == [("memory",)]


@pytest.mark.parametrize(
    ("changes", "reserved"),
    [
        ({}, False),
        ({"reserve": True}, True),
        ({"vgpus": ["grid_v100d-16c"]}, True),
        ({"adapters": [{"network": "n", "type": "pvrdma"}]}, True),
    ],
)
def test_pvrdma_and_vgpus_want_all_memory_reserved(changes, reserved):
    assert spec(**changes).reserved is reserved


def test_pvrdma_wants_a_distributed_port_group_and_is_there_once():
    with pytest.raises(Refusal, match="no distributed port group"):
        decide("w1", spec(adapters=[{"network": "VM Network", "type": "pvrdma"}]), None, context())
    with pytest.raises(ValidationError, match="at most one PVRDMA"):
        spec(adapters=[{"network": "a", "type": "pvrdma"}, {"network": "b", "type": "pvrdma"}])


@pytest.mark.parametrize(
    ("role", "changes", "fields"),
    [
        ("worker", {}, set()),
        ("worker", {"memory": 16 * GIB}, {"memory"}),
        ("control_plane", {"cpus": 2, "memory": 8 * GIB}, {"cpus", "memory"}),
        (None, {"cpus": 1}, set()),
    ],
)
def test_nodes_smaller_than_the_guides_are_warned_of(role, changes, fields):
    assert {field for field, _ in spec(role=role, **changes).warnings()} == fields


def test_what_agrees_needs_nothing():
    assert decide("w1", spec(), existing(spec()), context()) == ()


@pytest.mark.parametrize(
    ("changes", "steps", "field"),
    [
        ({"cpus": 8}, [Stop, Write, Start], "cpus"),
        ({"extra": {"a.b": "1"}}, [Write], "extra.a.b"),
        ({"power": "off"}, [Stop, Write], "power"),
        ({"role": "worker"}, [Write], "role"),
    ],
)
@of_several("virtual_machine.cpus")
def test_only_what_must_is_changed_while_it_is_off(changes, steps, field):
    found = decide("w1", spec(**changes), existing(spec()), context())
    assert kinds(found) == steps
    assert field in {change.field for change in found[0].changes}


def test_a_machine_that_somebody_switched_off_is_started():
    assert kinds(decide("w1", spec(), existing(spec(), on=False), context())) == [Start]


NETWORK = only(INVENTORY.network("VM Network")).moid
OTHER, GROUP = "network-2", "dvportgroup-7"
PLACES = replace(
    INVENTORY,
    networks=(
        *INVENTORY.networks,
        *(
            replace(INVENTORY.networks[0], moid=moid, name=name, distributed=moid == GROUP)
            for moid, name in ((OTHER, "other"), (GROUP, "roce"))
        ),
    ),
)
ON, OFF = [Write], [Stop, Write, Start]
V100, T4 = "grid_v100d-16c", "grid_t4-16c"
ROCE = {"network": "roce", "type": "pvrdma"}
MACS = ("00:50:56:00:00:0a", "00:50:56:00:00:0b")


@pytest.mark.parametrize(
    ("changes", "had", "steps", "hardware", "fields"),
    [
        ({"adapters": [{"network": "other"}]}, {}, ON, {"nics": {4000: OTHER}}, {"adapters.0.network"}),
        (
            {"adapters": [{"network": "VM Network"}, {"network": "other"}]},
            {},
            OFF,
            {"add_nics": (OTHER,)},
            {"adapters.1"},
        ),
        (
            {"adapters": [{"network": "other"}, {"network": "VM Network"}]},
            {},
            OFF,
            {"add_nics": (OTHER,)},
            {"adapters.0"},
        ),
        (
            {"adapters": [{"network": "VM Network"}, ROCE], "reserve": True},
            {"reserved": True},
            OFF,
            {"add_rdma": {GROUP: "rocev2"}},
            {"adapters.1"},
        ),
        (
            {},
            {
                "nics": (
                    Nic(4000, "one", NETWORK, ""),
                    Nic(4001, "two", GROUP, "", grouped=True, rdma="rocev2"),
                )
            },
            OFF,
            {"drop": (4001,)},
            {"adapters.two"},
        ),
        (
            {"adapters": [{"network": "VM Network", "mac": MACS[0]}]},
            {},
            OFF,
            {"macs": {4000: MACS[0]}},
            {"adapters.0.mac"},
        ),
        (
            {"adapters": [{"network": "other", "mac": MACS[0]}]},
            {},
            OFF,
            {"nics": {4000: OTHER}, "macs": {4000: MACS[0]}},
            {"adapters.0.network", "adapters.0.mac"},
        ),
        (
            {"adapters": [{"network": "VM Network"}, {"network": "other", "mac": MACS[1]}]},
            {"nics": (Nic(4000, "", NETWORK, MACS[1].upper()), Nic(4001, "", NETWORK, MACS[0]))},
            ON,
            {"nics": {4000: OTHER}},
            {"adapters.1.network"},
        ),
        (
            {"adapters": [{"network": "VM Network", "mac": MACS[1]}]},
            {"nics": (Nic(4000, "one", NETWORK, MACS[0]), Nic(4001, "two", NETWORK, MACS[1]))},
            OFF,
            {"drop": (4000,)},
            {"adapters.one"},
        ),
        (
            {"adapters": [{"network": "VM Network"}, {"network": "other", "mac": MACS[0]}]},
            {},
            OFF,
            {"add_nics": (OTHER,), "add_macs": (MACS[0],)},
            {"adapters.1"},
        ),
        (
            {
                "adapters": [
                    {**ROCE, "mac": MACS[1]},
                    {"network": "VM Network"},
                    {"network": "other", "mac": MACS[0]},
                ],
                "reserve": True,
            },
            {"nics": (), "reserved": True},
            OFF,
            {"add_nics": (NETWORK, OTHER), "add_rdma": {GROUP: "rocev2"}, "add_macs": ("", MACS[0], MACS[1])},
            {"adapters.0", "adapters.1", "adapters.2"},
        ),
        (
            {"vgpus": [V100], "reserve": True},
            {"reserved": True},
            OFF,
            {"attach": (Attach(profile=V100),)},
            {"vgpus"},
        ),
        (
            {"vgpus": [V100]},
            {
                "reserved": True,
                "pci": (Attached(13000, "vgpu", profile="a"), Attached(13001, "vgpu", profile=V100)),
            },
            OFF,
            {"drop": (13000,)},
            {"vgpus"},
        ),
        (
            {},
            {"reserved": True, "pci": (Attached(13000, "vgpu", profile="a"),)},
            OFF,
            {"drop": (13000,), "reserve": False},
            {"vgpus", "reserve"},
        ),
        (
            {"disk": 60 * GIB},
            {"disks": (Disk(2000, "", 50 * GIB),)},
            ON,
            {"grow": {2000: 60 * GIB}},
            {"disk"},
        ),
    ],
)
def test_devices_that_are_others_are_mended(changes, had, steps, hardware, fields):
    wanted = spec(**changes)
    found = decide(
        "w1",
        wanted,
        existing(wanted, **had),
        PlanContext(OWN, facts=VirtualMachineFacts(PLACES, {"centos-7.6": Found(TEMPLATE)})),
    )
    assert kinds(found) == steps
    given = found[steps.index(Write)].hardware
    assert hardware.items() <= vars(given).items()
    names = ("nics", "macs", "add_nics", "add_rdma", "drop", "attach", "grow")
    assert {name for name in names if getattr(given, name)} == hardware.keys() - {"reserve", "add_macs"}
    assert {change.field for change in found[0].changes} == fields


def test_devices_of_a_group_that_somebody_added_are_left_with_it_and_no_site_describes_them() -> None:
    pci = vim.vm.device.VirtualPCIPassthrough
    place = vim.vm.device.VirtualDevice.DeviceGroupInfo(groupInstanceKey=1, sequenceId=0)
    read = devices.found(
        [
            pci(key=1, backing=pci.VmiopBackingInfo(vgpu="a"), deviceGroupInfo=place),
            pci(key=2, backing=pci.DynamicBackingInfo(deviceName=""), deviceGroupInfo=place),
            pci(key=3, backing=pci.VmiopBackingInfo(vgpu="a")),
        ]
    )
    wanted = spec(vgpus=["a"])
    live = existing(wanted, pci=read.pci, reserved=True)
    assert decide("w1", wanted, live, context()) == ()
    more = spec(vgpus=["a", "a"])
    steps = decide("w1", more, existing(more, pci=read.pci, reserved=True), context())
    (hardware,) = (step.hardware for step in steps if isinstance(step, Write))
    assert (hardware.attach, hardware.drop) == ((Attach(profile="a"),), ())
    places = MachinePlaces("esx", "c", "d", "", "", ("VM Network",))
    found = description(live, places)
    assert (found.fields["vgpus"], found.left_out) == (
        ["a"],
        "it has device groups, which no field describes",
    )
    alone = existing(wanted, pci=read.pci[2:], reserved=True)
    assert description(alone, places).left_out == ""


def test_devices_that_agree_in_another_order_are_left():
    wanted = spec(adapters=[ROCE, {"network": "VM Network"}], vgpus=["b", "a"])
    had = {
        "nics": (Nic(4000, "", NETWORK, ""), Nic(4001, "", GROUP, "", grouped=True, rdma="rocev2")),
        "pci": (Attached(1, "vgpu", profile="a"), Attached(2, "vgpu", profile="b")),
    }
    assert (
        decide("w1", wanted, existing(wanted, **had), PlanContext(OWN, facts=VirtualMachineFacts(PLACES)))
        == ()
    )


@pytest.mark.parametrize("before", [None, MACS[0]])
def test_an_adapter_without_a_mac_in_the_file_keeps_its_own(before):
    had = existing(
        spec(adapters=[{"network": "VM Network", "mac": before}]), nics=(Nic(4000, "", NETWORK, MACS[0]),)
    )
    found = decide("w1", spec(), had, context())
    assert kinds(found) == ([Write] if before else [])
    assert all(not step.hardware.macs for step in found)


def test_two_adapters_of_one_machine_have_two_macs():
    one, other, same = ({"network": "VM Network", "mac": each} for each in (*MACS, MACS[0].upper()))
    key = Key("virtual_machine", "w1")
    found = [
        [each.at for each in twice((key, each) for each in spec(adapters=wanted).takes("w1"))]
        for wanted in ([one, other, {"network": "VM Network"}], [one, same])
    ]
    assert found == [[], [Spot(key, "adapters.1.mac")]]


def test_a_description_has_the_macs_that_were_assigned_by_hand():
    nics = (Nic(4000, "", NETWORK, MACS[0].upper(), manual=True), Nic(4001, "", NETWORK, MACS[1]))
    places = MachinePlaces("esx", "c", "d", "", "", ("VM Network", "VM Network"))
    assert description(existing(spec(), nics=nics), places).fields["adapters"] == [
        {"network": "VM Network", "mac": MACS[0]},
        {"network": "VM Network"},
    ]


def test_an_adapter_for_a_port_group_that_this_site_makes_waits_for_it():
    wanted, key = spec(adapters=[{"network": "VM Network"}, {"network": "soon"}]), Key("port_group", "soon")
    found = decide(
        "w1",
        wanted,
        existing(wanted),
        PlanContext(
            OWN,
            needs={"adapters.1.network": ResolvedRef(key, object(), None)},
            facts=VirtualMachineFacts(PLACES),
        ),
    )
    assert (kinds(found), found[1].hardware) == (OFF, Unknown(key, "group"))


@pytest.mark.parametrize(
    ("disks", "why"), [((Disk(2000, "", 80 * GIB),), "has 80GiB already"), ((), "has no disk")]
)
def test_a_disk_that_cannot_grow_to_that_size_is_refused(disks, why):
    with pytest.raises(Refusal, match=why):
        decide("w1", spec(disk=60 * GIB), existing(spec(disk=60 * GIB), disks=disks), context())


FIRST = Disk(2000, "", 50 * GIB, "scsi0:0", "[local] w1/w1.vmdk")
DATA = Disk(2001, "", 10 * GIB, "scsi0:1", "[local] w1/w1_1.vmdk")
FASTER = INVENTORY.datastores[0]


@pytest.mark.parametrize(
    ("disks", "hardware", "fields"),
    [
        ({"scsi0:1": {"size": 10 * GIB}}, {}, set()),
        ({"scsi0:1": {"size": 20 * GIB}}, {"grow": {2001: 20 * GIB}}, {"disks.scsi0:1.size"}),
        (
            {
                "scsi0:1": {"size": 10 * GIB},
                "scsi1:0": {"size": GIB, "datastore": FASTER.name, "thin": False},
            },
            {"add_disks": (NewDisk("scsi1:0", GIB, FASTER.moid, thin=False),)},
            {"disks.scsi1:0.size"},
        ),
    ],
)
def test_further_disks_are_put_in_and_grown_while_it_runs(disks, hardware, fields):
    found = decide("w1", spec(disks=disks), existing(spec(disks=disks), disks=(FIRST, DATA)), context())
    assert kinds(found) == ([Write] if hardware else [])
    for step in found:
        assert {
            name: given
            for name in ("grow", "add_disks", "destroy")
            if (given := getattr(step.hardware, name))
        } == hardware
        assert {change.field for change in step.changes} == fields


def test_a_clone_brings_disks_that_its_template_lacks_and_grows_those_that_it_has():
    context = PlanContext(
        OWN,
        facts=VirtualMachineFacts(INVENTORY, {"centos-7.6": Found(replace(TEMPLATE, disks=(FIRST, DATA)))}),
    )
    step, *_ = decide(
        "w1",
        spec(disk=60 * GIB, disks={"scsi0:1": {"size": 20 * GIB}, "scsi0:2": {"size": GIB}}),
        None,
        context,
    )
    assert (step.how.hardware.grow, step.how.hardware.add_disks) == (
        {2000: 60 * GIB, 2001: 20 * GIB},
        (NewDisk("scsi0:2", GIB),),
    )


def test_of_an_ovf_nobody_knows_the_disks_before_it_is_deployed():
    step, *_ = decide(
        "w1",
        spec(**LIBRARY, disks={"scsi0:1": {"size": 20 * GIB}, "scsi0:2": {"size": GIB}}),
        None,
        held(Item("i", "ovf")),
    )
    made = fitted(step.how.hardware, replace(TEMPLATE, disks=(FIRST, DATA)))
    assert (made.grow, made.add_disks) == ({2001: 20 * GIB}, (NewDisk("scsi0:2", GIB),))


def test_a_disk_that_left_the_file_is_deleted_before_the_mark_forgets_it_and_nobody_elses_is():
    had = existing(
        spec(disks={"scsi0:1": {"size": 10 * GIB}}), disks=(FIRST, DATA, Disk(2002, "", GIB, "scsi0:2"))
    )
    deleted, noted = decide("w1", spec(), had, context())
    assert (type(deleted), deleted.keys, deleted.title(), deleted.destructive) == (
        DeleteDisks,
        (2001,),
        "delete scsi0:1 of w1 with what is on it",
        True,
    )
    assert [(change.field, change.now, change.wanted) for change in deleted.changes] == [
        ("disks.scsi0:1.size", "10GiB in [local] w1/w1_1.vmdk", None)
    ]
    assert (noted.hardware.destroy, noted.hardware.drop) == ((), ())
    plan = Plan("s", (PlanItem(Key("virtual_machine", "w1"), Action.UPDATE, (deleted, noted)),))
    with pytest.raises(Unsafe, match="would destroy a part of virtual_machine/w1"):
        check(plan, Allow())
    check(plan, Allow(delete=frozenset({Key("virtual_machine", "w1")})))


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ({"scsi0:1": {"size": 10 * GIB}}, {"scsi0:1": {"size": 5 * GIB}}, "has 10GiB already"),
        ({"scsi0:1": {"size": 10 * GIB}}, {"scsi0:1": {"size": 10 * GIB, "thin": False}}, "exists already"),
        ({}, {"scsi0:1": {"size": 10 * GIB, "datastore": "nowhere"}}, "no datastore nowhere"),
        ({"scsi0:0": {"size": 50 * GIB}}, {}, "is deleted only with its VM"),
    ],
)
def test_disks_neither_shrink_nor_change_how_they_take_space_and_the_first_one_stays(before, now, why):
    with pytest.raises(Refusal, match=why):
        decide("w1", spec(disks=now), existing(spec(disks=before), disks=(FIRST, DATA)), context())


def test_the_first_disk_has_one_size():
    with pytest.raises(Refusal, match="another size"):
        decide(
            "w1",
            spec(disk=60 * GIB, disks={"scsi0:0": {"size": 70 * GIB}}),
            existing(spec(), disks=(FIRST,)),
            context(),
        )


@pytest.mark.parametrize(
    "disks",
    [
        {"scsi0:7": {"size": GIB}},
        {"sata0:1": {"size": GIB}},
        {"scsi0:1": {"size": GIB + 1}},
        {"scsi0:1": {"size": 0}},
    ],
)
def test_places_and_sizes_that_no_disk_has_are_refused(disks):
    with pytest.raises(ValidationError):
        spec(disks=disks)


def changed(steps):
    return {change.field for step in steps for change in step.changes}


def test_a_machine_that_somebody_renamed_gets_its_name_back():
    (step,) = decide("w1", spec(), existing(spec(), name="w1-old"), context())
    assert (kinds([step]), step.hardware.name, changed([step])) == ([Write], "w1", {"name"})


def test_an_option_that_left_the_file_is_removed_and_others_options_stay():
    had = existing(spec(extra={"a.b": "1"}))
    there = replace(had, machine=replace(had.machine, extra={**had.machine.extra, "a.b": "1", "theirs": "2"}))
    (step,) = decide("w1", spec(), there, context())
    assert (step.hardware.extra["a.b"], changed([step])) == ("", {"extra.a.b"})
    assert "theirs" not in step.hardware.extra


@pytest.mark.parametrize(
    ("pci", "stopped"), [((), []), ((Attached(13000, "vgpu", profile="p"),), [Stop])], ids=["plain", "vgpu"]
)
def test_a_machine_is_relocated_after_it_was_written_and_stopped_only_if_it_must_be(pci, stopped):
    wanted = spec(datastore="fast", vgpus=["p"] if pci else ())
    had = existing(wanted, pci=pci, disks=(FIRST,), reserved=bool(pci))
    there = replace(had, mark=OWN.committed(spec(vgpus=["p"] if pci else ()).applied()))
    both = replace(INVENTORY, datastores=(FASTER, replace(FASTER, moid="ds-2", name="fast")))
    found = decide("w1", wanted, there, PlanContext(OWN, facts=VirtualMachineFacts(both)))
    assert kinds(found) == [*stopped, Write, Relocate, *([Start] if stopped else [])]
    assert found[-1 - len(stopped)].to == Relocation(datastore="ds-2")
    assert changed(found) == {"datastore"}


def templates(**found):
    other = replace(TEMPLATE, moid="vm-9", name="centos-8")
    known = {"centos-7.6": Found(TEMPLATE), "centos-8": Found(other), **found}
    return PlanContext(OWN, facts=VirtualMachineFacts(INVENTORY, known))


NEWER = {"template": "centos-8"}


def test_a_machine_of_another_template_is_made_anew():
    had = existing(spec(), instance_uuid=identity("s", "virtual_machine/w1"))
    found = decide("w1", spec(**NEWER), had, templates())
    assert kinds(found) == [Replace, Make, Start]
    assert changed(found[:1]) == {"template"}
    assert found[0].destructive


@pytest.mark.parametrize(
    ("had", "known"),
    [
        ({}, {}),
        ({"instance_uuid": identity("s", "virtual_machine/w1")}, {"centos-7.6": Nowhere()}),
        ({"instance_uuid": identity("s", "virtual_machine/w1")}, {"centos-8": Found(TEMPLATE)}),
    ],
    ids=["it was adopted", "the former template is gone", "it is the same template"],
)
def test_a_machine_whose_template_is_only_called_otherwise_stays(had, known):
    assert kinds(decide("w1", spec(**NEWER), existing(spec(), **had), templates(**known))) == [Write]


def test_a_machine_of_another_item_is_made_anew():
    had = existing(spec(**LIBRARY), instance_uuid=identity("s", "virtual_machine/w1"))
    items = {("images", "ubuntu"): (Item("i", "ovf"), None), ("images", "debian"): (Item("j", "ovf"), None)}
    now = spec(template=None, library={"name": "images", "item": "debian"})
    found = decide("w1", now, had, PlanContext(OWN, facts=VirtualMachineFacts(INVENTORY, items=items)))
    assert kinds(found) == [Replace, Make, Start]


def test_a_machine_that_was_stopped_for_a_change_is_started_if_that_is_refused():
    stop, *_ = decide("w1", spec(cpus=8), existing(spec()), context())
    assert stop.way_back == Start(name="w1", moid="vm-2")
    stop, *_ = decide("w1", spec(power="off"), existing(spec()), context())
    assert stop.way_back is None


def test_it_goes_in_one_step():
    assert kinds(decide("w1", None, existing(spec()), context())) == [Delete]


def test_what_cloud_init_reads_is_the_same_for_the_same_text():
    text = b"#cloud-config\nhostname: w1\n"
    assert encoded(text) == encoded(text)
    assert gzip.decompress(base64.b64decode(encoded(text))) == text


def test_without_cloud_inits_file_no_machine_is_made_and_an_existing_one_keeps_its_text():
    wanted = spec(cloud_init={"user_data": "user-data"})
    away = {"w1": ("cloud_init.user_data", Absent("user-data is not there yet"))}
    meanwhile = PlanContext(
        OWN,
        facts=VirtualMachineFacts(INVENTORY, {"centos-7.6": Found(TEMPLATE)}, guests={"w1": {}}, away=away),
    )

    def fields(state, now=wanted):
        with pytest.raises(Awaited, match="user-data is not there yet") as awaited:
            decide("w1", now, state, meanwhile)
        return kinds(awaited.value.steps), {
            change.field for step in awaited.value.steps for change in step.changes
        } & {"cloud_init.user_data"}

    there = existing(wanted, extra={"guestinfo.userdata": "text"})
    assert decide("w1", wanted, there, meanwhile) == ()
    assert kinds(
        decide("w1", wanted, replace(there, machine=replace(there.machine, on=False)), meanwhile)
    ) == [Start]
    (change,) = decide("w1", spec(cloud_init={"user_data": "user-data"}, extra={"a": "b"}), there, meanwhile)
    assert change.hardware.extra.keys() == {MARK, "a"}
    assert fields(None)[0] == [Make, Start]
    assert fields(existing(wanted, extra={})) == ([Write], {"cloud_init.user_data"})
    assert fields(there, spec(cloud_init={"user_data": "other"})) == ([Write], {"cloud_init.user_data"})
    assert kinds(decide("w1", None, there, meanwhile)) == [Delete]


def disks(vm):
    """Bus and unit → GiB and datastore."""
    buses = {
        each.key: each.busNumber
        for each in vm.config.hardware.device
        if isinstance(each, vim.vm.device.VirtualSCSIController)
    }
    found = [each for each in vm.config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk)]
    return {
        (buses[each.controllerKey], each.unitNumber): (
            each.capacityInBytes // GIB,
            each.backing.datastore.name,
        )
        for each in found
    }


def test_one_with_pvrdma_and_cloud_init(sandbox, tmp_path):
    site = yaml.safe_load(EXAMPLES["virtual_machine"].read_text())
    site |= {
        "distributed_switch": {"roce": {"hosts": {"esx1.small.test": ["vmnic1"]}}},
        "port_group": {"high-speed": {"switch": "roce"}},
    }
    machine = site["virtual_machine"]["sckubw01"]
    machine |= {
        "host": "esx1.small.test",
        "adapters": [
            {"network": "VM Network", "mac": MACS[0]},
            {"network": "high-speed", "type": "pvrdma", "mac": MACS[1]},
        ],
        "cloud_init": {"user_data": "user-data"},
    }
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    (waits,) = plan(path, sandbox).held
    assert (str(waits.key), waits.held.what) == (
        "virtual_machine/sckubw01",
        "virtual_machine/sckubw01: user-data is not there yet",
    )
    (tmp_path / "user-data").write_text("#cloud-config\n")
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    with administrator(sandbox) as si:
        vm = si.content.searchIndex.FindByInventoryPath("/dc/vm/sckubw01")
        cards = [
            (type(d).__name__.rpartition(".")[2], getattr(d, "deviceProtocol", None), d.macAddress)
            for d in vm.config.hardware.device
            if "Vmxnet3" in type(d).__name__
        ]
        assert cards == [("VirtualVmxnet3", None, MACS[0]), ("VirtualVmxnet3Vrdma", "rocev2", MACS[1])]
        assert vm.config.memoryReservationLockedToMax
        assert {o.key: o.value for o in vm.config.extraConfig}["guestinfo.userdata.encoding"] == "gzip+base64"
        assert disks(vm) == {(0, 1): (40, "local")}
    assert plan(path, sandbox).pending == ()
    (tmp_path / "user-data").unlink()
    report = drift(path, sandbox)
    assert (report.found, [warned.problem.why for warned in report.warnings]) == ((), [UNNOTED])
    (tmp_path / "user-data").write_text("#cloud-config\nntp: {enabled: true}\n")
    assert {str(i.key): {c.field for c in i.named} for i in plan(path, sandbox).pending} == {
        "virtual_machine/sckubw01": {"cloud_init.user_data"}
    }
    site["host_graphics"] = {"vgpu": {"hosts": ["esx1.small.test"], "type": "sharedDirect"}}
    machine |= {
        "adapters": [{"network": "high-speed"}],
        "vgpus": [T4],
        "disks": {"scsi1:0": {"size": "50GiB"}},
    }
    path.write_text(yaml.safe_dump(site))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    with administrator(sandbox) as si:
        vm = si.content.searchIndex.FindByInventoryPath("/dc/vm/sckubw01")
        (card,), (gpu,) = (
            [d for d in vm.config.hardware.device if isinstance(d, sort)]
            for sort in (vim.vm.device.VirtualEthernetCard, vim.vm.device.VirtualPCIPassthrough)
        )
        assert (type(card), card.backing.port.portgroupKey, gpu.backing.vgpu) == (
            vim.vm.device.VirtualVmxnet3,
            si.content.searchIndex.FindByInventoryPath("/dc/network/high-speed").key,
            T4,
        )
        assert disks(vm) == {(1, 0): (50, "local")}
    assert plan(path, sandbox).pending == ()
    (tmp_path / "user-data").unlink()
    outcome = apply(path, sandbox, destroy=True)
    assert made(outcome), endings(outcome)


def test_a_secret_whose_file_is_not_there_yet_holds_back_the_machine_that_it_is_for(tmp_path):
    secret = Secret("file", "later.txt", Sources(base=tmp_path))
    wanted = spec(**LIBRARY, properties={"guest.hostname": "w1", "password": secret})
    with pytest.raises(Awaited, match=r"later\.txt is not there yet") as awaited:
        decide("w1", wanted, None, offering(wanted))
    assert awaited.value.field == "properties.password"
    assert [type(step) for step in awaited.value.steps] == [Make, Start]


def test_an_existing_machine_needs_only_secrets_that_the_file_names_anew(tmp_path):
    secret = Secret("file", "later.txt", Sources(base=tmp_path))
    wanted = spec(**LIBRARY, properties={"password": secret})
    kept = {"password": "scrypt$a$b"}
    had = given(State(mark=OWN.committed(wanted.applied()), machine=TEMPLATE), kept)
    (found,) = look(wanted, kept, OFFERED, "", had).values()
    assert (found.stale, found.problem, bool(found.away)) == (False, "", True)
    renamed = spec(**LIBRARY, properties={"password": Secret("file", "other.txt", Sources(base=tmp_path))})
    (found,) = look(renamed, kept, OFFERED, "", had).values()
    assert found.stale


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return somebodys_machine(sandbox, name)


UNMANAGED = Entry(at="sckubw01", plant=unmanaged, inside="a VM holds its own disks")


CHANGED_FIELDS = [
    {"cpus": 6},
    {"memory": "32GiB"},
    {"reserve": True},
    {"disk": "64GiB"},
    {"disk": "32GiB"},
    {"disks": {"scsi0:1": {"size": "50GiB"}}},
    {"disks": {"scsi0:1": {"size": "30GiB"}}},
    {"disks": {"scsi0:1": {"size": "40GiB", "thin": False}}},
    {"extra": {"a.b": "c"}},
    {"power": "off"},
    {"adapters": []},
    {"cluster": "compute"},
    {"host": "esx2.small.test"},
    {"datastore": "shared"},
    {"folder": "gpu"},
    {"resource_pool": "gpu"},
    {"vgpus": ["grid_t4-8c"]},
    {"template": "centos-8"},
    {"adapters": [{"network": "VM Network", "mac": "00:50:56:00:00:0A"}]},
]
SLOW_TO_CHANGE = True
