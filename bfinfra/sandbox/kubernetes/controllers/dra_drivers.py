"""NVIDIA's DRA drivers and the kubelets of their nodes: what a plug-in found when it started is what its
slice says, as long as it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.pod_claims import SLICES
from bfinfra.sandbox.kubernetes.nvidia_dra import GPU, PROGRAMS, devices, drivers_of, resource_slice
from bfinfra.sandbox.kubernetes.objects import Object, copied, dig, runs, uid_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change, Key

PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
PLUGIN = "gpu-kubelet-plugin"


class DraDrivers:
    """All nodes at once. A kubelet deletes the slices of a driver that is gone at once, without its 30
    seconds.
    """

    kinds = (NODES,)

    def __init__(self, loop: Loop, outside: Outside) -> None:
        self._cluster, self._outside = loop.cluster, outside
        self._any = False
        """Whether there was a plug-in."""
        self._found: dict[str, dict[str, list[Object]]] = {}
        """The devices that each plug-in's pod found when it started, by driver; by the pod's uid."""

    def touched(self, change: Change) -> Iterable[Item]:
        """The node of a plug-in's pod, and of a slice. A plug-in looks for GPUs in the change by which it
        runs: what comes later it doesn't find.
        """
        pod = change.after
        if change.key == SLICES and dig(pod, "spec", "driver") in PROGRAMS.values():
            yield (NODES, "", str(dig(pod, "spec", "nodeName", default="")))
        elif change.key == PODS and (node := dig(pod, "spec", "nodeName")) and (known := drivers_of(pod)):
            self._any = True
            if change.kind == "DELETED":
                self._found.pop(uid_of(pod), None)
            elif runs(pod) and uid_of(pod) not in self._found:
                gpus = self._outside.gpus(node)
                self._found[uid_of(pod)] = {driver: devices(driver, node, gpus) for driver in known}
            yield (NODES, "", node)

    def look(self, item: Item, thing: Object | None) -> None:
        """Publish what the plug-ins of a node found, and delete the slices of those that are gone."""
        if (
            thing is None
            or not self._any
            or self._cluster.registry.of_kind("resource.k8s.io/v1", "ResourceSlice") is None
        ):
            return
        wanted = self._wanted(item[2])
        for live in self._cluster.store.all(SLICES):
            driver = dig(live, "spec", "driver")
            if dig(live, "spec", "nodeName") != item[2] or driver not in PROGRAMS.values():
                continue
            if (found := wanted.pop(driver, None)) is None:
                self._cluster.remove(live)
            elif dig(live, "spec", "devices", default=[]) != found:
                self._cluster.change(live, partial(_published, found=found), PLUGIN)
        for driver, found in wanted.items():
            self._cluster.create(copied(resource_slice(driver, thing, found)), PLUGIN)

    def registered(self, node: str) -> set[str]:
        """The drivers that a node's kubelet can ask for devices."""
        return set(self._wanted(node)) if self._any else set()

    def gone(self, node: str) -> set[str]:
        """The parts of GPUs that a node's driver publishes, and that are not there any more."""
        published = self._wanted(node).get(GPU, []) if self._any else []
        now = [each["name"] for each in devices(GPU, node, self._outside.gpus(node))] if published else []
        parts = {each["name"] for each in published if each["attributes"]["type"]["string"] == "mig"}
        return parts - set(now)

    def _wanted(self, node: str) -> dict[str, list[Object]]:
        pods = [
            pod
            for pod in self._cluster.store.all(PODS)
            if dig(pod, "spec", "nodeName") == node and drivers_of(pod) and runs(pod)
        ]
        found: dict[str, list[Object]] = {}
        for pod in pods:
            found |= self._found.setdefault(
                uid_of(pod), {each: devices(each, node, self._outside.gpus(node)) for each in drivers_of(pod)}
            )
        return found


def _published(live: Object, found: list[Object]) -> None:
    live["spec"]["devices"] = found
