"""Clusters and machines that need more vGPUs than the hosts of their vSphere cluster have. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.base.pools import NodeDemand
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.gpus import vgpu_profile
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.vgpus import HostOffer

SLICES = 7  # of a card, by MIG
TOLERANCE = 1.07  # cards report somewhat less memory than the GiB in their name
WHOSE = {"vks_cluster": "its nodes", "service_vm": "this machine and the others of the site"}


def conflicts(kind: str, wanted: Specs, states: Specs, environment: Environment) -> Iterator[Conflict]:
    """More vGPUs than there are, as conflicts at the resources of one kind, and nodes without a spare one
    while they are replaced. Specs with `needs` are counted.
    """
    soon = {host for key, spec in wanted.items() if key.kind == "host_graphics" for host in _shared(spec)}
    passed = {key.name for key in (*wanted, *states) if key.kind == "gpu_host"}
    by_cluster: dict[str, list[tuple[NodeDemand, Counter[str]]]] = {}
    for need in _needs(wanted):
        vgpus = _vgpus(need.vm_class, wanted, environment)
        if vgpus and (home := _home(need.namespace, wanted, environment)):
            by_cluster.setdefault(home, []).append((need, vgpus))
    for cluster, here in by_cluster.items():
        hosts = [each for each in environment.offers if each.cluster == cluster]
        later = {each.host for each in hosts if each.host in soon and not each.profiles}
        for profile in dict.fromkeys(name for _, each in here for name in each):
            if any(not _known(each, profile, passed) for each in hosts if each.host in later):
                continue
            those = [(need, each[profile]) for need, each in here if each[profile]]
            slots = sum(_slots(each, profile, later=each.host in later) for each in hosts)
            if slots and any(need.spot.key.kind == kind for need, _ in those):
                reserved = _reserved(profile, cluster, wanted, environment)
                yield from _of(kind, profile, those, (slots, reserved, cluster))


def _needs(wanted: Specs) -> Iterator[NodeDemand]:
    for key, spec in wanted.items():
        if hasattr(spec, "needs"):
            yield from spec.needs(key)


def _of(
    kind: str, profile: str, needs: Sequence[tuple[NodeDemand, int]], room: tuple[int, Counter[str], str]
) -> Iterator[Conflict]:
    """`needs`: each with the vGPUs of one of its nodes; `room`: what the hosts of a cluster have, and what
    each of its namespaces reserves.
    """
    slots, reserved, cluster = room
    takes: Counter[str] = Counter()
    for need, each in needs:
        takes[need.namespace] += need.most * each
    most = sum(takes.values())
    kept = sum(max(0, count - takes[space]) for space, count in reserved.items())
    own = [need for need, _ in needs if need.spot.key.kind == kind]
    if most + kept > slots:
        more = f", namespaces reserve {kept} more" if kept else ""
        others = tuple(need.spot for need, _ in needs if need is not own[0])
        yield Conflict(
            own[0].spot,
            f"{WHOSE[kind]} can take {most} vGPUs {profile}{more}; the hosts of {cluster} have {slots}",
            others,
            next=f"write fewer, or add hosts to {cluster}",
        )
        return
    for need, each in needs:
        if need.spot.key.kind == kind and need.most and most + kept + need.surge * each > slots:
            yield Conflict(
                Spot(need.spot.key, need.spot.field.removesuffix(".vm_class")),
                f"no vGPU {profile} is spare while its nodes are replaced",
                why=f"all take or reserve {most + kept} of {slots}, and {need.surge * each} more come before "
                "old ones go",
                next="write rollout: {max_surge: 0, max_unavailable: 1}",
            )


def _reserved(profile: str, cluster: str, wanted: Specs, environment: Environment) -> Counter[str]:
    """The vGPUs that each namespace of a vSphere cluster reserves."""
    found: Counter[str] = Counter()
    for key, spec in wanted.items():
        if key.kind == "supervisor_namespace" and getattr(spec, "cluster", "") == cluster:
            for name, count in getattr(spec, "reserved", {}).items():
                found[key.name] += count * _vgpus(name, wanted, environment)[profile]
    return found


def _vgpus(vm_class: str, wanted: Specs, environment: Environment) -> Counter[str]:
    """The vGPUs of a machine of a class."""
    found = wanted.get(Key("vm_class", vm_class)) or environment.classes.get(vm_class)
    return Counter(getattr(found, "vgpus", ()))


def _home(namespace: str, wanted: Specs, environment: Environment) -> str:
    """The vSphere cluster of a namespace; "" if unknown."""
    own = wanted.get(Key("supervisor_namespace", namespace))
    there = environment.spaces.get(namespace)
    return str(getattr(own, "cluster", "") or (there.cluster if there else ""))


def _shared(graphics: object) -> tuple[str, ...]:
    """The hosts that give vGPUs by a `host_graphics` of the site."""
    hosts: tuple[str, ...] = getattr(graphics, "hosts", ())
    return hosts if getattr(graphics, "type", "") == "sharedDirect" else ()


def _known(host: HostOffer, profile: str, passed: Collection[str]) -> bool:
    """Return whether it is known how many vGPUs a host will have once it shares its cards: it tells their
    memory, and none of them is passed through now.
    """
    known = host.host not in passed and vgpu_profile(profile) is not None
    return known and bool(host.cards) and all(host.cards)


def _slots(host: HostOffer, profile: str, *, later: bool) -> int:
    """Return how many vGPUs of a profile the host's cards hold; 0 if it doesn't offer it, or its name tells
    no size. `later`: the site still makes it offer vGPUs.
    """
    found = vgpu_profile(profile)
    if found is None or not (later or profile in host.profiles):
        return 0
    if found.slices:
        return SLICES // found.slices * len(host.cards)
    return sum(int(card * TOLERANCE / found.memory) for card in host.cards)
