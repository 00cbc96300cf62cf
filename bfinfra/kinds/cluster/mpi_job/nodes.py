"""The GPUs of a cluster's nodes, as the site's file and the servers tell them, and the workers that don't
find them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bfinfra.kinds.cluster_locator import WHOLE, cluster_key
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key

OfClass = Callable[[str], int | None]
"""VM class → the GPUs of each of its machines; None if they aren't known."""
OF_CLASSES = ("tanzu_cluster", "vks_cluster")
"""Kinds of clusters whose nodes have VM classes."""


@dataclass(frozen=True)
class Asked:
    """What a job asks of a cluster's nodes: so many workers, each with so many whole GPUs."""

    cluster: str
    workers: int
    gpus: int


def not_placed(key: Key, asked: Asked, site: Specs, of_class: OfClass) -> Iterator[Conflict]:
    """The workers of a job that fit on no node of the site: the job would wait without end."""
    home = cluster_key(asked.cluster, site, WHOLE)
    nodes = gpus_of_workers(home, site, of_class) if home and asked.gpus else None
    if nodes is not None and home and (room := sum(each // asked.gpus for each in nodes)) < asked.workers:
        yield Conflict(
            Spot(key, "workers"),
            f"{asked.workers} workers with {_counted(asked.gpus, 'GPU')} each find space for {room}",
            (Spot(home, "workers"),),
            why=f"{home} has {_counted(len(nodes), 'worker node')} with {_counted(sum(nodes), 'GPU')}",
            next="write fewer workers, or add nodes",
        )


def gpus_of_workers(cluster: Key, site: Specs, of_class: OfClass) -> tuple[int, ...] | None:
    """The GPUs for pods on each worker of a cluster that this site makes; None if they aren't known, or are
    divided in ways that no file tells.
    """
    plugin = _on(cluster, "nvidia_device_plugin", site)
    operator = _on(cluster, "gpu_operator", site)
    divided = getattr(operator, "mig", None) or getattr(operator, "mig_layouts", ())
    if divided or getattr(plugin, "mig_strategy", "none") != "none":
        return None
    found = _cards_of_workers(cluster, site, of_class)
    shared = getattr(plugin, "time_slicing", None) or 1
    return None if found is None else tuple(count * shared for count in found)


def _on(cluster: Key, kind: str, site: Specs) -> object | None:
    """The resource of a kind in a cluster."""
    found = (
        spec
        for key, spec in site.items()
        if key.kind == kind and cluster_key(getattr(spec, "cluster", ""), site) == cluster
    )
    return next(found, None)


def _cards_of_workers(cluster: Key, site: Specs, of_class: OfClass) -> tuple[int, ...] | None:
    spec = site.get(cluster)
    if spec is not None and cluster.kind == "kubeadm_cluster":
        machines = [
            site.get(Key("virtual_machine", getattr(site.get(Key("linux_host", host)), "vm", None) or ""))
            for host in spec.workers
        ]
        return None if None in machines else tuple(len(machine.vgpus) for machine in machines if machine)
    if spec is None or cluster.kind not in OF_CLASSES:
        return None
    _, *workers = spec.pools()
    nodes = [of_class(pool.vm_class) for pool in workers for _ in range(pool.count)]
    return None if None in nodes else tuple(count for count in nodes if count is not None)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
