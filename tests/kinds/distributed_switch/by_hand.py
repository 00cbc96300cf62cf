"""What somebody sets by hand on a switch of a site that says its uplinks alone, or its hosts, too."""

from __future__ import annotations

from kinds.by_hand import ByHand, done
from pyVmomi import vim

from bfinfra.backends.vcenter import VCenter, refs

VMWARE = vim.dvs.VmwareDistributedVirtualSwitch
VDS = vim.DistributedVirtualSwitch


def _hand(vcenter: VCenter) -> None:
    found = vcenter.switches.read(context=True)
    switch = next(each for each in found.switches if each.name == "ours")
    moid = found.hosts["esx1.small.test"]
    host = vcenter.session.read(lambda content: refs.refer(content, vim.HostSystem, moid))
    nic = vim.dvs.HostMember.PnicSpec(pnicDevice="vmnic1", uplinkPortKey="7")
    member = vim.dvs.HostMember.ConfigSpec(
        operation="edit" if moid in switch.hosts else "add",
        host=host,
        backing=vim.dvs.HostMember.PnicBacking(pnicSpec=[nic]),
    )
    spec = VMWARE.ConfigSpec(
        description=f"by hand\n{switch.description}",
        maxMtu=9000,
        host=[member],
        uplinkPortPolicy=VDS.NameArrayUplinkPortPolicy(uplinkPortName=["RDMA-A", "RDMA-B"]),
        linkDiscoveryProtocolConfig=vim.host.LinkDiscoveryProtocolConfig(protocol="lldp", operation="both"),
    )
    done(vcenter, VDS, switch.moid, "ReconfigureDvs_Task", spec)


def _unmark(vcenter: VCenter) -> None:
    switch = next(each for each in vcenter.switches.read(context=False).switches if each.name == "ours")
    done(vcenter, VDS, switch.moid, "ReconfigureDvs_Task", VMWARE.ConfigSpec(description="by hand"))


CONFIG = "/inventory/VmwareDistributedVirtualSwitch /dc/network/ours/config"
MEMBER = {"uplinks": 2, "hosts": {"esx1.small.test": ["vmnic1"]}}
BY_HAND = (
    ByHand(
        said={"uplinks": 2},
        hand=_hand,
        unmark=_unmark,
        changed={"uplinks": 3},
        shown=frozenset({"uplinks"}),
        moved=rf"{CONFIG}/uplinkPortPolicy/uplinkPortName/2",
    ),
    ByHand(
        said=MEMBER,
        hand=_hand,
        unmark=_unmark,
        changed={**MEMBER, "hosts": {"esx1.small.test": ["vmnic1", "vmnic0"]}},
        shown=frozenset({"hosts.esx1.small.test"}),
        moved=rf"{CONFIG}/host/0/(config/backing/pnicSpec/1/.*|uplinkPortKey/1)",
    ),
)
