"""Settings of hosts besides their devices, as plain values. Light, as reading a site imports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.model.records import dataclass

Value = str | int | bool


@dataclass(frozen=True, slots=True)
class Noted:
    """A host or cluster, with its custom attributes that have the requested prefix. `lost`: why it is as
    vCenter last saw it, if that was asked.
    """

    moid: str
    notes: Mapping[str, str] = field(default_factory=dict)
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Vmk:
    """A VMkernel adapter. `group`: key of its distributed port group, or ""; `address`: `192.168.0.24/24`, or
    dhcp.
    """

    device: str
    group: str
    address: str
    mtu: int


@dataclass(frozen=True, slots=True)
class VmkPlan:
    """The desired adapter; `switch`: UUID of the distributed switch of its port group."""

    switch: str
    group: str
    address: str
    mtu: int


@dataclass(frozen=True, slots=True)
class HostSetup:
    """A host's set-up. `ntp`: its time servers; `cards`: `0000:3b:00.0 10de:1eb8`; `graphics`: the type for
    new machines; `firmware`: its version, or "".
    """

    ntp: tuple[str, ...]
    ntp_runs: bool
    model: str
    build: str
    cards: frozenset[str]
    graphics: str
    firmware: str = ""
