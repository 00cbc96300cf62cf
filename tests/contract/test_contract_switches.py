"""Distributed switches and port groups: made, read, changed, removed."""

from __future__ import annotations

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.networks import GroupPlan, Networks, PortGroup, Switch, SwitchPlan
from bfinfra.model.errors import Exists, Rejected

PLAN = SwitchPlan("roce", "ours\nbfinfra:1 site=s address=distributed_switch/roce", 9000, ("Uplink 1",))
GROUP = GroupPlan("high-speed", "bfinfra:1 site=s address=port_group/high-speed", 31, 8)


def made(vcenter: VCenterSide) -> VCenter:
    """A switch and a port group that go with the test."""
    client = vcenter.open()
    folder = next(iter(client.switches.read(context=True).folders.values()))
    client.switches.create(folder, PLAN)
    vcenter.closing.append(
        lambda: [
            client.switches.remove(each.moid)
            for each in client.switches.read(context=False).switches
            if each.name == "roce"
        ]
    )
    client.switches.create_group(switch(client).moid, GROUP)
    vcenter.closing.append(
        lambda: [
            client.switches.remove(each.moid, group=True)
            for each in client.switches.read(context=False).groups
            if each.name == "high-speed"
        ]
    )
    return client


def switch(client: VCenter) -> Switch:
    return next(each for each in client.switches.read(context=False).switches if each.name == "roce")


def reconfigure(client: VCenter, plan: SwitchPlan) -> None:
    """As it is now."""
    there = switch(client)
    client.switches.reconfigure(there.moid, plan, there.version_of_config)


def group(client: VCenter) -> PortGroup:
    return next(each for each in client.switches.read(context=False).groups if each.name == "high-speed")


@call(
    "switches.create",
    "switches.create_group",
    "switches.read",
    case="a switch and a port group are read back as they were made",
)
def test_what_is_made_is_read_back(vcenter: VCenterSide) -> None:
    client = made(vcenter)
    found, on_it = switch(client), group(client)
    assert (found.description, found.mtu, found.uplinks, dict(found.hosts)) == (
        PLAN.description,
        9000,
        ("Uplink 1",),
        {},
    )
    assert (on_it.switch, on_it.vlan, on_it.ports, on_it.description, on_it.uplink) == (
        found.moid,
        31,
        8,
        GROUP.description,
        False,
    )
    assert vcenter.host in client.switches.read(context=True).hosts


@call("switches.create", case="the name is taken")
def test_a_name_is_taken_once(vcenter: VCenterSide, account: Account) -> None:
    client = made(vcenter)
    folder = next(iter(client.switches.read(context=True).folders.values()))
    with account.refused(Exists, Rejected):
        client.switches.create(folder, PLAN)
    with account.refused(Exists):
        client.switches.create_group(switch(client).moid, GROUP)


@call("switches.reconfigure_group", case="another VLAN and description")
def test_a_port_group_changes(vcenter: VCenterSide) -> None:
    client = made(vcenter)
    there = group(client)
    plan = GroupPlan("high-speed", "theirs", 32, 16)
    client.switches.reconfigure_group(there.moid, plan, there.version)
    found = group(client)
    assert (found.vlan, found.ports, found.description) == (32, 16, "theirs")


@call("switches.reconfigure", case="a host joins, and leaves")
def test_hosts_join_and_leave(vcenter: VCenterSide) -> None:
    client = made(vcenter)
    host = client.switches.read(context=True).hosts[vcenter.host]
    reconfigure(client, with_hosts({host: ()}, joining=frozenset({host})))
    assert list(switch(client).hosts) == [host]
    reconfigure(client, with_hosts({}, leaving=frozenset({host})))
    assert not switch(client).hosts


@call("switches.reconfigure", case="larger frames, another description, a host's NIC")
@lacks("vcsim: of a switch only hosts can be changed, and their NICs are not kept")
def test_a_switch_changes(vcenter: VCenterSide) -> None:
    client = made(vcenter)
    host = client.switches.read(context=True).hosts[vcenter.host]
    plan = SwitchPlan(
        "roce", "theirs", 1500, ("Uplink 1",), hosts={host: ("vmnic1",)}, joining=frozenset({host})
    )
    reconfigure(client, plan)
    found = switch(client)
    assert (found.description, found.mtu, found.hosts) == ("theirs", 1500, {host: ("vmnic1",)})


@call("switches.reconfigure", case="a NIC that the host doesn't have")
@lacks("vcsim: of a switch only hosts can be changed, and their NICs are not kept")
def test_a_nic_that_is_not_there_is_refused(vcenter: VCenterSide, account: Account) -> None:
    client = made(vcenter)
    host = client.switches.read(context=True).hosts[vcenter.host]
    with account.refused(Rejected):
        reconfigure(client, with_hosts({host: ("vmnic77",)}, joining=frozenset({host})))


@call("switches.remove", case="a port group, then its switch")
def test_what_is_removed_is_gone(vcenter: VCenterSide) -> None:
    client = made(vcenter)
    client.switches.remove(group(client).moid, group=True)
    client.switches.remove(switch(client).moid)
    found: Networks = client.switches.read(context=False)
    assert not {"roce", "high-speed"} & {each.name for each in (*found.switches, *found.groups)}


def with_hosts(hosts: dict[str, tuple[str, ...]], **how: frozenset[str]) -> SwitchPlan:
    return SwitchPlan(PLAN.name, PLAN.description, PLAN.mtu, PLAN.uplinks, hosts=hosts, **how)
