"""What somebody sets by hand on the adapter of a site that says its address alone."""

from __future__ import annotations

from kinds.by_hand import ByHand
from pyVmomi import vim

from bfinfra.backends.vcenter import VCenter, properties, refs

SAID = {"port_group": "high-speed", "hosts": {"esx1.small.test": "192.168.0.24/24"}}


def _hand(vcenter: VCenter) -> None:
    host = vcenter.host_settings.noted("bfinfra", everyone=True)["esx1.small.test"].moid

    def write(content: vim.ServiceInstanceContent) -> None:
        it = refs.refer(content, vim.HostSystem, host)
        found = properties.one(content, it, ["config.network.vnic", "configManager.networkSystem"])
        vnic = next(
            each
            for each in found["config.network.vnic"]
            if each.spec.ip and each.spec.ip.ipAddress == "192.168.0.24"
        )
        vnic.spec.mtu = 1400
        vnic.spec.ip.ipV6Config = vim.host.IpConfig.IpV6AddressConfiguration(autoConfigurationEnabled=True)
        found["configManager.networkSystem"].UpdateVirtualNic(vnic.device, vnic.spec)

    vcenter.session.write(write)


BY_HAND = (
    ByHand(
        said=SAID,
        hand=_hand,
        unmark=None,
        changed={**SAID, "hosts": {"esx1.small.test": "192.168.0.25/24"}},
        shown=frozenset({"hosts.esx1.small.test"}),
        moved=r"/inventory/HostSystem /dc/host/farm/esx1.small.test/config/network/vnic/\d+/spec/ip/ipAddress",
        beside={
            "distributed_switch": {"roce": {"hosts": {"esx1.small.test": ["vmnic1"]}}},
            "port_group": {"high-speed": {"switch": "roce"}},
        },
    ),
)
