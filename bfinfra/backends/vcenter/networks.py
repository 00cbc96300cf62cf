"""Distributed switches and their port groups as plain values. Light, as reading a site imports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Switch:
    """A distributed switch. `hosts`: host's id → its NICs there; `version`: such as `8.0.0`; `mtu` in
    bytes.
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
    """A port group. `vlan`: its id, 0 for none, None for a trunk or private VLAN; `uplink`: the switch's own,
    for NICs; `vms`: ids of its VMs.
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
    """The result of one read. `hosts`: ids by name; `folders`: datacenter → id of its network folder."""

    switches: tuple[Switch, ...] = ()
    groups: tuple[PortGroup, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SwitchPlan:
    """The desired switch; NICs by host id. `leaving`: ids of hosts that it leaves."""

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
    """The desired port group."""

    name: str
    description: str
    vlan: int
    ports: int
