"""What somebody sets by hand on a pool of a site that says its guaranteed memory alone."""

from __future__ import annotations

from kinds.by_hand import ByHand
from pyVmomi import vim

from bfinfra.backends.vcenter import VCenter, refs
from bfinfra.backends.vcenter.pools import ResourcePools
from bfinfra.kinds.vcenter.resource_pool import MARKED


def _pools(vcenter: VCenter) -> tuple[ResourcePools, str]:
    pools = ResourcePools(vcenter.session, vcenter.tasks)
    return pools, next(each.moid for each in pools.read(MARKED.attribute) if each.name == "ours")


def _hand(vcenter: VCenter) -> None:
    _, moid = _pools(vcenter)

    def part(reservation: int | None) -> vim.ResourceAllocationInfo:
        return vim.ResourceAllocationInfo(
            reservation=reservation,
            limit=5000,
            expandableReservation=False,
            shares=vim.SharesInfo(level="custom", shares=1234),
        )

    spec = vim.ResourceConfigSpec(cpuAllocation=part(500), memoryAllocation=part(None))
    vcenter.session.write(
        lambda content: refs.refer(content, vim.ResourcePool, moid).UpdateConfig(None, spec)
    )


def _unmark(vcenter: VCenter) -> None:
    pools, moid = _pools(vcenter)
    pools.note(moid, MARKED.attribute, "by hand")


BY_HAND = (
    ByHand(
        said={"cluster": "farm", "memory": {"reservation": "1GiB"}},
        hand=_hand,
        unmark=_unmark,
        changed={"cluster": "farm", "memory": {"reservation": "2GiB"}},
        shown=frozenset({"memory.reservation"}),
        moved=r"/inventory/ResourcePool /dc/host/farm/Resources/ours/config/memoryAllocation/reservation",
    ),
)
