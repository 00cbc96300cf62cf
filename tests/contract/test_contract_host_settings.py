"""Settings of hosts: advanced options, firewall rule sets, VMkernel adapters, and the notes about them."""

from __future__ import annotations

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.esxi_settings import VmkPlan
from bfinfra.backends.vcenter.networks import GroupPlan, SwitchPlan
from bfinfra.model.errors import Missing, Rejected

PREFIX = "bfinfra.option."
OPTION = "Config.HostAgent.log.level"


def host(vcenter: VCenterSide, client: VCenter) -> str:
    return client.switches.read(context=True).hosts[vcenter.host]


@call("host_settings.noted", case="attributes that begin so, on all hosts, and none where there is none")
def test_notes_are_found_by_how_they_begin(vcenter: VCenterSide) -> None:
    client = vcenter.open()
    assert client.host_settings.noted(PREFIX, everyone=False) == {}
    assert client.host_settings.noted(PREFIX, everyone=True)[vcenter.host].notes == {}
    moid = host(vcenter, client)
    client.hosts.set_attribute(moid, f"{PREFIX}x", "1")
    found = client.host_settings.noted(PREFIX, everyone=False)
    assert {name: dict(each.notes) for name, each in found.items() if each.notes} == {
        vcenter.host: {f"{PREFIX}x": "1"}
    }
    client.hosts.drop_attribute(moid, f"{PREFIX}x")


@call(
    "host_settings.setups",
    "host_settings.connections",
    case="what each host says of its build, its model and its cards, and that it is connected",
)
def test_how_a_host_is_set_up(vcenter: VCenterSide) -> None:
    client = vcenter.open()
    moid = host(vcenter, client)
    found = client.host_settings.setups([moid])[moid]
    assert found.build
    assert found.model
    assert found.firmware
    assert client.host_settings.connections([moid]) == {moid: "connected"}
    assert {"0000:17:00.0 10de:1db6", "0000:28:00.0 10de:1db6"} <= found.cards


@call("host_settings.packages", case="the VIBs of a host")
@lacks("vcsim: hosts have no image manager")
def test_what_is_installed_on_a_host(vcenter: VCenterSide) -> None:
    client = vcenter.open()
    moid = host(vcenter, client)
    assert "esx-base 8.0.3-0.0.24022510" in client.host_settings.packages([moid])[moid]


@call("host_settings.set_option", "host_settings.options", case="an option is set, and read by its key alone")
def test_an_option_is_set(vcenter: VCenterSide) -> None:
    client = vcenter.open()
    moid = host(vcenter, client)
    before = client.host_settings.options([moid], [OPTION, "No.Such"])[moid]
    assert list(before) == [OPTION]
    for value in ("verbose", str(before[OPTION])):
        client.host_settings.set_option(moid, OPTION, value)
        assert str(client.host_settings.options([moid], [OPTION])[moid][OPTION]) == value


@call(
    "host_settings.set_ruleset",
    "host_settings.rulesets",
    case="a rule set is switched, and one that isn't there",
)
@lacks("vcsim: a host's configuration doesn't show its firewall")
def test_a_rule_set_is_switched(vcenter: VCenterSide, account: Account) -> None:
    client = vcenter.open()
    moid = host(vcenter, client)
    for on in (False, True):
        client.host_settings.set_ruleset(moid, "sshServer", on=on)
        assert client.host_settings.rulesets([moid], ["sshServer", "nothing"]) == {moid: {"sshServer": on}}
    with account.refused(Missing, Rejected):
        client.host_settings.set_ruleset(moid, "nothing", on=True)


@call(
    "host_settings.add_vmk",
    "host_settings.change_vmk",
    "host_settings.remove_vmk",
    "host_settings.vmks",
    case="the life of a VMkernel adapter",
)
@lacks("vcsim: VMkernel adapters can't be made")
def test_the_life_of_a_vmkernel_adapter(vcenter: VCenterSide, account: Account) -> None:
    client = vcenter.open()
    context = client.switches.read(context=True)
    moid = context.hosts[vcenter.host]
    client.switches.create(
        next(iter(context.folders.values())),
        SwitchPlan("vmk", "", 9000, ("Uplink 1",), hosts={moid: ("vmnic1",)}, joining=frozenset({moid})),
    )
    switch = next(each for each in client.switches.read(context=False).switches if each.name == "vmk")
    client.switches.create_group(switch.moid, GroupPlan("vmk-net", "", 0, 8))
    group = next(each for each in client.switches.read(context=False).groups if each.name == "vmk-net")
    before = client.host_settings.vmks([moid])[moid]
    client.host_settings.add_vmk(moid, VmkPlan(switch.uuid, group.key, "192.168.0.24/24", 9000))
    (made,) = set(client.host_settings.vmks([moid])[moid]) - set(before)
    assert (made.group, made.address, made.mtu) == (group.key, "192.168.0.24/24", 9000)
    client.host_settings.change_vmk(moid, made.device, address="dhcp", mtu=1500)
    (changed,) = set(client.host_settings.vmks([moid])[moid]) - set(before)
    assert (changed.device, changed.address, changed.mtu) == (made.device, "dhcp", 1500)
    with account.refused(Rejected):
        client.switches.remove(group.moid, group=True)
    client.host_settings.remove_vmk(moid, made.device)
    assert client.host_settings.vmks([moid])[moid] == before


@call(
    "host_settings.set_graphics",
    "host_settings.graphics",
    case="type and placement, and a card's own type and mode, are set and read",
)
@lacks("vcsim: hosts have no graphics manager")
def test_the_graphics_type_is_set(vcenter: VCenterSide, account: Account) -> None:
    client = vcenter.open()
    moid = host(vcenter, client)
    before = client.host_settings.graphics([moid])[moid]
    assert before["type"] == "shared"
    others = {"type": "sharedDirect", "placement": "consolidation"}
    others |= {"type 0000:17:00.0": "sharedDirect", "mode 0000:17:00.0": "mixedSize"}
    for key, value in others.items():
        client.host_settings.set_graphics(moid, key, value)
    assert client.host_settings.graphics([moid])[moid] == {**before, **others}
    for key in others:
        client.host_settings.set_graphics(moid, key, before[key])
    assert client.host_settings.graphics([moid])[moid] == before
    with account.refused(Rejected):
        client.host_settings.set_graphics(moid, "type", "own")
