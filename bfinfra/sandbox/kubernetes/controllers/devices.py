"""Device plug-ins: a node's kubelet advertises what a pod declares, as long as the pod runs."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.plugins import advertised, registers
from bfinfra.sandbox.kubernetes.store import Change, Key

PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
KUBELET = "kubelet"


class Devices:
    """The kubelets' device managers. What a plug-in that stopped advertised is taken back at once, without
    the kubelet's five minutes.
    """

    kinds = (NODES,)

    def __init__(self, loop: Loop, outside: Outside) -> None:
        self._cluster, self._outside = loop.cluster, outside
        self._known: set[str] = set()

    def touched(self, change: Change) -> Iterable[Item]:
        """The node of a plug-in's pod."""
        found = self._advertised(change.after) if change.key == PODS else {}
        self._known |= found.keys()
        if found and (node := dig(change.after, "spec", "nodeName")):
            yield (NODES, "", node)

    def look(self, item: Item, thing: Object | None) -> None:
        """Write what is advertised."""
        if thing is None or not self._known:
            return
        pods = [
            pod for pod in self._cluster.store.all(PODS) if dig(pod, "spec", "nodeName") == name_of(thing)
        ]
        running = [
            pod
            for pod in pods
            if dig(pod, "status", "phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
        ]
        wanted = {name: number for pod in running for name, number in self._advertised(pod).items()}
        status = dict(thing.get("status") or {})
        for part in ("capacity", "allocatable"):
            status[part] = {
                **{
                    name: count for name, count in (status.get(part) or {}).items() if name not in self._known
                },
                **wanted,
            }
        if status != thing.get("status"):
            self._cluster.set_status(thing, status, KUBELET)

    def _advertised(self, pod: Object) -> dict[str, str]:
        """Return the resources that its containers register at the kubelet of its node."""
        folder = self._outside.kubelet_folder(dig(pod, "spec", "nodeName", default=""))
        own = [each for each in dig(pod, "spec", "containers", default=[]) if registers(pod, each, folder)]
        return {name: number for container in own for name, number in advertised(container).items()}
