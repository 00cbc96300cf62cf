"""NVIDIA's device plug-ins and the kubelets of their nodes: what one found when it started is what its node
offers, as long as it runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.nvidia import is_plugin, offered, owned
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, runs, uid_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change, Key

PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
KUBELET = "kubelet"


class NvidiaDevices:
    """Takes back at once what a deleted plug-in offered, without the kubelet's five minutes."""

    kinds = (NODES,)

    def __init__(self, loop: Loop, outside: Outside) -> None:
        self._cluster, self._outside = loop.cluster, outside
        self._found: dict[str, dict[str, str]] = {}
        """The GPUs, or parts of them, that each pod of a plug-in found when it started, by the pod's uid."""

    def touched(self, change: Change) -> Iterable[Item]:
        """The node of a plug-in's pod. In the change by which it runs, it looks for GPUs: what comes later it
        doesn't find.
        """
        pod = change.after
        if change.key == PODS and (node := dig(pod, "spec", "nodeName")) and _plugin(pod):
            if change.kind == "DELETED":
                self._found.pop(uid_of(pod), None)
            elif runs(pod) and uid_of(pod) not in self._found:
                gpus = self._outside.gpus(node)
                self._found[uid_of(pod)] = offered(pod, _plugin(pod), gpus)
            yield (NODES, "", node)

    def look(self, item: Item, thing: Object | None) -> None:
        """Write what is offered."""
        if thing is None:
            return
        pods = [
            pod
            for pod in self._cluster.store.all(PODS)
            if dig(pod, "spec", "nodeName") == name_of(thing) and _plugin(pod)
        ]
        counts = [self._found.get(uid_of(pod), {}) for pod in pods if runs(pod)]
        wanted = next(filter(None, counts), {})
        status = dict(thing.get("status") or {})
        for part in ("capacity", "allocatable"):
            status[part] = {
                **{name: count for name, count in (status.get(part) or {}).items() if not owned(name)},
                **wanted,
            }
        if status != thing.get("status"):
            self._cluster.set_status(thing, status, KUBELET)


def _plugin(pod: Object) -> Object:
    """Its container of the plug-in; empty where it has none."""
    return next((each for each in dig(pod, "spec", "containers", default=[]) if is_plugin(each)), {})
