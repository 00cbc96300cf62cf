"""What somebody sets by hand on a policy of a site that says its tags alone: its description, as a policy's
rules are compared, and written, as a whole.
"""

from __future__ import annotations

from kinds.by_hand import ByHand

from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.policies import Policy, StoragePolicies


def _described(vcenter: VCenter, *, marked: bool) -> None:
    policies = StoragePolicies(vcenter.session, vcenter.rest)
    found = next(each for each in policies.list() if each.name == "ours")
    text = f"by hand\n{found.description}" if marked else "by hand"
    policies.update(Policy("ours", text, id=found.id), tags=False)


BY_HAND = (
    ByHand(
        said={"tags": {"tier": ["fast"]}},
        hand=lambda vcenter: _described(vcenter, marked=True),
        unmark=lambda vcenter: _described(vcenter, marked=False),
        changed={"tags": {"tier": ["slow"]}},
        shown=frozenset({"tags.tier"}),
        moved=r"/rest/profiles/ours/constraints",
    ),
)
