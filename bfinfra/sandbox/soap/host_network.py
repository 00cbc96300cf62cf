"""A host's VMkernel adapters and firewall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.hosts import need_connected

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

NETWORK, FIREWALL = "vim.host.NetworkSystem", "vim.host.FirewallSystem"


def host_of(inventory: Inventory, system: Managed) -> Managed:
    """The host that a system is part of."""
    return inventory.objects[system.hidden["host"]]


@computed(NETWORK, "networkInfo")
def _network(inventory: Inventory, system: Managed) -> Any:
    return host_of(inventory, system)["config"].network


@computed(FIREWALL, "firewallInfo")
def _firewall(inventory: Inventory, system: Managed) -> Any:
    return host_of(inventory, system)["config"].firewall


@method(NETWORK, "AddVirtualNic")
def add(call: Call, this: Managed, args: Any) -> str:
    """An adapter with the next free number. NotFound for a port group that isn't there, HostConfigFault where
    its switch isn't on the host, AlreadyExists for an address twice.
    """
    host = writable(call, this)
    check(call, host, args.nic)
    taken = {nic.device for nic in host["config"].network.vnic}
    device = next(name for number in range(256) if (name := f"vmk{number}") not in taken)
    made = vim.host.VirtualNic(
        device=device, key=f"key-vim.host.VirtualNic-{device}", portgroup=args.portgroup or "", spec=args.nic
    )
    made.spec.mac = f"00:50:56:6{len(device) % 10}:00:{int(device[3:]):02x}"
    made.spec.mtu = made.spec.mtu or 1500
    host["config"].network.vnic = [*host["config"].network.vnic, made]
    call.inventory.touch(host, this)
    return device


@method(NETWORK, "UpdateVirtualNic")
def change(call: Call, this: Managed, args: Any) -> None:
    """Other settings of an adapter."""
    host = writable(call, this)
    found = adapter(host, args.device)
    check(call, host, args.nic, found)
    for name in ("ip", "mtu", "distributedVirtualPort"):
        if getattr(args.nic, name) is not None:
            setattr(found.spec, name, getattr(args.nic, name))
    call.inventory.touch(host, this)


@method(NETWORK, "RemoveVirtualNic")
def remove(call: Call, this: Managed, args: Any) -> None:
    """Take an adapter away. NotFound."""
    host = writable(call, this)
    gone = adapter(host, args.device)
    host["config"].network.vnic = [nic for nic in host["config"].network.vnic if nic is not gone]
    call.inventory.touch(host, this)


def writable(call: Call, system: Managed) -> Managed:
    """The host, connected, and the caller allowed to."""
    host = host_of(call.inventory, system)
    call.need("Host.Config.Network", host)
    need_connected(host)
    return host


def adapter(host: Managed, device: str) -> Any:
    """The adapter of a name. NotFound."""
    for nic in host["config"].network.vnic:
        if nic.device == device:
            return nic
    raise vim.fault.NotFound(
        msg=f"The object or item referred to could not be found: {host.name} has no {device}."
    )


def check(call: Call, host: Managed, nic: Any, itself: Any = None) -> None:
    """Return whether a host can have such an adapter."""
    port = nic.distributedVirtualPort
    group = next(
        (
            each
            for each in call.inventory.of(vim.dvs.DistributedVirtualPortgroup)
            if port and each["key"] == port.portgroupKey
        ),
        None,
    )
    if port and group is None:
        raise vim.fault.NotFound(
            msg=f"The object or item referred to could not be found: port group {port.portgroupKey}."
        )
    if group is not None and group.ref not in host["network"]:
        raise vim.fault.HostConfigFault(msg=f"{host.name} is not on the switch of {group.name}.")
    address = nic.ip.ipAddress if nic.ip else None
    if address and any(
        each.spec.ip and each.spec.ip.ipAddress == address
        for each in host["config"].network.vnic
        if each is not itself
    ):
        raise vim.fault.AlreadyExists(
            name=address, msg=f"The specified key, name, or identifier '{address}' already exists."
        )


@method(FIREWALL, "EnableRuleset")
def enable(call: Call, this: Managed, args: Any) -> None:
    """Let pass what a rule set is about. NotFound."""
    switch(call, this, args.id, on=True)


@method(FIREWALL, "DisableRuleset")
def disable(call: Call, this: Managed, args: Any) -> None:
    """Stop what a rule set is about. NotFound."""
    switch(call, this, args.id, on=False)


def switch(call: Call, system: Managed, key: str, *, on: bool) -> None:
    """On or off."""
    host = host_of(call.inventory, system)
    call.need("Host.Config.NetService", host)
    need_connected(host)
    for each in host["config"].firewall.ruleset:
        if each.key == key:
            each.enabled = on
            call.inventory.touch(host, system)
            return
    raise vim.fault.NotFound(
        msg=f"The object or item referred to could not be found: {host.name} has no rule set {key}."
    )


@method(FIREWALL, "RefreshFirewall", writes=False)
def refresh(call: Call, this: Managed, _: object) -> None:
    """Nothing is stale here."""
    if this.hidden["host"] not in call.inventory.objects:
        raise vmodl.fault.ManagedObjectNotFound(obj=this.ref)
