"""What somebody sets by hand on a host of a site that says its graphics type: how cards are chosen and shared."""

from __future__ import annotations

from kinds.by_hand import ByHand

from bfinfra.backends.vcenter import VCenter

SAID = {"type": "sharedDirect", "hosts": ["esx1.small.test"]}


def _hand(vcenter: VCenter) -> None:
    settings = vcenter.host_settings
    host = settings.noted("bfinfra", everyone=True)["esx1.small.test"].moid
    settings.set_graphics(host, "placement", "consolidation")
    settings.set_graphics(host, "mode 0000:3b:00.0", "mixedSize")


BY_HAND = (
    ByHand(
        said=SAID,
        hand=_hand,
        unmark=None,
        changed={**SAID, "type": "shared"},
        shown=frozenset({"type", "hosts.esx1.small.test"}),
        moved=r"/inventory/HostSystem /dc/host/farm/esx1.small.test/config/"
        r"(graphicsConfig/hostDefaultGraphicsType|sharedPassthruGpuTypes/\d+)",
    ),
)
