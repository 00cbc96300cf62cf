"""Compares an existing VM with its target: the differences in the site's words, and the one reconfiguration
that removes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bfinfra.backends.ova import Ova
from bfinfra.backends.vcenter.vm import Attach, Attached, Nic
from bfinfra.kinds.vcenter.base.machine.hardware import check_cpus, grows
from bfinfra.kinds.vcenter.bitfusion_server import registration
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import MMIO, MMIO_SIZE, OVA, BitfusionServerFacts, State
from bfinfra.kinds.vcenter.bitfusion_server.target import Adapter, Target
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret
from bfinfra.model.units import bytes_text

ALIVE = frozenset({"networks", "disk"})
"""Fields that can change while the VM runs. To add or remove an adapter, or to give one another MAC address,
the VM must be off.
"""


@dataclass(frozen=True)
class Difference:
    """`changes` for people; `hardware`: the fields of the reconfiguration; `properties`: those to write;
    `off`: the VM must be off for it; `later`: the port group that this site has still to make.
    """

    changes: tuple[Change, ...]
    off: bool
    hardware: Mapping[str, Any]
    properties: Mapping[str, str | Secret]
    later: Unknown | None


def between(name: str, spec: Spec, state: State, target: Target, facts: BitfusionServerFacts) -> Difference:
    """The differences that a reconfiguration can remove. `misplaced` returns the others."""
    machine = state.machine
    attach, drop = _devices(machine.pci, target.attach)
    adapters, net_changes = _adapters(state, target, facts)
    values, value_changes = _properties(name, spec, state, target, facts)
    grow = _grown(spec, state, target)
    window, wanted = _window(machine.extra), _window(target.extra)
    extra = (
        {
            key: target.extra.get(key, "")
            for key in (MMIO, MMIO_SIZE)
            if machine.extra.get(key, "") != target.extra.get(key, "")
        }
        if window != wanted
        else {}
    )
    changes = [
        *_plain(state, target, facts),
        *([Change("gpus", _pci_now(machine.pci), _pci_wanted(target.attach))] if attach or drop else []),
        *([Change("mmio", window, wanted)] if extra else []),
        *net_changes,
        *(
            [Change("disk", bytes_text(machine.disks[0].capacity), bytes_text(target.disk or 0))]
            if grow
            else []
        ),
        *value_changes,
    ]
    fields = {change.field for change in changes}
    sized = bool({"memory", "reservation"} & fields)
    hardware = {
        "cpus": target.cpus if "cpus" in fields else None,
        "memory": target.memory if sized else None,
        "reserve": True if sized else None,
        "firmware": "efi" if "firmware" in fields else None,
        "extra": extra,
        "attach": attach,
        **adapters._asdict(),
        "drop": (*drop, *adapters.drop),
        "grow": grow,
    }
    off = any(each.partition(".")[0] not in ALIVE for each in fields) or bool(
        adapters.macs or adapters.add_nics or adapters.drop
    )
    places = (*adapters.nics.values(), *adapters.add_nics)
    later = next((each for each in places if isinstance(each, Unknown)), None)
    return Difference(tuple(changes), off, hardware, values, later)


def misplaced(state: State, target: Target, spec: Spec) -> tuple[Change, ...]:
    """The differences that only a new VM can remove: another appliance, another host, another datastore."""
    machine, found = state.machine, []
    if (now := machine.extra.get(OVA)) and now != target.release:
        found.append(Change("ova", now[:12], target.release[:12]))
    if state.host != spec.host:
        found.append(Change("host", state.host, spec.host))
    if target.datastore not in machine.datastores:
        found.append(Change("datastore", "another", spec.datastore))
    return tuple(found)


def _grown(spec: Spec, state: State, target: Target) -> dict[int, int]:
    """Disk key → capacity in bytes, if the first disk has to grow. Raises Refusal for what vSphere can't do
    to an existing disk.
    """
    machine, applied = state.machine, state.applied
    if (
        applied
        and applied.get("disk_provisioning", "thin") != spec.disk_provisioning
        and any(d.thin not in (None, target.thin) for d in machine.disks)
    ):
        before = applied.get("disk_provisioning", "thin")
        raise Refusal(
            f"the disks of {machine.name} are {before}",
            field="disk_provisioning",
            why="how a disk takes space is decided when it is created",
            next=f"write {before}, or convert them in vCenter first",
        )
    first = next(iter(machine.disks), None)
    return grows(first, target.disk, machine.name, "disk") if first and target.disk is not None else {}


def _plain(state: State, target: Target, facts: BitfusionServerFacts) -> list[Change]:
    now, machine = [], state.machine
    check_cpus(machine, target.cpus, facts.sockets.get(machine.moid))
    if machine.cpus != target.cpus:
        now.append(Change("cpus", machine.cpus, target.cpus))
    if target.memory is not None and machine.memory != target.memory:
        now.append(Change("memory", bytes_text(machine.memory), bytes_text(target.memory)))
    if target.attach and not machine.reserved:
        now.append(Change("reservation", "some of the memory", "all of the memory"))
    if machine.firmware != "efi":
        now.append(Change("firmware", machine.firmware, "efi"))
    return now


def _window(extra: Mapping[str, str]) -> str:
    """The MMIO window of a VM's two options, as people read it."""
    size = extra.get(MMIO_SIZE, "")
    if extra.get(MMIO, "").upper() != "TRUE":
        return "off"
    return bytes_text(int(size) << 30) if size.isdecimal() else size or "on, without a size"


def _signature(device: Attached | Attach) -> Any:
    if isinstance(device, Attached):
        return device.profile or (device.address if device.way == "static" else device.allowed)
    return device.profile or device.address or ((device.vendor, device.device),)


def _devices(
    now: tuple[Attached, ...], wanted: tuple[Attach, ...]
) -> tuple[tuple[Attach, ...], tuple[int, ...]]:
    """The devices to attach, and the keys of the devices to remove."""
    missing = Counter(_signature(w) for w in wanted)
    drop = []
    for device in now:
        if missing[_signature(device)] > 0:
            missing[_signature(device)] -= 1
        else:
            drop.append(device.key)
    add: list[Attach] = []
    for device_wanted in wanted:
        if missing[_signature(device_wanted)] > 0:
            missing[_signature(device_wanted)] -= 1
            add.append(device_wanted)
    return tuple(add), tuple(drop)


def _pci_now(devices: tuple[Attached, ...]) -> list[str]:
    return sorted(
        d.profile
        or (d.address if d.way == "static" else "any " + ", ".join(f"{v:04x}:{p:04x}" for v, p in d.allowed))
        for d in devices
    )


def _pci_wanted(devices: tuple[Attach, ...]) -> list[str]:
    return sorted(d.profile or d.address or f"any {d.vendor:04x}:{d.device:04x}" for d in devices)


class Adapters(NamedTuple):
    """Fields of `Hardware`."""

    nics: Mapping[int, str | Unknown]
    macs: Mapping[int, str]
    add_nics: tuple[str | Unknown, ...]
    add_macs: tuple[str, ...]
    drop: tuple[int, ...]


def _adapters(state: State, target: Target, facts: BitfusionServerFacts) -> tuple[Adapters, list[Change]]:
    """What a reconfiguration does to the adapters, and the changes for people."""
    names = {n.moid: n.name for n in facts.inventory.networks}
    pairs, left = _pairs(state.machine.nics, target.adapters)
    kept = [(nic, a) for nic, a in pairs if nic is not None]
    new = [a for nic, a in pairs if nic is None]
    moved = [(nic, a) for nic, a in kept if nic.network != a.network]
    macs = [(nic, a) for nic, a in kept if a.mac and a.mac != nic.mac.lower()]
    changes = [
        *(Change(f"networks.{a.label}.network", names.get(n.network, n.network), a.name) for n, a in moved),
        *(Change(f"networks.{a.label}.mac", nic.mac, a.mac) for nic, a in macs),
        *(Change(f"networks.{a.label}.network", None, a.name) for a in new),
        *(Change(f"networks.{nic.label}", names.get(nic.network, nic.network), None) for nic in left),
    ]
    fields = Adapters(
        {nic.key: a.network for nic, a in moved},
        {nic.key: a.mac for nic, a in macs},
        tuple(a.network for a in new),
        tuple(a.mac for a in new),
        tuple(nic.key for nic in left),
    )
    return fields, changes


def _pairs(
    nics: Sequence[Nic], wanted: Sequence[Adapter]
) -> tuple[list[tuple[Nic | None, Adapter]], list[Nic]]:
    """Each of the site's adapters with the VM's, None for one to add; and those to remove. One with the
    wanted MAC address is taken first, the others in their order. If the file gives all adapters theirs and
    none is added or removed, all are taken in their order: the OVA counts its adapters.
    """
    ordered = len(nics) == len(wanted) and all(a.mac for a in wanted)
    known = {} if ordered else {nic.mac.lower(): nic for nic in nics}
    own = {a.label: known[a.mac] for a in wanted if a.mac in known}
    left = [nic for nic in nics if nic not in own.values()]
    pairs = [(own.get(a.label) or (left.pop(0) if left else None), a) for a in wanted]
    return pairs, left


def _properties(
    name: str, spec: Spec, state: State, target: Target, facts: BitfusionServerFacts
) -> tuple[dict[str, str | Secret], list[Change]]:
    """The properties to write: those that differ, secrets whose digest differs, and the default for each
    property that left the site.
    """
    machine = state.machine
    applied = state.applied.get("properties", {})
    ova = facts.ovas.get(spec.ova.text)
    declared = ova.declared if isinstance(ova, Ova) else facts.noted[name].declared
    given = {each.key for each in registration.asked(ova).values()} if isinstance(ova, Ova) else set()
    dropped = {key: declared[key].default for key in applied if key in declared and key not in given}
    wanted = {**dropped, **target.properties}
    values: dict[str, str | Secret] = {}
    changes: list[Change] = []
    for key, value in wanted.items():
        if isinstance(value, Secret):
            if (checked := facts.secrets.get((name, key))) and checked.stale:
                values[key] = value
                changes.append(Change(f"properties.{key}", "another value", str(value)))
        elif key in machine.properties and machine.properties[key] != value:
            values[key] = value
            now = "a secret" if key in state.digests else machine.properties[key]
            changes.append(Change(f"properties.{key}", now, value))
    return values, changes
