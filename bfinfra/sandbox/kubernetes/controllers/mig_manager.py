"""The MIG managers of the GPU operator: each divides the GPUs of its node as the node's label asks, and says
in another label how that goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers import gpu_operands as operands
from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.pod_claims import of_driver
from bfinfra.sandbox.kubernetes.mig_profiles import placed
from bfinfra.sandbox.kubernetes.nvidia import uses
from bfinfra.sandbox.kubernetes.nvidia_dra import GPU
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of, runs, uid_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change, Key

NODES: Key = ("", "nodes")
PODS: Key = ("", "pods")
CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
MANAGER, UNDIVIDED = "nvidia-mig-manager", "all-disabled"


class MigManagers:
    """All nodes at once. A manager acts when the label changes, or when its pod starts."""

    kinds = (NODES,)

    def __init__(self, loop: Loop, outside: Outside) -> None:
        self._loop, self._cluster, self._outside = loop, loop.cluster, outside
        self._handled: dict[str, str] = {}
        """The label that each manager's pod handled last, by the pod's uid."""
        self._applied = self._cluster.remembered.setdefault("MIG layouts", {})
        """How the GPUs of each node are divided now."""

    def touched(self, change: Change) -> Iterable[Item]:
        """The node of a manager's pod."""
        if change.key == PODS and _is_manager(change.after) and operands.on(change.after):
            yield (NODES, "", operands.on(change.after))

    def look(self, item: Item, thing: Object | None) -> None:
        """Begin to divide the GPUs, if the label asks for another layout than it did."""
        if thing is None:
            self._applied.pop(item[2], None)
            return
        layout = str(dig(thing, "metadata", "labels", CONFIG, default=""))
        manager = self._manager(item[2])
        if manager is None or not layout or self._handled.get(uid_of(manager)) == layout:
            return
        if dig(thing, "metadata", "labels", STATE) == "pending" and uid_of(manager) in self._handled:
            return  # it is at the one before
        self._handled[uid_of(manager)] = layout
        wanted = operands.profiles(self._config(namespace_of(manager)), layout)
        if wanted is None or placed(self._outside.gpus(item[2]).product, dict(wanted)) is None:
            self._say(item[2], "failed")
        elif self._now(thing) == layout:
            self._say(item[2], "success")
        else:
            self._say(item[2], "pending")
            self._loop.once(("mig", item[2], layout), "mig", lambda: self._divide(item[2], layout))

    def profiles(self, node: str) -> tuple[tuple[str, int], ...]:
        """The parts that each GPU of a node has; () for whole GPUs."""
        thing = self._cluster.get("", "nodes", node)
        manager = self._manager(node)
        if thing is None or manager is None:
            return ()
        return operands.profiles(self._config(namespace_of(manager)), self._now(thing)) or ()

    def _divide(self, node: str, layout: str) -> None:
        """GPUs that a pod holds can't be divided."""
        here = [pod for pod in self._cluster.store.all(PODS) if operands.on(pod) == node]
        if any(self._holds(pod) for pod in here):
            self._say(node, "failed")
            return
        if any(dig(pod, "metadata", "labels", "app") in operands.HOLDERS for pod in here):
            self._loop.once(("mig", node, layout), "mig", lambda: self._divide(node, layout))
            return
        if (
            self._reboots(node)
            and dig(self._cluster.get("", "nodes", node), "metadata", "labels", STATE) == "pending"
        ):
            self._say(node, "rebooting")
            self._loop.once(("mig-reboot", node, layout), "reboot", lambda: self._divide(node, layout))
            return
        self._applied[node] = layout
        self._say(node, "success")

    def _holds(self, pod: Object) -> bool:
        """Return whether a pod holds GPUs, by the device plug-in or by claims."""
        ended = dig(pod, "status", "phase") in ("Succeeded", "Failed")
        return uses(pod) or (not ended and any(of_driver(self._cluster, pod, GPU)))

    def _now(self, node: Object) -> str:
        """The layout that a node's GPUs have."""
        return self._applied.get(name_of(node), UNDIVIDED)

    def _reboots(self, node: str) -> bool:
        """Return whether the manager restarts nodes, as its environment says."""
        return any(
            dig(each, "name") == "WITH_REBOOT" and str(dig(each, "value")).lower() == "true"
            for each in dig(self._manager(node), "spec", "containers", 0, "env", default=[])
        )

    def _config(self, namespace: str) -> Object | None:
        return self._cluster.get("", "configmaps", operands.LAYOUTS, namespace)

    def _manager(self, node: str) -> Object | None:
        return next(
            (
                pod
                for pod in self._cluster.store.all(PODS)
                if _is_manager(pod) and operands.on(pod) == node and runs(pod)
            ),
            None,
        )

    def _say(self, node: str, state: str) -> None:
        thing = self._cluster.get("", "nodes", node)
        if thing is not None and dig(thing, "metadata", "labels", STATE) != state:
            self._cluster.change(
                thing, lambda live: live["metadata"]["labels"].__setitem__(STATE, state), MANAGER
            )


def _is_manager(pod: Object) -> bool:
    return bool(dig(pod, "metadata", "labels", "app") == MANAGER)
