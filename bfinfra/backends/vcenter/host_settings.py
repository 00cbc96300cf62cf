"""Settings of hosts: advanced options, firewall rule sets, VMkernel adapters. Bulk reads, and one small
method for each write.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
from collections.abc import Iterable
from typing import Any

from pyVmomi import vim

from bfinfra.backends.vcenter import attributes, properties, refs
from bfinfra.backends.vcenter.esxi_settings import HostSetup, Noted, Value, Vmk, VmkPlan
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import Busy, Missing, Rejected, Unreachable

DHCP = "dhcp"
SETUP = [
    "config.dateTimeInfo.ntpConfig.server",
    "config.service.service",
    "hardware.systemInfo.model",
    "config.product.build",
    "hardware.pciDevice",
    "config.graphicsConfig.hostDefaultGraphicsType",
    "hardware.biosInfo.biosVersion",
]
NTP = "ntpd"
DEFAULT_TYPE = "config.graphicsConfig.hostDefaultGraphicsType"
PLACEMENT = "config.graphicsConfig.sharedPassthruAssignmentPolicy"
CARDS = "config.graphicsConfig.deviceType"


class HostSettings:
    """Settings of the hosts of one vCenter. Hosts writes notes on hosts."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session
        self.defined: attributes.Defined | None = None
        """Reads the names of custom attributes; None: from vCenter each time."""

    def noted(self, prefix: str, *, everyone: bool) -> dict[str, Noted]:
        """The hosts by name, with their custom attributes that have this prefix. Unless `everyone`: {} if no
        such attribute exists.
        """
        return self._session.read(
            lambda content: dict(
                attributes.noted(content, vim.HostSystem, prefix, everyone=everyone, ask=self.defined)
            )
        )

    def connections(self, moids: Iterable[str]) -> dict[str, str]:
        """Host → its connection, in vSphere's words."""
        path = "runtime.connectionState"
        return dict(self._hosts(moids, [path], lambda row: (row.moid, str(row[path] or "disconnected"))))

    def options(self, moids: Iterable[str], keys: Iterable[str]) -> dict[str, dict[str, Value]]:
        """Host → key → value of advanced options, without those that the host doesn't have."""
        paths = {key: f'config.option["{key}"].value' for key in dict.fromkeys(keys)}

        def make(row: Row) -> tuple[str, dict[str, Value]]:
            return row.moid, {key: row[path] for key, path in paths.items() if row[path] is not None}

        return dict(self._hosts(moids, list(paths.values()), make))

    def rulesets(self, moids: Iterable[str], keys: Iterable[str]) -> dict[str, dict[str, bool]]:
        """Host → key → whether the firewall's rule set is on, without those that the host doesn't have."""
        paths = {key: f'config.firewall.ruleset["{key}"].enabled' for key in dict.fromkeys(keys)}

        def make(row: Row) -> tuple[str, dict[str, bool]]:
            return row.moid, {key: bool(row[path]) for key, path in paths.items() if row[path] is not None}

        return dict(self._hosts(moids, list(paths.values()), make))

    def vmks(self, moids: Iterable[str]) -> dict[str, tuple[Vmk, ...]]:
        """The VMkernel adapters by host."""
        return dict(
            self._hosts(
                moids,
                ["config.network.vnic"],
                lambda row: (row.moid, tuple(_vmk(nic) for nic in row["config.network.vnic"] or ())),
            )
        )

    def setups(self, moids: Iterable[str]) -> dict[str, HostSetup]:
        """Host → its set-up."""
        return dict(self._hosts(moids, SETUP, lambda row: (row.moid, _setup(row))))

    def packages(self, moids: Iterable[str]) -> dict[str, frozenset[str]]:
        """Host → its VIBs, `name version`, one call each. Hosts without such a manager, or that don't answer,
        are left out. Raises Forbidden without Host.Config.Image.
        """
        found: dict[str, frozenset[str]] = {}
        for moid in moids:
            with contextlib.suppress(Busy, Missing, Rejected, Unreachable):
                installed = self._session.read(functools.partial(_installed, moid=moid))
                found |= (
                    {}
                    if installed is None
                    else {moid: frozenset(f"{each.name} {each.version}" for each in installed)}
                )
        return found

    def graphics(self, moids: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return how hosts share their GPUs, in the API's words: host → key → value, with `type`,
        `placement`, and for each card `type 0000:3b:00.0` and `mode 0000:3b:00.0`, as far as the host reports
        them.
        """

        def make(row: Row) -> tuple[str, dict[str, str]]:
            found = {"type": row[DEFAULT_TYPE], "placement": row[PLACEMENT]}
            for each in row[CARDS] or ():
                found |= {f"type {each.deviceId}": each.graphicsType, f"mode {each.deviceId}": each.vgpuMode}
            return row.moid, {key: str(value) for key, value in found.items() if value}

        return dict(self._hosts(moids, [DEFAULT_TYPE, PLACEMENT, CARDS], make))

    def set_graphics(self, moid: str, key: str, value: str) -> None:
        """Set one of them, and keep all others."""

        def write(content: vim.ServiceInstanceContent) -> None:
            path = "config.graphicsConfig"
            config = properties.one(content, refs.refer(content, vim.HostSystem, moid), [path])[path]
            what, _, card = key.partition(" ")
            if key == "placement":
                config.sharedPassthruAssignmentPolicy = value
            elif key == "type":
                config.hostDefaultGraphicsType = value
            for each in config.deviceType or ():
                if each.deviceId == card:
                    setattr(each, "graphicsType" if what == "type" else "vgpuMode", value)
            _system(content, moid, "graphicsManager").UpdateGraphicsConfig(config)

        self._session.write(write)

    def set_option(self, moid: str, key: str, value: str) -> None:
        """Set an advanced option; the text becomes the option's type: number, boolean or text."""
        now = self.options([moid], [key]).get(moid, {}).get(key)
        typed: Value = (
            value == "True" if isinstance(now, bool) else type(now)(value) if isinstance(now, int) else value
        )
        changed = vim.option.OptionValue(key=key, value=typed)
        self._session.write(lambda content: _system(content, moid, "advancedOption").UpdateOptions([changed]))

    def set_ruleset(self, moid: str, key: str, *, on: bool) -> None:
        """Switch a firewall rule set on or off."""

        def write(content: vim.ServiceInstanceContent) -> None:
            system = _system(content, moid, "firewallSystem")
            (system.EnableRuleset if on else system.DisableRuleset)(key)

        self._session.write(write)

    def add_vmk(self, moid: str, plan: VmkPlan) -> None:
        """Add a VMkernel adapter; the host chooses its number."""
        self._session.write(
            lambda content: _system(content, moid, "networkSystem").AddVirtualNic("", _nic(plan))
        )

    def change_vmk(self, moid: str, device: str, *, address: str | None, mtu: int | None) -> None:
        """Change the address and MTU of an adapter; None stays as it is. Raises Missing if it is gone."""

        def write(content: vim.ServiceInstanceContent) -> None:
            path = "config.network.vnic"
            vnics = properties.one(content, refs.refer(content, vim.HostSystem, moid), [path])[path] or ()
            spec = next((each.spec for each in vnics if each.device == device), None)
            if spec is None:
                raise Missing(f"there is no adapter {device}", server=self._session.server)
            spec.mtu = spec.mtu if mtu is None else mtu
            if address is not None:
                six, spec.ip = spec.ip and spec.ip.ipV6Config, _ip(address)
                spec.ip.ipV6Config = six
            _system(content, moid, "networkSystem").UpdateVirtualNic(device, spec)

        self._session.write(write)

    def remove_vmk(self, moid: str, device: str) -> None:
        """Remove an adapter."""
        self._session.write(lambda content: _system(content, moid, "networkSystem").RemoveVirtualNic(device))

    def _hosts(self, moids: Iterable[str], paths: list[str], make: Any) -> list[Any]:
        listed = list(dict.fromkeys(moids))
        return (
            self._session.read(lambda content: properties.of(content, vim.HostSystem, listed, paths, make))
            if listed and paths
            else []
        )


def _system(content: vim.ServiceInstanceContent, moid: str, name: str) -> Any:
    path = f"configManager.{name}"
    return properties.one(content, refs.refer(content, vim.HostSystem, moid), [path])[path]


def _installed(content: vim.ServiceInstanceContent, moid: str) -> Any:
    manager = _system(content, moid, "imageConfigManager")
    return None if manager is None else manager.FetchSoftwarePackages()


def _setup(row: Row) -> HostSetup:
    cards = (
        f"{each.id} {each.vendorId & 0xFFFF:04x}:{each.deviceId & 0xFFFF:04x}"
        for each in row["hardware.pciDevice"] or ()
    )
    return HostSetup(
        tuple(map(str, row["config.dateTimeInfo.ntpConfig.server"] or ())),
        any(each.key == NTP and each.running for each in row["config.service.service"] or ()),
        str(row["hardware.systemInfo.model"] or ""),
        str(row["config.product.build"] or ""),
        frozenset(cards),
        str(row["config.graphicsConfig.hostDefaultGraphicsType"] or ""),
        str(row["hardware.biosInfo.biosVersion"] or ""),
    )


def _vmk(nic: Any) -> Vmk:
    ip, port = nic.spec.ip, nic.spec.distributedVirtualPort
    address = (
        DHCP
        if ip is None or ip.dhcp or not ip.ipAddress
        else f"{ip.ipAddress}/{ipaddress.ip_network(f'0.0.0.0/{ip.subnetMask}').prefixlen}"
    )
    return Vmk(
        nic.device, (port.portgroupKey or "") if port is not None else "", address, nic.spec.mtu or 1500
    )


def _nic(plan: VmkPlan) -> Any:
    return vim.host.VirtualNic.Specification(
        ip=_ip(plan.address),
        mtu=plan.mtu,
        distributedVirtualPort=vim.dvs.PortConnection(switchUuid=plan.switch, portgroupKey=plan.group),
    )


def _ip(address: str) -> Any:
    if address == DHCP:
        return vim.host.IpConfig(dhcp=True)
    interface = ipaddress.ip_interface(address)
    return vim.host.IpConfig(dhcp=False, ipAddress=str(interface.ip), subnetMask=str(interface.netmask))
