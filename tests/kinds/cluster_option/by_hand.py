"""What somebody sets by hand on a cluster of a site that sets an option of its DRS: another one, and DRS's own
settings.
"""

from __future__ import annotations

from kinds.by_hand import ByHand, done
from pyVmomi import vim

from bfinfra.backends.vcenter import VCenter

SAID = {"key": "VgpuMMAutomationTimeoutSecs", "value": "-1", "clusters": ["farm"]}


def _hand(vcenter: VCenter) -> None:
    cluster = next(each for each in vcenter.inventory.read().clusters if each.name == "farm")
    option = vim.option.OptionValue(key="TryBalanceVmsPerHost", value="1")
    drs = vim.cluster.DrsConfigInfo(defaultVmBehavior="manual", option=[option])
    spec = vim.cluster.ConfigSpecEx(drsConfig=drs)
    done(vcenter, vim.ClusterComputeResource, cluster.moid, "ReconfigureComputeResource_Task", spec, True)


BY_HAND = (
    ByHand(
        said=SAID,
        hand=_hand,
        unmark=None,
        changed={**SAID, "value": "60"},
        shown=frozenset({"value", "clusters.farm"}),
        moved=r"/inventory/ClusterComputeResource /dc/host/farm/configurationEx/drsConfig/option/\d+/value",
    ),
)
