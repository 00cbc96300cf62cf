"""The cluster autoscaler, where its add-on is ready: pods that find no room raise a pool within its bounds,
and a node that runs nothing for a while goes.

As upstream's provider for Cluster API does, it knows an empty pool by its VM class and its annotations alone.
Only the annotations have GPUs: without them it starts no node for a pod with GPUs. A node that runs any pod
but a DaemonSet's stays, even if others had room for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.scheduler import ENDED, against
from bfinfra.sandbox.kubernetes.guests import Guests, Where
from bfinfra.sandbox.kubernetes.nvidia import RESOURCE
from bfinfra.sandbox.kubernetes.objects import Object, copied, dig, name_of, namespace_of, uid_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.vks.addons import ADDED
from bfinfra.sandbox.kubernetes.vks.clusters import (
    OF_CLUSTER,
    OF_POOL,
    POOLS,
    VksClusters,
    gone_of,
    note_gone,
)
from bfinfra.sandbox.kubernetes.vks.shape import bounds

MANAGER = ADDON = "cluster-autoscaler"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
ACCELERATOR = "cluster-api/accelerator"
"""The label of nodes whose GPUs are waited for."""
PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")


@dataclass
class Sums:
    """What the pods of a cluster need. `raised`: pool → the pods that take new nodes of it, and how many
    nodes; `used`: nodes that run pods, or soon will.
    """

    raised: dict[str, tuple[list[Object], int]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


class Autoscaler:
    """Those of the clusters of one supervisor."""

    kinds = (POOLS,)

    def __init__(self, loop: Loop, guests: Guests, outside: Outside, clusters: VksClusters) -> None:
        self._loop, self._cluster, self._guests, self._outside = loop, loop.cluster, guests, outside
        self._clusters, self._due = clusters, set[Where]()
        guests.watchers.append(self._changed_inside)

    def touched(self, change: Change) -> Iterable[Item]:
        """The pools of a cluster whose add-on changed."""
        if change.key == ADDED:
            where = namespace_of(change.after), str(dig(change.after, "spec", "clusterName"))
            yield from self._items(where)

    def look(self, item: Item, thing: Object | None) -> None:
        """Plan to raise a pool that pods wait for; else to lower one that has idle nodes."""
        if thing is None or not self._works(thing):
            return
        sums = self._sums(_where(thing))
        if _pool(thing) in sums.raised:
            self._loop.once(("scale-up", uid_of(thing)), "scale_up", lambda: self._raise(item))
        for node in self._idle(thing, sums):
            mark = ("scale-down", uid_of(thing), node)
            self._loop.once(mark, "scale_down", partial(self._lower, item, node))

    def _changed_inside(self, where: Where, change: Change) -> None:
        """A pod or node of a cluster changed. Its pools are looked at in the clock's thread: the caller holds
        the cluster's lock.
        """
        if change.key in (PODS, NODES) and where not in self._due:
            self._due.add(where)
            self._cluster.clock.after(0, lambda: self._look_inside(where))

    def _look_inside(self, where: Where) -> None:
        self._due.discard(where)
        self._loop.soon(self, self._items(where))

    def _items(self, where: Where) -> list[Item]:
        return [(POOLS, namespace_of(each), name_of(each)) for each in self._pools(where)]

    def _pools(self, where: Where) -> list[Object]:
        """The pools of a cluster that may be scaled."""
        return [
            each
            for each in self._cluster.store.all(POOLS, where[0])
            if dig(each, "metadata", "labels", OF_CLUSTER) == where[1] and bounds(each) is not None
        ]

    def _works(self, pool: Object) -> bool:
        """Return whether an autoscaler runs that may scale the pool."""
        addon = self._cluster.store.get(ADDED, namespace_of(pool), f"{_where(pool)[1]}-{ADDON}")
        ready = dig(addon, "status", "conditions", 0, "status") == "True"
        return ready and bounds(pool) is not None and _where(pool) in self._guests.running

    def _raise(self, item: Item) -> None:
        pool = self._cluster.store.get(*item)
        if pool is None or not self._works(pool):
            return
        pods, more = self._sums(_where(pool)).raised.get(_pool(pool), ([], 0))
        if not more:
            return
        now, most = _replicas(pool), (bounds(pool) or (0, 0))[1]
        self._cluster.change(pool, partial(_scale, now + more, ()), MANAGER)
        guest = self._guests.running[_where(pool)].cluster
        group = f"MachineDeployment/{namespace_of(pool)}/{name_of(pool)} {now}->{now + more} (max: {most})"
        for pod in pods:
            guest.event("TriggeredScaleUp", f"pod triggered scale-up: [{{{group}}}]", pod, "Normal")

    def _lower(self, item: Item, node: str) -> None:
        """Remove an idle node: that one, and not another of the pool."""
        pool = self._cluster.store.get(*item)
        if pool is None or not self._works(pool) or node not in self._idle(pool, self._sums(_where(pool))):
            return
        number = self._clusters.numbers(_where(pool)).get(node)
        if number is not None:
            self._cluster.change(pool, partial(_scale, _replicas(pool) - 1, (number,)), MANAGER)

    def _idle(self, pool: Object, sums: Sums) -> list[str]:
        """The nodes of a pool that may go; none while others of it are still to come."""
        nodes = self._nodes(pool)
        least = (bounds(pool) or (0, 0))[0]
        if _replicas(pool) <= least or len(nodes) != _replicas(pool) or _pool(pool) in sums.raised:
            return []
        return [name_of(each) for each in nodes if name_of(each) not in sums.used and not _awaited(each)]

    def _nodes(self, pool: Object) -> list[Object]:
        where = _where(pool)
        every = self._guests.running[where].cluster.store.all(NODES)
        return [each for each in every if name_of(each).startswith(f"{where[1]}-{_pool(pool)}-")]

    def _sums(self, where: Where) -> Sums:
        """Put the pods that found no room on nodes that are there, on nodes to come, and on new ones."""
        guest, found = self._guests.running[where].cluster, Sums()
        pods = guest.store.all(PODS)
        placed = [each for each in pods if dig(each, "spec", "nodeName") and not _ended(each)]
        found.used |= {dig(each, "spec", "nodeName") for each in placed if not _of_daemon_set(each)}
        pools = {_pool(each): each for each in self._pools(where)}
        nodes = [each for each in guest.store.all(NODES) if not _awaited(each)]
        for name, pool in pools.items():
            there = [each for each in self._nodes(pool) if not _awaited(each)]
            nodes += [
                self._template(pool, f"{name}-to-come-{number}")
                for number in range(_replicas(pool) - len(there))
            ]
        for pod in filter(_waits, pods):
            node = next((each for each in nodes if not against(each, pod, placed, guest.version)), None)
            if node is None and (node := self._new(pools, pod, found, guest.version)):
                nodes.append(node)
            if node is not None:
                found.used.add(name_of(node))
                placed.append({**pod, "spec": {**pod["spec"], "nodeName": name_of(node)}})
        return found

    def _new(self, pools: dict[str, Object], pod: Object, found: Sums, version: str) -> Object | None:
        """A new node for a pod, of the first pool that can grow and has such nodes."""
        for name, pool in pools.items():
            own, count = found.raised.get(name, ([], 0))
            if _replicas(pool) + count >= (bounds(pool) or (0, 0))[1]:
                continue
            node = self._template(pool, f"{name}-new-{count}")
            if not against(node, pod, [], version):
                found.raised[name] = ([*own, pod], count + 1)
                return node
        return None

    def _template(self, pool: Object, name: str) -> Object:
        """A node as the first of the pool that is ready; of an empty pool, by class and annotations."""
        for each in self._nodes(pool):
            if not _awaited(each):
                return {**copied(each), "metadata": {**each["metadata"], "name": name}}
        notes = dig(pool, "metadata", "annotations", default={})
        size = self._outside.machine_classes().get(self._clusters.vm_class(_where(pool), _pool(pool)))
        room = {
            "cpu": notes.get(f"{CAPACITY}/cpu", str(size.cpus if size else 0)),
            "memory": notes.get(f"{CAPACITY}/memory", str(size.memory if size else 0)),
            "pods": notes.get(f"{CAPACITY}/maxPods", "110"),
        }
        if gpus := notes.get(f"{CAPACITY}/gpu-count"):
            room[notes.get(f"{CAPACITY}/gpu-type", "")] = gpus
        labels = dict(each.split("=", 1) for each in _listed(notes, "labels") if "=" in each)
        return {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "spec": {"taints": [_taint(each) for each in _listed(notes, "taints")]},
            "status": {"allocatable": room},
        }


def _listed(notes: Object, name: str) -> list[str]:
    return [each for each in str(notes.get(f"{CAPACITY}/{name}", "")).split(",") if each]


def _taint(text: str) -> Object:
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _where(pool: Object) -> Where:
    return namespace_of(pool), str(dig(pool, "metadata", "labels", OF_CLUSTER))


def _pool(pool: Object) -> str:
    return str(dig(pool, "metadata", "labels", OF_POOL))


def _replicas(pool: Object) -> int:
    return int(dig(pool, "spec", "replicas", default=0))


def _awaited(node: Object) -> bool:
    """Return whether a node's GPUs are still to come, as its label says that it has some."""
    has_some = ACCELERATOR in (node["metadata"].get("labels") or {})
    return has_some and not int(dig(node, "status", "allocatable", RESOURCE, default=0))


def _waits(pod: Object) -> bool:
    conditions = dig(pod, "status", "conditions", default=[])
    refused = any(each.get("reason") == "Unschedulable" for each in conditions)
    waits = refused and not dig(pod, "spec", "nodeName") and not pod["metadata"].get("deletionTimestamp")
    return bool(waits) and not _of_daemon_set(pod)


def _ended(pod: Object) -> bool:
    return dig(pod, "status", "phase") in ENDED


def _of_daemon_set(pod: Object) -> bool:
    return any(each["kind"] == "DaemonSet" for each in pod["metadata"].get("ownerReferences") or [])


def _scale(count: int, gone: tuple[int, ...], pool: Object) -> None:
    pool["spec"]["replicas"] = count
    if gone:
        note_gone(pool, (*gone_of(pool), *gone))
