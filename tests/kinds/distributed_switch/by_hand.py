"""What somebody sets by hand on a switch of a site that says the number of its uplinks alone."""

from __future__ import annotations

from kinds.by_hand import ByHand, done
from pyVmomi import vim

from bfinfra.backends.vcenter import VCenter, refs

VMWARE = vim.dvs.VmwareDistributedVirtualSwitch
VDS = vim.DistributedVirtualSwitch


def _hand(vcenter: VCenter) -> None:
    found = vcenter.switches.read(context=True)
    switch = next(each for each in found.switches if each.name == "ours")
    host = vcenter.session.read(
        lambda content: refs.refer(content, vim.HostSystem, found.hosts["esx1.small.test"])
    )
    nic = vim.dvs.HostMember.PnicSpec(pnicDevice="vmnic1")
    member = vim.dvs.HostMember.ConfigSpec(
        operation="add", host=host, backing=vim.dvs.HostMember.PnicBacking(pnicSpec=[nic])
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


BY_HAND = ByHand(
    said={"uplinks": 2},
    hand=_hand,
    unmark=_unmark,
    changed={"uplinks": 3},
    shown=frozenset({"uplinks"}),
    moved=r"/inventory/VmwareDistributedVirtualSwitch /dc/network/ours/config/uplinkPortPolicy/uplinkPortName/2",
)
