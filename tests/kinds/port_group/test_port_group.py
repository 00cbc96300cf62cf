"""Switches and port groups: what is decided, and what stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, network, port_group_on, switch
from pydantic import ValidationError
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator

from bfinfra.backends.vcenter.networks import Networks, PortGroup, Switch
from bfinfra.kinds.vcenter import port_group
from bfinfra.kinds.vcenter.distributed_switch import kind as distributed_switch
from bfinfra.kinds.vcenter.distributed_switch.kind import DistributedSwitch
from bfinfra.kinds.vcenter.port_group import PortGroupKind
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark, below
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

MARK = Mark("s", "distributed_switch/roce")
FACTS = Networks(hosts={"a": "host-1", "b": "host-2", "c": "host-3"}, folders={"dc": "group-n1"})


def context(facts=FACTS, **needs):
    return PlanContext(MARK, needs, facts=facts)


def state(spec, hosts, **changes):
    fields = {
        "mtu": spec.mtu,
        "version": "8.0.3",
        "uplinks": ("Uplink 1",),
        "description": below("for RDMA", MARK.committed(spec.applied())),
    }
    there = {FACTS.hosts[name]: nics for name, nics in hosts.items()}
    given = {"moid": "dvs-1", "name": "roce", "uuid": "u", "folder": "group-n1", "hosts": there}
    switch = Switch(**{**given, **fields, **changes})
    return distributed_switch.State(mark=MARK.committed(spec.applied()), switch=switch, hosts=hosts)


def test_hosts_join_change_and_leave_in_one_step():
    spec = distributed_switch.Spec(hosts={"a": ("vmnic1",), "b": ("vmnic2",)})
    (step,) = DistributedSwitch.steps(
        "roce", spec, state(spec, {"b": ("vmnic7",), "c": ("vmnic1",)}), context()
    )
    assert (step.plan.hosts, step.plan.joining, step.plan.leaving) == (
        {"host-1": ("vmnic1",), "host-2": ("vmnic2",)},
        {"host-1"},
        {"host-3"},
    )
    assert {change.field for change in step.changes} == {"hosts.a", "hosts.b", "hosts.c"}
    assert step.plan.description.startswith("for RDMA\nbfinfra:1 ")


def test_what_agrees_needs_nothing():
    spec = distributed_switch.Spec(mtu=9000, hosts={"a": ("vmnic1",)})
    assert DistributedSwitch.steps("roce", spec, state(spec, {"a": ("vmnic1",)}), context()) == ()


def test_a_second_adapter_beside_the_one_for_rdma_is_refused():
    with pytest.raises(ValidationError, match="more than its uplinks"):
        distributed_switch.Spec(hosts={"a": ("vmnic1", "vmnic2")})
    assert distributed_switch.Spec(uplinks=2, hosts={"a": ("vmnic1", "vmnic2")})


def test_a_host_that_is_not_there_and_another_version_are_refused_at_their_field():
    with pytest.raises(Refusal, match="no host d") as refused:
        DistributedSwitch.steps("roce", distributed_switch.Spec(hosts={"d": ()}), None, context())
    assert refused.value.field == "hosts.d"
    spec = distributed_switch.Spec(version="6.6.0")
    with pytest.raises(Refusal, match=r"is of version 8\.0\.3"):
        DistributedSwitch.steps("roce", spec, state(spec, {}), context())


def test_of_two_datacenters_one_must_be_meant():
    with pytest.raises(Refusal, match="2 datacenters"):
        DistributedSwitch.steps(
            "roce", distributed_switch.Spec(), None, context(Networks(folders={"x": "1", "y": "2"}))
        )


def group(**changes):
    given = {
        "moid": "dvportgroup-1",
        "name": "high-speed",
        "key": "k",
        "switch": "dvs-1",
        "description": "",
        "vlan": 31,
        "ports": 8,
        "uplink": False,
    }
    return PortGroup(**{**given, **changes})


@pytest.mark.parametrize(
    ("now", "fields"),
    [({"vlan": 30}, {"vlan"}), ({"vlan": None}, {"vlan"}), ({"ports": 4}, {"ports"}), ({"ports": 64}, set())],
)
@of_several("port_group.ports")
def test_a_port_group_is_compared_field_by_field_and_may_have_grown(now, fields):
    spec = port_group.Spec(switch="roce", vlan=31, ports=8)
    on = state(distributed_switch.Spec(), {}).switch
    found = port_group.State(mark=MARK.committed(spec.applied()), switch="roce", group=group(**now), on=on)
    steps = PortGroupKind.steps("high-speed", spec, found, context())
    assert {change.field for step in steps for change in step.changes} == fields


def test_a_port_group_waits_for_the_switch_that_the_site_makes():
    spec, key = port_group.Spec(switch="roce"), Key("distributed_switch", "roce")
    (step,) = PortGroupKind.steps(
        "high-speed", spec, None, context(switch=ResolvedRef(key, distributed_switch.Spec(), None))
    )
    assert step.moid == Unknown(key, "switch")
    with pytest.raises(Refusal, match="no distributed switch"):
        PortGroupKind.steps("high-speed", spec, None, context())


def test_a_port_group_can_not_move():
    on = state(distributed_switch.Spec(), {}, name="other").switch
    found = port_group.State(mark=MARK, switch="other", group=group(), on=on)
    with pytest.raises(Refusal, match="on the switch other"):
        PortGroupKind.steps("high-speed", port_group.Spec(switch="roce"), found, context())


def test_one_field_that_changes_is_the_one_that_is_named(sandbox, tmp_path):
    assert made(apply(EXAMPLES["port_group"], sandbox))
    site = yaml.safe_load(EXAMPLES["port_group"].read_text())
    site["port_group"]["high-speed"]["vlan"] = 32
    site["distributed_switch"]["roce"]["mtu"] = 9000
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    named = {
        str(item.key): {change.field for change in item.named}
        for item in plan(tmp_path / "site.yaml", sandbox).pending
    }
    assert named == {"port_group/high-speed": {"vlan"}, "distributed_switch/roce": {"mtu"}}
    outcome = apply(tmp_path / "site.yaml", sandbox)
    assert made(outcome), endings(outcome)
    assert plan(tmp_path / "site.yaml", sandbox).pending == ()


def test_a_port_group_with_a_machine_on_it_is_named_before_it_goes(sandbox):
    assert made(apply(EXAMPLES["port_group"], sandbox))
    with administrator(sandbox) as si:
        find = si.content.searchIndex.FindByInventoryPath
        port = vim.dvs.PortConnection(
            switchUuid=find("/dc/network/roce").uuid, portgroupKey=find("/dc/network/high-speed").key
        )
        card = vim.vm.device.VirtualVmxnet3(
            key=-1, backing=vim.vm.device.VirtualEthernetCard.DistributedVirtualPortBackingInfo(port=port)
        )
        change = vim.vm.device.VirtualDeviceSpec(operation="add", device=card)
        spec = vim.vm.ConfigSpec(
            name="theirs",
            guestId="other3xLinux64Guest",
            files=vim.vm.FileInfo(vmPathName="[local]"),
            numCPUs=1,
            memoryMB=64,
            deviceChange=[change],
        )
        WaitForTask(
            find("/dc/vm").CreateVM_Task(
                spec, find("/dc/host/farm/Resources"), find("/dc/host/farm/esx1.small.test")
            )
        )
    held = {
        str(item.key): item.contents for item in plan(EXAMPLES["port_group"], sandbox, destroy=True).items
    }
    assert held["port_group/high-speed"] == ("VM theirs is on it",)


def test_a_name_that_another_switch_of_the_folder_has_is_refused_and_one_of_another_folder_is_not():
    def facts(folder: str) -> Networks:
        switches = (
            Switch("dvs-1", "roce", "u1", "n", "", 1500, "8.0.3", (), {}, where="/dc/network/roce"),
            Switch("dvs-2", "theirs", "u2", "n", "", 1500, "8.0.3", (), {}, where=f"{folder}/theirs"),
        )
        group = PortGroup("dvportgroup-1", "vlan-20", "k", "dvs-2", "", 20, 8, uplink=False)
        return Networks(switches, (group,))

    spec = port_group.Spec(switch="roce")
    with pytest.raises(Refusal, match=r"the switch theirs has a port group vlan-20.*give it another name"):
        PortGroupKind.steps("vlan-20", spec, None, context(facts("/dc/network")))
    (step,) = PortGroupKind.steps("vlan-20", spec, None, context(facts("/dc/network/abroad")))
    assert step.moid == "dvs-1"


def there(sandbox: Running, name: str) -> bool:
    with administrator(sandbox) as si:
        return si.content.searchIndex.FindByInventoryPath(f"/dc/network/{name}") is not None


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    home = "roce" if there(sandbox, "roce") else "theirs-too"
    if not there(sandbox, home):
        switch(sandbox, home)
    port_group_on(sandbox, name, home)
    return network(sandbox, name)


UNMANAGED = Entry(at="high-speed", plant=unmanaged, inside="a VM or adapter on it stands in its way (above)")


CHANGED_FIELDS = [{"vlan": 32}, {"ports": 16}, {"ports": 4}]
