"""What somebody sets by hand on a host of a site that opens its firewall for PVRDMA: another rule set."""

from __future__ import annotations

from kinds.by_hand import ByHand

from bfinfra.backends.vcenter import VCenter

SAID = {"ruleset": "pvrdma", "hosts": ["esx1.small.test"]}


def _hand(vcenter: VCenter) -> None:
    settings = vcenter.host_settings
    host = settings.noted("bfinfra", everyone=True)["esx1.small.test"].moid
    settings.set_ruleset(host, "sshServer", on=False)


BY_HAND = (
    ByHand(
        said=SAID,
        hand=_hand,
        unmark=None,
        changed={**SAID, "enabled": False},
        shown=frozenset({"enabled", "hosts.esx1.small.test"}),
        moved=r"/inventory/HostSystem /dc/host/farm/esx1.small.test/config/firewall/ruleset/\d+/enabled",
    ),
)
