"""Distributed switches and their port groups as plain values. Light, as reading a site imports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from bfinfra.backends.vcenter.places import Lookup, Thing, lookup
from bfinfra.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Switch:
    """A distributed switch. `hosts`: host's id → its NICs there; `gone`: how many of its members are hosts
    that vCenter no longer has; `version`: such as `8.0.0`; `mtu` in bytes.
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
    where: str = ""
    """Its path, such as `/DC0/network/roce`."""
    datacenter: str = ""
    gone: int = 0
    version_of_config: str = field(repr=False, compare=False, default="")
    """Of its configuration; `version` is its own."""


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
    version: str = field(repr=False, compare=False, default="")
    """Of its configuration."""


@dataclass(frozen=True)
class Networks:
    """The result of one read: the switches and port groups of all datacenters. `hosts`: ids by name;
    `folders`: datacenter's path → id of its network folder; `datacenter`: the path of the site's, "" if it
    names none.
    """

    switches: tuple[Switch, ...] = ()
    groups: tuple[PortGroup, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    datacenter: str = ""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Host's id → why it is as vCenter last saw it, of those that vCenter doesn't see."""

    def is_here(self, switch: Switch) -> bool:
        """Whether it is in the site's datacenter."""
        return self.datacenter in ("", switch.datacenter)

    @property
    def things(self) -> list[Thing]:
        """The switches of the site's datacenter, to look them up."""
        return [Thing(moid=s.moid, name=s.name, where=s.where) for s in self.switches if self.is_here(s)]

    def switch(self, text: str) -> Lookup[Thing]:
        """The switch of the site's datacenter that a name or a path means."""
        return lookup(self.things, text)


@dataclass(frozen=True)
class SwitchPlan:
    """The desired switch; NICs by host id. `leaving`: ids of hosts that it leaves; None and hosts that aren't
    named stay as they are.
    """

    name: str
    description: str
    mtu: int | None = None
    uplinks: tuple[str, ...] | None = None
    version: str = ""
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joining: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GroupPlan:
    """The desired port group; None stays as it is."""

    name: str
    description: str
    vlan: int | None = None
    ports: int | None = None
