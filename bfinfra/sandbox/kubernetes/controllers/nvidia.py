"""NVIDIA's device plug-ins and the kubelets of their nodes: what one found when it started is what its node offers, as long as it runs."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.nvidia import RESOURCE, is_plugin, offered
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, uid_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change, Key

PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
KUBELET = "kubelet"


class NvidiaDevices:
    """What a plug-in that is gone offered is taken back at once, without the kubelet's five minutes."""

    kinds = (NODES,)

    def __init__(self, loop: Loop, outside: Outside) -> None:
        self._cluster, self._outside = loop.cluster, outside
        self._found: dict[str, str] = {}
        """What each pod of a plug-in found when it started, by its uid."""

    def touched(self, change: Change) -> Iterable[Item]:
        """The node of a plug-in's pod."""
        if change.key == PODS and (node := dig(change.after, "spec", "nodeName")) and _plugin(change.after):
            yield (NODES, "", node)

    def look(self, item: Item, thing: Object | None) -> None:
        """Write what is offered."""
        if thing is None:
            return
        pods = [pod for pod in self._cluster.store.all(PODS) if dig(pod, "spec", "nodeName") == name_of(thing) and _plugin(pod)]
        running = {uid_of(pod): pod for pod in pods if _runs(pod)}
        self._found = {uid: count for uid, count in self._found.items() if any(uid_of(pod) == uid for pod in self._cluster.store.all(PODS))}
        for uid, pod in running.items():
            if uid not in self._found:
                self._found[uid] = offered(pod, _plugin(pod), self._outside.gpus(name_of(thing))).get(RESOURCE, "")
        wanted = next((self._found[uid] for uid in running if self._found[uid]), "")
        status = dict(thing.get("status") or {})
        for part in ("capacity", "allocatable"):
            status[part] = {**{name: count for name, count in (status.get(part) or {}).items() if name != RESOURCE}, **({RESOURCE: wanted} if wanted else {})}
        if status != thing.get("status"):
            self._cluster.set_status(thing, status, KUBELET)


def _plugin(pod: Object) -> Object:
    """Its container of the plug-in; empty where it has none."""
    return next((each for each in dig(pod, "spec", "containers", default=[]) if is_plugin(each)), {})


def _runs(pod: Object) -> bool:
    states = dig(pod, "status", "containerStatuses", default=[])
    return dig(pod, "status", "phase") == "Running" and not pod["metadata"].get("deletionTimestamp") and all(each.get("ready") for each in states)
