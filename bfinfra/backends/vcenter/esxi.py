"""ESXi hosts as plain values: their PCI devices, which VMs have them, and who restarts them. Light, as
reading a site imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.backends.vcenter.vm import CONNECTED, Attached, Vm
from bfinfra.backends.words import safe
from bfinfra.model.records import dataclass

LOST = {"notResponding": "not responding"}


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One PCI device. `capable`, `enabled` (after the next reboot) and `active` (now) are about
    passthrough.
    """

    address: str
    vendor: int
    device: int
    name: str
    display: bool
    capable: bool
    enabled: bool
    active: bool


@dataclass(frozen=True, slots=True)
class Holder:
    """A VM on the host with PCI devices. `addresses`: those fixed or assigned to it; `mark`: the text of its
    mark.

    `machine`: the whole VM, with the requested extraConfig keys.
    """

    moid: str
    name: str
    on: bool
    mark: str
    addresses: tuple[str, ...]
    attached: tuple[Attached, ...]
    machine: Vm | None = field(repr=False, compare=False, default=None)


@dataclass(frozen=True, slots=True)
class Card:
    """A card that gives vGPUs: its memory in bytes, 0 if the host doesn't tell; the ids of VMs on it."""

    memory: int
    holders: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Room:
    """What a host has for VMs, and what its running ones reserve: id → name and bytes. The host keeps some of
    `memory` (bytes) for itself. `cpus`: logical ones; `profiles`: of its vGPUs, which `cards` give;
    `networks`: their ids.
    """

    memory: int
    reserved: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    cpus: int = 0
    profiles: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    networks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostDetail:
    """One host. `boot`: when it started, ISO 8601 or ""; `attributes`: custom attributes by name."""

    moid: str
    name: str
    cluster: str
    connection: str
    """In vSphere's words: connected, disconnected, notResponding."""
    maintenance: bool
    boot: str
    devices: tuple[PciDevice, ...]
    vgpu_profiles: tuple[str, ...]
    attributes: Mapping[str, str]
    holders: tuple[Holder, ...]
    datastores: frozenset[str]
    networks: frozenset[str]
    ref: Any = field(repr=False, compare=False, default=None)

    @property
    def connected(self) -> bool:
        """Whether vCenter sees it now."""
        return self.connection == CONNECTED


def lost_host(name: str, connection: str) -> str:
    """Return why a host is as vCenter last saw it; "" if vCenter sees it."""
    if connection == CONNECTED:
        return ""
    return f"{name} is {LOST.get(connection, connection)}: vCenter has no connection to it"


def lost_hosts(connections: Mapping[str, str], moids: Mapping[str, str]) -> dict[str, str]:
    """Return the same of those that vCenter doesn't see. `connections`: by id; `moids`: by name."""
    found = {name: lost_host(name, connections.get(moid, CONNECTED)) for name, moid in moids.items()}
    return {name: why for name, why in found.items() if why}


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease of another run. `holder`: its process, "" while it hasn't signed; `since`: when it took it."""

    key: int
    holder: str = ""
    since: str = ""
    count: str = ""

    @classmethod
    def decode(cls, key: int, text: str) -> Lease:
        """The lease of a definition with this value."""
        words = dict(word.split("=", 1) for word in text.split() if "=" in word)
        return cls(key, words.get("by", ""), words.get("since", ""), words.get("n", ""))

    def __str__(self) -> str:
        machine, _, number = self.holder.rpartition("/")
        who = (
            f"process {safe(number, 20)} on {safe(machine.partition('/')[0], 80)}"
            if machine
            else "another run"
        )
        return f"{who} since {safe(self.since, 40)}" if self.since else who
