"""ESXi hosts as plain values: their PCI devices, and which VMs have them. Light, as reading a site imports
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.backends.vcenter.vm import Attached, Vm
from bfinfra.model.records import dataclass


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
class Room:
    """A host's memory, and what its running VMs reserve: id → name and bytes. The host keeps some of `memory`
    (bytes) for itself.
    """

    memory: int
    reserved: Mapping[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostDetail:
    """One host. `boot`: when it started, ISO 8601 or ""; `attributes`: custom attributes by name."""

    moid: str
    name: str
    cluster: str
    connected: bool
    maintenance: bool
    boot: str
    devices: tuple[PciDevice, ...]
    vgpu_profiles: tuple[str, ...]
    attributes: Mapping[str, str]
    holders: tuple[Holder, ...]
    datastores: frozenset[str]
    networks: frozenset[str]
    ref: Any = field(repr=False, compare=False, default=None)
