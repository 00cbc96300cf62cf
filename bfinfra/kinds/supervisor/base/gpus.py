"""Clusters and machines that need more vGPUs, or more vendor device groups, than the hosts of their vSphere
cluster have. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bfinfra.kinds.class_gpus import GROUP, VGPU, Gpu, parts, taken
from bfinfra.kinds.supervisor.base.fit import Environment, home
from bfinfra.kinds.supervisor.base.pools import NodeDemand
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.gpus import vgpu_profile, vgpus
from bfinfra.model.order import Specs

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.vgpus import HostOffer

WHOSE = {
    "tanzu_cluster": "its nodes",
    "vks_cluster": "its nodes",
    "service_vm": "this machine and the others of the site",
}


class Room(NamedTuple):
    """What the hosts of a cluster have of it: `slots`; what each namespace reserves of them. `why`: what
    counts as several of them.
    """

    cluster: str
    slots: int
    reserved: Counter[str]
    why: str = ""


def conflicts(kind: str, wanted: Specs, states: Specs, environment: Environment) -> Iterator[Conflict]:
    """More vGPUs or device groups than there are, as conflicts at the resources of one kind, and nodes
    without a spare one while they are replaced. Specs with `needs` are counted.
    """
    soon = {host for key, spec in wanted.items() if key.kind == "host_graphics" for host in _shared(spec)}
    passed = {key.name for key in (*wanted, *states) if key.kind == "gpu_host"}
    by_cluster: dict[str, list[tuple[NodeDemand, Counter[Gpu]]]] = {}
    for need in _needs(wanted):
        gpus = taken(need.vm_class, wanted, environment.gpus)
        if gpus and (there := home(need.namespace, wanted, environment)):
            by_cluster.setdefault(there, []).append((need, gpus))
    for cluster, here in by_cluster.items():
        hosts = [each for each in environment.gpus.offers if _is_on(each, cluster, environment)]
        later = {each.host for each in hosts if each.host in soon and not each.profiles}
        refused: set[str] = set()
        for gpu in sorted(dict.fromkeys(name for _, each in here for name in each), key=_after_groups):
            if gpu.name in refused or any(
                not _known(each, gpu, passed) for each in hosts if each.host in later
            ):
                continue
            those = [(need, each[gpu]) for need, each in here if each[gpu]]
            slots = sum(
                _slots(each, gpu, later=each.host in later, moving=each.host in passed) for each in hosts
            )
            own = next((need for need, _ in those if need.spot.key.kind == kind), None)
            if slots and own:
                reserved = _reserved(gpu, cluster, wanted, environment)
                room = Room(cluster, slots, reserved, _why(gpu, here, environment))
                found = [*_of(kind, gpu, those, room)]
                refused.update(parts(gpu, environment.gpus.offers) if found else ())
                yield from found or _uncounted(own, gpu, hosts)


def _after_groups(gpu: Gpu) -> bool:
    """Sort groups first: of one that doesn't fit, its vGPUs are not reported, too."""
    return gpu.kind != GROUP


def _needs(wanted: Specs) -> Iterator[NodeDemand]:
    for key, spec in wanted.items():
        if hasattr(spec, "needs"):
            yield from spec.needs(key)


def _of(kind: str, gpu: Gpu, needs: Sequence[tuple[NodeDemand, int]], room: Room) -> Iterator[Conflict]:
    """`needs`: each with what one of its nodes takes."""
    takes: Counter[str] = Counter()
    for need, each in needs:
        takes[need.namespace] += need.most * each
    most = sum(takes.values())
    kept = sum(max(0, count - takes[space]) for space, count in room.reserved.items())
    own = [need for need, _ in needs if need.spot.key.kind == kind]
    if most + kept > room.slots:
        more = f", namespaces reserve {kept} more" if kept else ""
        others = tuple(need.spot for need, _ in needs if need is not own[0])
        yield Conflict(
            own[0].spot,
            f"{WHOSE[kind]} can take {most} {gpu.kind}s {gpu.name}{more}; "
            f"the hosts of {room.cluster} have {room.slots}",
            others,
            why=room.why,
            next=f"write fewer, or add hosts to {room.cluster}",
        )
        return
    for need, each in needs:
        if need.spot.key.kind == kind and need.most and most + kept + need.surge * each > room.slots:
            yield Conflict(
                Spot(need.spot.key, need.spot.field.removesuffix(".vm_class")),
                f"no {gpu.kind} {gpu.name} is spare while its nodes are replaced",
                why=f"all take or reserve {most + kept} of {room.slots}, and {need.surge * each} more come "
                "before old ones go",
                next="write rollout: {max_surge: 0, max_unavailable: 1}"
                if need.rollout
                else f"before its nodes are replaced, write one node fewer, or add hosts to {room.cluster}",
                stops=need.rollout,
            )


def _reserved(gpu: Gpu, cluster: str, wanted: Specs, environment: Environment) -> Counter[str]:
    """How many of them each namespace of a vSphere cluster reserves."""
    found: Counter[str] = Counter()
    for key, spec in wanted.items():
        if key.kind == "supervisor_namespace" and getattr(spec, "cluster", "") == cluster:
            for name, count in getattr(spec, "reserved", {}).items():
                found[key.name] += count * taken(name, wanted, environment.gpus)[gpu]
    return found


def _why(gpu: Gpu, here: Sequence[tuple[NodeDemand, Counter[Gpu]]], environment: Environment) -> str:
    """What takes several of them, or several cards, at once."""
    groups = dict.fromkeys(each for _, found in here for each in found if each.kind == GROUP)
    if gpu.kind == GROUP:
        beside = max((len(host.others_of_group(gpu.name)) for host in environment.gpus.offers), default=0)
        nics = f" and {beside} network card{'s' if beside > 1 else ''}" if beside else ""
        gpus = len(parts(gpu, environment.gpus.offers))
        return f"each takes {gpus} linked card{'s' if gpus > 1 else ''}{nics} of one host"
    counts = {each.name: parts(each, environment.gpus.offers).count(gpu.name) for each in groups}
    return "; ".join(
        f"a device group {name} takes {count} of them" for name, count in counts.items() if count
    )


def _shared(graphics: object) -> tuple[str, ...]:
    """The hosts that give vGPUs by a `host_graphics` of the site."""
    hosts: tuple[str, ...] = getattr(graphics, "hosts", ())
    return hosts if getattr(graphics, "type", "") == "sharedDirect" else ()


def _known(host: HostOffer, gpu: Gpu, passed: Collection[str]) -> bool:
    """Return whether it is known how many vGPUs a host will have once it shares its cards: it tells their
    memory, and none of them is passed through now. Its device groups aren't known before.
    """
    known = gpu.kind == VGPU and host.host not in passed and vgpu_profile(gpu.name) is not None
    return known and bool(host.cards) and all(host.cards)


def _uncounted(need: NodeDemand, gpu: Gpu, hosts: Sequence[HostOffer]) -> Iterator[Conflict]:
    """A group with parts whose number no host tells, as a warning."""
    if gpu.kind == GROUP and any(() in each.others_of_group(gpu.name) for each in hosts):
        yield Conflict(
            need.spot,
            f"whether the hosts have network cards for all device groups {gpu.name} is not known",
            why="each takes a part of a network card, and hosts don't tell how many parts are free; only its "
            "GPUs are counted",
            next="look at the hosts' network cards before you apply",
            stops=False,
        )


def _slots(host: HostOffer, gpu: Gpu, *, later: bool, moving: bool) -> int:
    """Return how many of them the host's cards hold; 0 if it doesn't offer it, or the name of a profile tells
    no size. `later`: the site still makes it offer vGPUs; `moving`: the site says what it passes through.
    """
    if gpu.kind == GROUP:
        profiles = host.profiles_of_groups.get(gpu.name, ())
        able = min((sum(vgpus(card, each) > 0 for card in host.cards) for each in profiles), default=0)
        return min([able // len(profiles), *_beside(host, gpu.name, moving=moving)]) if profiles else 0
    if not (later or gpu.name in host.profiles):
        return 0
    return sum(vgpus(card, gpu.name) for card in host.cards)


def _beside(host: HostOffer, group: str, *, moving: bool) -> Iterator[int]:
    """Yield for how many groups the host has cards of each model beside the vGPUs: those that are passed
    through, or all if the site decides which are.
    """
    for models, count in Counter(host.others_of_group(group)).items():
        if models:
            yield sum(host.models.get(each, (0, 0))[moving] for each in dict.fromkeys(models)) // count


def _is_on(host: HostOffer, cluster: str, environment: Environment) -> bool:
    """Whether a host is in a cluster, by what the site calls that."""
    home = environment.supervisors.get(cluster)
    return host.cluster_id == home.cluster if home else host.cluster == cluster
