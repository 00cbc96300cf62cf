"""Whether a host can take a VM, by what the survey shows: told before a running one is stopped. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field

from bfinfra.backends.vcenter.esxi import Room
from bfinfra.backends.vcenter.places import Cluster, Datastore, Host, Inventory, Network
from bfinfra.kinds.power import takes_none
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.suggest import few
from bfinfra.model.units import bytes_text

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
    cpus: int
    memory: int
    reserved: bool = False
    profiles: tuple[str, ...] = ()
    """Of its vGPUs."""
    datastores: Mapping[str, Datastore] = field(default_factory=dict)
    networks: Mapping[str, Network] = field(default_factory=dict)

    def hosts(self, inventory: Inventory) -> tuple[Host, ...]:
        """The hosts that may take it."""
        there = tuple(each for each in inventory.hosts if each.cluster == self.cluster.moid)
        return there if self.host is None else (self.host,)


def conflicts(
    asked: Iterable[Asked], inventory: Inventory, rooms: Mapping[str, Room], ours: Collection[str]
) -> Iterator[Conflict]:
    """One for each VM that no host can take. `rooms`: by the hosts' ids, of those that were read; `ours`: the
    ids of this site's VMs, whose reservations may change.

    Hosts that only take none now are a warning: a run of this site may be what restarts them.
    """
    for each in asked:
        if each.host and each.host.cluster != each.cluster.moid:
            yield Conflict(
                Spot(each.key, "host"),
                f"{each.host.name} is not in the cluster {each.cluster.name}",
                next="write a host of that cluster, or the host's cluster",
            )
            continue
        hosts = each.hosts(inventory)
        able = [host for host in hosts if not takes_none(host)]
        if hosts and not able:
            yield _now(each, hosts)
        yield from _lacking(each, able or hosts, rooms, ours)


def _now(asked: Asked, hosts: Iterable[Host]) -> Conflict:
    return Conflict(
        Spot(asked.key, "host" if asked.host else "cluster"),
        f"no host of {asked.cluster.name} takes a VM now",
        why="; ".join(map(takes_none, hosts)),
        next="bring one back first",
        stops=False,
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
    for at, network in asked.networks.items():
        if network.moid not in room.networks:
            yield at, f"does not have the network {network.name}"
    if room.cpus and asked.cpus > room.cpus:
        yield "cpus", f"has {room.cpus} logical CPUs"
    others = sum(size for moid, (_, size) in room.reserved.items() if moid not in ours)
    if asked.reserved and room.memory and asked.memory > room.memory - others:
        kept = f", of which other VMs reserve {bytes_text(others)}" if others else ""
        yield "memory", f"has {bytes_text(room.memory)} of memory{kept}"
    for profile in asked.profiles:
        if profile not in room.profiles:
            yield "vgpus", f"offers no vGPU profile {profile}"
