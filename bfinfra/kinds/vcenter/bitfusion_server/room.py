"""Checks whether servers fit on their host: the memory that they reserve, and the vGPUs of its cards. Pure,
but for `look`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.esxi import Room
from bfinfra.kinds.vcenter.bitfusion_server import sizing
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import State
from bfinfra.model import gpus
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import ResolvedRef
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key
from bfinfra.model.units import bytes_text

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

SERVER, HOST = "bitfusion_server", "gpu_host"


def look(
    vcenter: VCenter, specs: Mapping[str, Spec], states: Mapping[str, State], hosts: Mapping[Key, ResolvedRef]
) -> dict[str, Room]:
    """The memory of each host with a server to create or change; no other plan can exceed it. Raises
    RemoteError.
    """
    due = {spec.host for name, spec in specs.items() if not _as_applied(spec, states.get(name))}
    moids = {
        need.state.detail.moid: need.key.name
        for need in hosts.values()
        if need.state is not None and need.key.name in due
    }
    return {moids[moid]: room for moid, room in vcenter.hosts.rooms(moids).items()} if moids else {}


def conflicts(wanted: Specs, states: Specs, rooms: Mapping[str, Room]) -> Iterator[Conflict]:
    """Servers that together need more of a host than it has."""
    on: dict[str, dict[Key, Spec]] = {}
    for key, spec in wanted.items():
        if key.kind == SERVER and spec.gpus:
            on.setdefault(spec.host, {})[key] = spec
    for host, servers in on.items():
        if host in rooms:
            yield from _memory(host, servers, states, rooms[host], wanted.get(Key(HOST, host)))
        yield from _shares(
            host,
            {key: spec for key, spec in servers.items() if spec.attach == "vgpu"},
            states.get(Key(HOST, host)),
        )


def _as_applied(spec: Spec, state: State | None) -> bool:
    return (
        state is not None
        and not state.importing
        and state.mark is not None
        and state.mark.applied == spec.applied()
    )


def _memory(
    host: str, servers: Mapping[Key, Spec], states: Specs, room: Room, cards: object
) -> Iterator[Conflict]:
    sizes = {key: _size(spec, states.get(key), cards) for key, spec in servers.items()}
    ours = {state.machine.moid for key, state in states.items() if key.kind == SERVER}
    others = {name: size for moid, (name, size) in room.reserved.items() if moid not in ours}
    if not room.memory or sum(sizes.values()) + sum(others.values()) <= room.memory:
        return
    first, *rest = sorted(sizes, key=lambda key: (-sizes[key], key))
    takes = [f"{key} takes {bytes_text(sizes[key])}" for key in rest] + [
        f"the VM {name} holds {bytes_text(size)}" for name, size in sorted(others.items())
    ]
    yield Conflict(
        Spot(first, "memory"),
        f"its {bytes_text(sizes[first])} don't fit on {host}, which has {bytes_text(room.memory)}",
        tuple(Spot(key, "memory") for key in rest),
        why="; ".join(["all memory of a server with GPUs is reserved", *takes]),
        next="lower memory, or use another host",
    )


def _size(spec: Spec, state: State | None, cards: object) -> int:
    """A server's memory in bytes; that of the existing VM if its later size is unknown, 0 without
    one.
    """
    if spec.memory is not None:
        return spec.memory
    each = spec.gpu_memory or (
        sizing.of_profile(spec.vgpu_profile or "")
        if spec.attach == "vgpu"
        else _of_cards(getattr(cards, "passthrough", ()))
    )
    return sizing.memory(spec.gpus * each) if each else state.machine.memory if state is not None else 0


def _of_cards(passed: Iterable[object]) -> int:
    """The smallest memory of a card that a host passes through, in bytes; 0 if one is not known."""
    known = [
        getattr(each, "memory", None)
        or gpus.MEMORY.get((getattr(each, "vendor", None) or 0, getattr(each, "device", None) or 0), 0)
        for each in passed
    ]
    return min(known, default=0)


def _shares(host: str, servers: Mapping[Key, Spec], state: object) -> Iterator[Conflict]:
    """Compares the vGPUs of one size with how many fit on the cards. Nothing if the sizes differ or a card's
    memory is not known.
    """
    detail = getattr(state, "detail", None)
    cards = (
        [
            gpus.MEMORY.get((card.vendor, card.device))
            for card in detail.devices
            if card.display and not card.enabled
        ]
        if detail
        else []
    )
    profiles = {spec.vgpu_profile or "" for spec in servers.values()}
    size = sizing.of_profile(next(iter(profiles))) if len(profiles) == 1 else None
    if not servers or not size or None in cards:
        return
    room, asked = sum((card or 0) // size for card in cards), sum(spec.gpus for spec in servers.values())
    if asked > room:
        first, *rest = sorted(servers, key=lambda key: (-servers[key].gpus, key))
        yield Conflict(
            Spot(first, "gpus"),
            f"{asked} vGPUs {next(iter(profiles))} are asked of {host}, whose cards have room for {room}",
            tuple(Spot(key, "gpus") for key in rest),
            why=(
                f"it has {len(cards)} card{'' if len(cards) == 1 else 's'}; each vGPU takes "
                f"{bytes_text(size)}"
            ),
            next="lower gpus, or take a smaller profile",
        )
