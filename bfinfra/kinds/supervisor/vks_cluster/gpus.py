"""Pools that need more vGPUs than the hosts of their vSphere cluster have. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.vks_cluster.refusals import surge_of
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec, Workers
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.vgpus import HostOffer

SIZE = re.compile(r"(?:-(\d+))?-(\d+)[a-z]+$")
"""The end of a profile's name: parts of a card, for MIG, and GiB."""
PARTS = 7  # of a card, by MIG
SPARE = 1.07  # cards tell somewhat less than the GiB of their name
GIB = 2**30
Need = tuple[Spot, Workers, Counter[str]]
"""A pool, and the vGPUs of one of its nodes by profile."""


def conflicts(wanted: Specs, environment: Environment) -> Iterator[Conflict]:
    """Pools whose most nodes take more vGPUs than there are, and those that have none to spare while their
    nodes are replaced. A cluster with a host that this site still shares is not counted: what the host will
    offer, nobody tells.
    """
    by_cluster: dict[str, list[Need]] = {}
    for key, spec in wanted.items():
        if isinstance(spec, Spec) and (home := _home(spec, wanted, environment)):
            by_cluster.setdefault(home, []).extend(_needs(key, spec, wanted, environment))
    soon = {host for key, spec in wanted.items() if key.kind == "host_graphics" for host in _shared(spec)}
    for cluster, needs in by_cluster.items():
        hosts = [each for each in environment.offers if each.cluster == cluster]
        if any(each.host in soon and not each.profiles for each in hosts):
            continue
        for profile in dict.fromkeys(name for *_, each in needs for name in each):
            if slots := sum(_slots(each, profile) for each in hosts):
                yield from _of(profile, [each for each in needs if profile in each[2]], slots, cluster)


def _of(profile: str, needs: Sequence[Need], slots: int, cluster: str) -> Iterator[Conflict]:
    most = sum(nodes.most * each[profile] for _, nodes, each in needs)
    if most > slots:
        yield Conflict(
            needs[0][0],
            f"its nodes can take {most} vGPUs {profile}; the hosts of {cluster} have {slots}",
            tuple(spot for spot, *_ in needs[1:]),
            next=f"write fewer nodes, or add hosts to {cluster}",
        )
        return
    for spot, nodes, each in needs:
        surge = surge_of(nodes.rollout.max_surge if nodes.rollout else 1, nodes.most)
        if nodes.most and most + surge * each[profile] > slots:
            yield Conflict(
                Spot(spot.key, spot.field.removesuffix(".vm_class")),
                f"no vGPU {profile} is spare while its nodes are replaced",
                why=f"all nodes take {most} of {slots}, and {surge} more come before old ones go",
                next="write rollout: {max_surge: 0, max_unavailable: 1}",
            )


def _needs(key: Key, spec: Spec, wanted: Specs, environment: Environment) -> Iterator[Need]:
    for name, nodes in spec.workers.items():
        vm_class = nodes.vm_class or spec.vm_class
        found: Any = wanted.get(Key("vm_class", vm_class)) or environment.classes.get(vm_class)
        if found is not None and found.vgpus:
            yield Spot(key, f"workers.{name}.vm_class"), nodes, Counter(found.vgpus)


def _home(spec: Spec, wanted: Specs, environment: Environment) -> str:
    """The vSphere cluster of a cluster's namespace; "" if nobody tells."""
    own = wanted.get(Key("supervisor_namespace", spec.namespace))
    there = environment.spaces.get(spec.namespace)
    return str(own.cluster) if own is not None else there.cluster if there else ""


def _shared(graphics: object) -> tuple[str, ...]:
    """The hosts that give vGPUs by a `host_graphics` of the site."""
    hosts: tuple[str, ...] = getattr(graphics, "hosts", ())
    return hosts if getattr(graphics, "type", "") == "sharedDirect" else ()


def _slots(host: HostOffer, profile: str) -> int:
    """Return how many vGPUs of a profile the host's cards hold; 0 if it doesn't offer it, or its name tells
    no size.
    """
    found = SIZE.search(profile)
    if found is None or profile not in host.profiles:
        return 0
    if found[1]:
        return PARTS // int(found[1]) * len(host.cards)
    return sum(int(card * SPARE / (int(found[2]) * GIB)) for card in host.cards)
