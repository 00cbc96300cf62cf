"""The guest: Tools start some time after power-on and report host name and addresses."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vapp import full_id, values_of
from bfinfra.sandbox.inventory.vmtypes import moid, vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

ADDRESS = re.compile(r"\b(ip|ipv4|address|cidr)\b", re.IGNORECASE)
NOT_OWN = re.compile(r"gateway|dns|ntp|vcenter|proxy|netmask|server", re.IGNORECASE)
FIRST_VM = 1001
RESERVED = 100  # addresses at the network's beginning that people give out by hand
HOSTNAME = re.compile(r"host\s*name|fqdn", re.IGNORECASE)


def start_guest(inventory: Inventory, vm: Managed) -> None:
    """Boot: the guest is up after the world's `boot` seconds, unless the machine was powered off or started
    again meanwhile.
    """
    started = vm["runtime"].bootTime

    def up() -> None:
        with inventory.lock:
            alive = (
                inventory.objects.get(vm.moid) is vm
                and vm["runtime"].powerState == "poweredOn"
                and vm["runtime"].bootTime == started
            )
            if alive:
                vm["guest"], vm["guestHeartbeatStatus"] = running_guest(inventory, vm), "green"
                inventory.touch(vm)
        if alive:
            inventory.powered(vm, on=True)

    inventory.clock.after(float(inventory.world.durations.get("boot", 5)), up)


def running_guest(inventory: Inventory, vm: Managed) -> Any:
    """The facts that VMware Tools report."""
    config = vm["config"]
    found = addresses(inventory, vm)
    nics = [each for each in config.hardware.device if isinstance(each, vim.vm.device.VirtualEthernetCard)]
    return vim.vm.GuestInfo(
        guestState="running",
        toolsStatus="toolsOk",
        toolsRunningStatus="guestToolsRunning",
        toolsVersionStatus2="guestToolsUnmanaged",
        toolsVersion="12389",
        guestId=config.guestId,
        guestFamily="linuxGuest",
        guestFullName=config.guestFullName,
        hostName=host_name(vm),
        ipAddress=str(found[0].ip) if found else None,
        guestOperationsReady=True,
        interactiveGuestOperationsReady=False,
        guestStateChangeSupported=True,
        net=[
            nic_info(inventory, nic, found[index] if index < len(found) else None)
            for index, nic in enumerate(nics)
        ],
    )


def nic_info(inventory: Inventory, nic: Any, address: Any) -> Any:
    """One adapter as the guest sees it."""
    network = (
        inventory.objects.get(moid(nic.backing.network)) if getattr(nic.backing, "network", None) else None
    )
    shown = [str(address.ip)] if address else []
    ip = (
        [
            vim.net.IpConfigInfo.IpAddress(
                ipAddress=str(address.ip), prefixLength=address.network.prefixlen, state="preferred"
            )
        ]
        if address
        else []
    )
    return vim.vm.GuestInfo.NicInfo(
        network=network.name if network else None,
        ipAddress=shown,
        macAddress=nic.macAddress,
        connected=True,
        deviceConfigId=nic.key,
        ipConfig=vim.net.IpConfigInfo(ipAddress=ip),
    )


def host_name(vm: Managed) -> str:
    """From `guestinfo.hostname` or the vApp property that is a host name; otherwise the machine's name."""
    for each in vm["config"].extraConfig:
        if each.key == "guestinfo.hostname":
            return str(each.value)
    vapp = vm["config"].vAppConfig
    values = values_of(vm)
    for each in vapp.property if vapp else ():
        if (
            HOSTNAME.search(f"{each.id} {each.label}")
            and not NOT_OWN.search(f"{each.id} {each.label}")
            and values.get(full_id(each))
        ):
            return values[full_id(each)]
    return vm.name


def addresses(inventory: Inventory, vm: Managed) -> list[Any]:
    """The guest's addresses, adapter by adapter: `guestinfo.ipaddress`, the vApp properties that hold
    addresses, else one by DHCP.
    """
    for each in vm["config"].extraConfig:
        if each.key == "guestinfo.ipaddress":
            return [ipaddress.ip_interface(str(each.value))]
    vapp, values, found = vm["config"].vAppConfig, values_of(vm), []
    for each in vapp.property if vapp else ():
        text = f"{each.id} {each.label}".replace("_", " ").replace("-", " ").replace(".", " ")
        if ADDRESS.search(text) and not NOT_OWN.search(text):
            found.append(interface(values.get(full_id(each), "")))
    return [each for each in found if each is not None] or leased(inventory, vm)


def interface(text: str) -> Any:
    """An address with its prefix, or None."""
    try:
        return ipaddress.ip_interface(text.strip()) if text.strip() else None
    except ValueError:
        return None


def leased(inventory: Inventory, vm: Managed) -> list[Any]:
    """One address of the world's guest network, the same each time the machine starts; none without an
    adapter or such a network.
    """
    has_nic = any(
        isinstance(each, vim.vm.device.VirtualEthernetCard) for each in vm["config"].hardware.device
    )
    if not has_nic or not inventory.world.guest_network:
        return []
    network = ipaddress.ip_network(inventory.world.guest_network, strict=False)
    first = min(RESERVED, network.num_addresses // 2)
    number = first + (int(vm.moid.rpartition("-")[2]) - FIRST_VM) % max(1, network.num_addresses - first - 1)
    return [ipaddress.ip_interface(f"{network[number]}/{network.prefixlen}")]
