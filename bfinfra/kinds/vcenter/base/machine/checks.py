"""Whether a host can take a VM, by what the survey shows: told before a running one is stopped. Pure, but for
`seen`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.esxi import Card, Room
from bfinfra.backends.vcenter.places import Cluster, Datastore, Host, Inventory, Network
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds import power
from bfinfra.kinds.vcenter.base.machine.state import MachineState
from bfinfra.model import compare
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.gpus import vgpu_profile, vgpus
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec
from bfinfra.model.suggest import few
from bfinfra.model.units import bytes_text

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

Reason = tuple[str, str]
"""The field of the site, and what a host lacks for it."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a VM to make or to change asks of its host. `memory`: bytes; `reserved`: whether the host has to
    keep all of it; `datastores`, `networks`: field → what it names, unless this site makes it.
    """

    key: Key
    cluster: Cluster
    host: Host | None = None
    """None: any of the cluster."""
    machine: Vm | None = None
    """The existing one."""
    cpus: int
    memory: int
    reserved: bool = False
    profiles: tuple[str, ...] = ()
    """Of its vGPUs, which `cards` asks for: a field."""
    cards: str = "vgpus"
    datastores: Mapping[str, Datastore] = field(default_factory=dict)
    networks: Mapping[str, Network] = field(default_factory=dict)

    @property
    def hosted(self) -> str:
        """The name of its host, "" for any."""
        return self.host.name if self.host else ""

    def hosts(self, inventory: Inventory) -> tuple[Host, ...]:
        """The hosts that may take it."""
        if self.host is not None:
            return (self.host,)
        return tuple(each for each in inventory.hosts if each.cluster == self.cluster.moid)


@dataclass(frozen=True)
class Seen:
    """`asked`: by VMs to make or to change; `rooms`: what the hosts that may take them have, by their ids;
    `sockets`: VM id → cores per socket, where the number of CPUs changes.
    """

    asked: tuple[Asked, ...] = ()
    rooms: Mapping[str, Room] = field(default_factory=dict)
    sockets: Mapping[str, int] = field(default_factory=dict)


def due(spec: Spec, state: MachineState | None, *, cpus: int, memory: int, reserved: bool | None) -> bool:
    """Whether a VM is made, started or may be changed: the file says something else, or it has other sizes.
    One that is adopted runs where it is, and only its mark is written. `memory` in bytes, 0 if it is
    not known; `reserved`: None if it doesn't matter.
    """
    if state is None or state.importing:
        return True
    if state.mark is None or compare.adopting(state.mark):
        return False
    machine = state.machine
    kept = machine.reserved if reserved is None else reserved
    same = (machine.cpus, machine.memory, machine.reserved) == (cpus, memory or machine.memory, kept)
    off = not machine.on and getattr(spec, "power", "on") == "on"
    return off or not same or state.applied != spec.applied()


def to_start(wanted: Specs, states: Specs, kind: type[Spec]) -> Iterator[tuple[Key, Vm]]:
    """The existing VMs of a kind that are off and are to run."""
    for key, spec in wanted.items():
        state = states.get(key)
        if not isinstance(spec, kind) or not isinstance(state, MachineState):
            continue
        stays = state.importing or compare.adopting(state.mark)
        if not stays and not state.machine.on and getattr(spec, "power", "on") == "on":
            yield key, state.machine


def seen(vcenter: VCenter, asked: Iterable[Asked], inventory: Inventory, *, rooms: bool) -> Seen:
    """What `conflicts` and `check_cpus` have to know; with `rooms` of the hosts, too. Raises RemoteError."""
    those = tuple(asked)
    hosts = {host.moid for each in those if rooms for host in each.hosts(inventory)}
    resized = [each.machine.moid for each in those if each.machine and each.machine.cpus != each.cpus]
    return Seen(
        those,
        vcenter.hosts.rooms(hosts) if hosts else {},
        vcenter.machines.sockets(resized) if resized else {},
    )


def conflicts(seen: Seen, inventory: Inventory, wanted: Specs, states: Specs) -> Iterator[Conflict]:
    """One for each VM that no host can take, and for those that one host can't take together. A host that
    this site has in maintenance mode leaves it before; what a VM that leaves the file reserves becomes free.
    """
    on, begun, rooms = dict[str, list[Asked]](), power.begun(states), seen.rooms
    ours = {each.machine.moid for each in seen.asked if each.machine} | {
        state.machine.moid
        for key, state in states.items()
        if key not in wanted and isinstance(state, MachineState)
    }
    for each in seen.asked:
        if each.host and each.host.cluster != each.cluster.moid:
            yield Conflict(
                Spot(each.key, "host"),
                f"{each.host.name} is not in the cluster {each.cluster.name}",
                next="write a host of that cluster, or the host's cluster",
            )
            continue
        if each.host and each.host.moid in rooms:
            on.setdefault(each.host.moid, []).append(each)
        hosts = each.hosts(inventory)
        able = [host for host in hosts if host.name in begun or not power.takes_none(host)]
        if hosts and not able and not (each.machine and each.machine.host in {host.moid for host in hosts}):
            yield _now(each, hosts)
        yield from _lacking(each, able or hosts, rooms, ours)
    for moid, together in on.items():
        yield from _memory(together, rooms[moid], ours)
        yield from _vgpus(together, rooms[moid], ours) if rooms[moid].cards else ()


def _now(asked: Asked, hosts: Iterable[Host]) -> Conflict:
    return Conflict(
        Spot(asked.key, "host" if asked.host else "cluster"),
        f"{asked.hosted} takes no VM now"
        if asked.host
        else f"no host of {asked.cluster.name} takes a VM now",
        why="; ".join(map(power.takes_none, hosts)),
        next="bring it back, or name another one" if asked.host else "bring one back first",
    )


def _lacking(
    asked: Asked, hosts: Collection[Host], rooms: Mapping[str, Room], ours: Collection[str]
) -> Iterator[Conflict]:
    lacks = {host.name: [*_lacks(asked, host, rooms.get(host.moid), ours)] for host in hosts}
    if not lacks or not all(lacks.values()):
        return
    fields = [{at for at, _ in reasons} for reasons in lacks.values()]
    at = next(iter(sorted(set.intersection(*fields))), "cluster")
    said = [
        f"{name} {', '.join(dict.fromkeys(why for _, why in reasons))}" for name, reasons in lacks.items()
    ]
    yield Conflict(
        Spot(asked.key, at),
        f"no host of {asked.cluster.name} can run it"
        if asked.host is None
        else f"{asked.host.name} can't run it",
        why=few(said),
        next="ask for less, or name other places",
    )


def _lacks(asked: Asked, host: Host, room: Room | None, ours: Collection[str]) -> Iterator[Reason]:
    for at, store in asked.datastores.items():
        if host.moid not in store.hosts:
            yield at, f"does not have the datastore {store.name}"
        elif not store.accessible:
            yield at, f"can't reach the datastore {store.name}, which is not accessible"
    if room is not None:
        yield from _short(asked, room, ours)


def _short(asked: Asked, room: Room, ours: Collection[str]) -> Iterator[Reason]:
    """What one VM alone lacks. What those of one host need together is checked for all of them."""
    for at, network in asked.networks.items():
        if network.moid not in room.networks:
            yield at, f"does not have the network {network.name}"
    if room.cpus and asked.cpus > room.cpus:
        yield "cpus", f"has {room.cpus} logical CPUs"
    others = sum(size for _, size in _others(room, ours).values())
    if asked.host is None and asked.reserved and room.memory and asked.memory > room.memory - others:
        kept = f", of which other VMs reserve {bytes_text(others)}" if others else ""
        yield "memory", f"has {bytes_text(room.memory)} of memory{kept}"
    for profile in asked.profiles:
        if profile not in room.profiles:
            yield asked.cards, f"offers no vGPU profile {profile}"
    if asked.host is None and room.cards and (hold := _too_few(Counter(asked.profiles), room.cards)):
        yield asked.cards, f"has cards for {hold}"


def _others(room: Room, ours: Collection[str]) -> dict[str, tuple[str, int]]:
    """The reservations that stay: not those of the VMs that are changed."""
    return {moid: each for moid, each in room.reserved.items() if moid not in ours}


def _memory(asked: Sequence[Asked], room: Room, ours: Collection[str]) -> Iterator[Conflict]:
    """VMs that together reserve more of a host than it has."""
    those = sorted((each for each in asked if each.reserved), key=lambda each: (-each.memory, each.key))
    others = _others(room, ours).values()
    need = sum(each.memory for each in those) + sum(size for _, size in others)
    if not those or not room.memory or need <= room.memory:
        return
    first, *rest = those
    takes = [f"{each.key} takes {bytes_text(each.memory)}" for each in rest]
    holds = [f"the VM {name} holds {bytes_text(size)}" for name, size in sorted(others)]
    yield Conflict(
        Spot(first.key, "memory"),
        f"its {bytes_text(first.memory)} don't fit on {first.hosted}, which has {bytes_text(room.memory)}",
        tuple(Spot(each.key, "memory") for each in rest),
        why="; ".join(["all of its memory is reserved", *takes, *holds]),
        next="lower memory, or use another host",
    )


def _vgpus(asked: Sequence[Asked], room: Room, ours: Collection[str]) -> Iterator[Conflict]:
    """VMs that together ask for more vGPUs than a host's cards hold; a warning if other VMs hold some."""
    those = sorted(
        (each for each in asked if each.profiles), key=lambda each: (-len(each.profiles), each.key)
    )
    profiles = Counter(profile for each in those for profile in each.profiles)
    free = [card for card in room.cards if card.holders <= {*ours}]
    if not (whole := _too_few(profiles, room.cards)) and not (now := _too_few(profiles, free)):
        return
    (first, *rest), count = those, len(room.cards)
    yield Conflict(
        Spot(first.key, first.cards),
        f"{profiles.total()} vGPUs are asked of {first.hosted}, "
        + (f"whose cards hold {whole}" if whole else f"where cards that no other VM uses hold {now}"),
        tuple(Spot(each.key, each.cards) for each in rest),
        why=f"it has {count} card{'' if count == 1 else 's'} for vGPUs; other VMs use {count - len(free)}",
        next="ask for fewer, or take a smaller profile",
        stops=bool(whole),
    )


def _too_few(profiles: Counter[str], cards: Sequence[Card]) -> str:
    """How many vGPUs of each profile the cards hold, if they don't hold all of these; "" if they do, or if
    the size of a card or a profile is not known.
    """
    if not all(card.memory for card in cards) or not all(map(vgpu_profile, profiles)):
        return ""
    holds = {each: sum(vgpus(card.memory, each) for card in cards) for each in profiles}
    if all(holds.values()) and sum(Fraction(profiles[each], holds[each]) for each in profiles) <= 1:
        return ""
    return ", ".join(f"{count} {profile}" for profile, count in holds.items())
