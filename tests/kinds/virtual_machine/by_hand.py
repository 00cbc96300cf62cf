"""What somebody sets by hand on a VM of a site: its notes, shares and limits, and options of its own."""

from __future__ import annotations

from kinds.by_hand import ByHand, done
from pyVmomi import vim

from bfinfra.backends.vcenter import VCenter
from bfinfra.kinds.vcenter.base.machine.notes import MARK

SAID = {
    "template": "centos-7.6",
    "cluster": "farm",
    "datastore": "local",
    "cpus": 2,
    "memory": "4GiB",
    "adapters": [{"network": "VM Network"}],
    "power": "off",
}


def _moid(vcenter: VCenter) -> str:
    return next(each.moid for each in vcenter.machines.survey(MARK) if each.name == "ours")


def _hand(vcenter: VCenter) -> None:
    spec = vim.vm.ConfigSpec(
        annotation="by hand",
        cpuAllocation=vim.ResourceAllocationInfo(
            reservation=500, limit=4000, shares=vim.SharesInfo(level="high", shares=0)
        ),
        memoryAllocation=vim.ResourceAllocationInfo(limit=8192),
        cpuHotAddEnabled=True,
        extraConfig=[vim.option.OptionValue(key="by.hand", value="1")],
    )
    done(vcenter, vim.VirtualMachine, _moid(vcenter), "ReconfigVM_Task", spec)


def _unmark(vcenter: VCenter) -> None:
    spec = vim.vm.ConfigSpec(extraConfig=[vim.option.OptionValue(key=MARK, value="")])
    done(vcenter, vim.VirtualMachine, _moid(vcenter), "ReconfigVM_Task", spec)


BY_HAND = (
    ByHand(
        said=SAID,
        hand=_hand,
        unmark=_unmark,
        changed={**SAID, "cpus": 4},
        shown=frozenset({"cpus"}),
        moved=r"/inventory/VirtualMachine /dc/vm/ours/(config/hardware/numCPU|summary/config/numCpu)",
    ),
)
