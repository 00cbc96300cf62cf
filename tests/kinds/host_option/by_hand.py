"""What somebody sets by hand on a host of a site that sets one of its options: another one."""

from __future__ import annotations

from kinds.by_hand import ByHand

from bfinfra.backends.vcenter import VCenter

SAID = {"key": "Net.PVRDMAVmknic", "value": "vmk3", "hosts": ["esx1.small.test"]}


def _hand(vcenter: VCenter) -> None:
    settings = vcenter.host_settings
    host = settings.noted("bfinfra", everyone=True)["esx1.small.test"].moid
    settings.set_option(host, "UserVars.SuppressShellWarning", "1")
    settings.set_ruleset(host, "sshServer", on=False)


BY_HAND = (
    ByHand(
        said=SAID,
        hand=_hand,
        unmark=None,
        changed={**SAID, "value": "vmk4"},
        shown=frozenset({"value", "hosts.esx1.small.test"}),
        moved=r"/inventory/HostSystem /dc/host/farm/esx1.small.test/config/option/\d+/value",
    ),
)
