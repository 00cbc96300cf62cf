"""What somebody sets by hand on a port group of a site that says its switch alone."""

from __future__ import annotations

from kinds.by_hand import ByHand, done
from pyVmomi import vim

from bfinfra.backends.vcenter import VCenter

VMWARE = vim.dvs.VmwareDistributedVirtualSwitch
GROUP = vim.dvs.DistributedVirtualPortgroup


def _changed(vcenter: VCenter, mark: str, **more: object) -> None:
    group = next(each for each in vcenter.switches.read(context=False).groups if each.name == "ours")
    text = f"by hand\n{group.description}" if mark else "by hand"
    spec = GROUP.ConfigSpec(description=text, **more)
    done(vcenter, GROUP, group.moid, "ReconfigureDVPortgroup_Task", spec)


def _hand(vcenter: VCenter) -> None:
    flag = vim.BoolPolicy(inherited=False, value=True)
    security = VMWARE.SecurityPolicy(inherited=False, allowPromiscuous=flag)
    vlan = VMWARE.TrunkVlanSpec(inherited=False, vlanId=[vim.NumericRange(start=1, end=99)])
    port = VMWARE.VmwarePortConfigPolicy(securityPolicy=security, vlan=vlan)
    _changed(vcenter, "kept", type="ephemeral", autoExpand=False, defaultPortConfig=port, numPorts=4)


BY_HAND = (
    ByHand(
        said={"switch": "roce"},
        hand=_hand,
        unmark=lambda vcenter: _changed(vcenter, ""),
        changed={"switch": "roce", "ports": 16},
        shown=frozenset({"ports"}),
        moved=r"/inventory/DistributedVirtualPortgroup /dc/network/ours/config/numPorts|.*/summary/numPorts",
        beside={"distributed_switch": {"roce": {}}},
    ),
)
