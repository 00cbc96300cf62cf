"""Describes an existing Bitfusion server as a site writes it."""

from __future__ import annotations

import contextlib
import ipaddress
import re

from bfinfra.backends.ova import Property
from bfinfra.backends.vcenter.vm import Origin, Vm
from bfinfra.kinds.vcenter.base.machine.places import MachinePlaces, unplaced
from bfinfra.kinds.vcenter.bitfusion_server.properties import WHAT, among, telling
from bfinfra.kinds.vcenter.bitfusion_server.state import MMIO_SIZE, State
from bfinfra.model.description import Description, Path, variable

OVA = "downloads/bitfusion-server.ova"
GIB = 1 << 30
SECRET = re.compile(r"passw|passphrase|pwd|secret", re.IGNORECASE)


def description(state: State, origin: Origin, places: MachinePlaces) -> Description:
    """Its sizes, cards, places and properties. vCenter doesn't have the appliance's file and the secrets: the
    user must fill in those fields.
    """
    machine = state.machine
    networks, used = _networks(machine, origin, places)
    fields: dict[str, object] = {
        "ova": {"file": OVA},
        "host": places.host,
        **_gpus(machine),
        "cpus": machine.cpus,
        "memory": machine.memory,
        "datastore": places.datastore,
        "folder": places.folder,
        **({"resource_pool": places.pool} if places.pool else {}),
        **({"disk_provisioning": "thick"} if any(disk.thin is False for disk in machine.disks) else {}),
        "networks": networks,
    }
    derived = used | {each.key for each in among(_declared(origin)).values()}
    fields["properties"] = {
        key: value
        for key, value in sorted(machine.properties.items())
        if value != origin.defaults.get(key, "")
        and key not in derived
        and key not in _secrets(machine, origin)
    }
    return Description(machine.name, fields, state, _fill_in(machine, origin), unplaced(places))


def _fill_in(machine: Vm, origin: Origin) -> dict[Path, str]:
    found: dict[Path, str] = {("ova", "file"): f"the appliance that it was made from, {origin.product}"}
    for key in sorted(_secrets(machine, origin)):
        found["properties", key] = f"a secret, such as {{env: {variable(machine.name, key)}}}"
    return found


def _secrets(machine: Vm, origin: Origin) -> frozenset[str]:
    """The properties that hold secrets: declared as passwords, or called so. Servers may forget the types."""
    return origin.passwords | {key for key in machine.properties if SECRET.search(key)}


def _gpus(machine: Vm) -> dict[str, object]:
    ways = {each.way for each in machine.pci}
    way = next(iter(ways)) if len(ways) == 1 else "static"
    size = machine.extra.get(MMIO_SIZE, "")
    return {
        "gpus": len(machine.pci),
        "attach": way,
        **({"vgpu_profile": machine.pci[0].profile} if way == "vgpu" else {}),
        **({"mmio": int(size) * GIB} if size.isdecimal() and machine.pci else {}),
    }


def _networks(machine: Vm, origin: Origin, places: MachinePlaces) -> tuple[dict[str, object], set[str]]:
    """The adapters, each with the addresses that the properties give it; and the keys of those properties."""
    found: dict[str, object] = {}
    used: set[str] = set()
    for index, (nic, network) in enumerate(zip(machine.nics, places.networks, strict=True), start=1):
        keys = _keys(machine, origin, nic.label, index)
        address = _interface(
            *(machine.properties[keys[each]] for each in ("address", "netmask") if each in keys)
        )
        if address is None:
            keys = {}
        used |= set(keys.values())
        items: dict[str, object] = {"network": network}
        if address:
            items["address"] = address
        if gateway := machine.properties.get(keys.get("gateway", "")):
            items["gateway"] = gateway
        if names := machine.properties.get(keys.get("dns", "")):
            items["dns"] = [each.strip() for each in names.split(",")]
        if nic.manual:
            items["mac"] = nic.mac.lower()
        found[nic.label or f"Network {index}"] = items
    return found, used


def _keys(machine: Vm, origin: Origin, label: str, index: int) -> dict[str, str]:
    """The property for each item of an adapter, found by its key alone: so it is found again when the OVA is
    not there.
    """
    declared = tuple((key, "") for key in machine.properties if key not in origin.passwords)
    found = {item: telling(item, label, index, frozenset(), declared) for item in WHAT}
    return {item: keys[0] for item, keys in found.items() if len(keys) == 1 and machine.properties[keys[0]]}


def _interface(address: str = "", netmask: str = "") -> str | None:
    """Address and prefix, such as 172.24.210.80/24; None unless both are known."""
    with contextlib.suppress(ValueError):
        if address and (netmask or "/" in address):
            return str(ipaddress.ip_interface(f"{address}/{netmask}" if netmask else address))
    return None


def _declared(origin: Origin) -> tuple[Property, ...]:
    """The properties of the VM, with their labels."""
    return tuple(
        Property(key, user_configurable=True, password=key in origin.passwords, label=label)
        for key, label in origin.labels.items()
    )
