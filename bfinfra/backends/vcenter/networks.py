"""Distributed switches and their port groups as plain values. Light: reading a site imports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Switch:
    """A distributed switch. `hosts`: the NICs that it has on each host, by the host's id; `version`: as
    `8.0.0`; `mtu` in bytes.
    """

    moid: str
    name: str
    uuid: str
    folder: str
    description: str
    mtu: int
    version: str
    uplinks: tuple[str, ...]
    hosts: Mapping[str, tuple[str, ...]]
    ref: Any = field(repr=False, compare=False, default=None)


@dataclass(frozen=True, slots=True)
class PortGroup:
    """A port group. `vlan`: its id, 0 for none, None where it is a trunk or private; `uplink`: the switch's
    own, for NICs; `vms`: ids of the VMs on it.
    """

    moid: str
    name: str
    key: str
    switch: str
    description: str
    vlan: int | None
    ports: int
    uplink: bool
    vms: tuple[str, ...] = ()
    ref: Any = field(repr=False, compare=False, default=None)


@dataclass(frozen=True)
class Networks:
    """One reading. `hosts`: ids by name; `folders`: the network folder's id by datacenter."""

    switches: tuple[Switch, ...] = ()
    groups: tuple[PortGroup, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SwitchPlan:
    """What a switch is to be; NICs by host id. `leaving`: ids of hosts that it gives up."""

    name: str
    description: str
    mtu: int
    uplinks: tuple[str, ...]
    version: str = ""
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joining: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GroupPlan:
    """What a port group is to be."""

    name: str
    description: str
    vlan: int
    ports: int
