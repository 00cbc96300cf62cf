"""NVIDIA's GPU operator, where its Deployment is available: the operands of each ClusterPolicy, and its
status. No node has its label, so that no operand has a pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of, owned_by
from bfinfra.sandbox.kubernetes.store import Change, Key

POLICIES: Key = ("nvidia.com", "clusterpolicies")
DEPLOYMENTS: Key = ("apps", "deployments")
OPERATOR = "gpu-operator"
PRESENT = "nvidia.com/gpu.present"
OPERANDS = {
    "driver": "nvidia-driver",
    "devicePlugin": "nvidia-device-plugin",
    "dcgmExporter": "nvidia-dcgm-exporter",
}
"""Part of a ClusterPolicy → the DaemonSet that is its operand, if it is enabled."""


class GpuOperator:
    """Watches ClusterPolicies, and its own Deployment."""

    kinds = (POLICIES,)

    def __init__(self, loop: Loop) -> None:
        self._cluster = loop.cluster

    def touched(self, change: Change) -> Iterable[Item]:
        """All ClusterPolicies when an operator comes."""
        if change.key == DEPLOYMENTS:
            for each in self._cluster.store.all(POLICIES):
                yield (POLICIES, "", name_of(each))

    def look(self, item: Item, thing: Object | None) -> None:
        """Create or remove operands, then set the status."""
        home = self._home()
        if thing is None or thing["metadata"].get("deletionTimestamp") or not home:
            return
        for part, name in OPERANDS.items():
            live = self._cluster.get("apps", "daemonsets", name, home)
            wanted = bool(dig(thing, "spec", part, "enabled", default=False))
            if wanted and live is None:
                self._cluster.create(_operand(thing, name, home), OPERATOR)
            elif live is not None and not wanted:
                self._cluster.remove(live)
        status = {"namespace": home, "state": "ready"}
        if (thing.get("status") or {}) != status:
            self._cluster.set_status(thing, status, OPERATOR)

    def _home(self) -> str:
        """The namespace of an available operator, or ""."""
        return next(
            (
                namespace_of(each)
                for each in self._cluster.store.all(DEPLOYMENTS)
                if dig(each, "status", "availableReplicas")
                and OPERATOR in str(dig(each, "spec", "template", "spec", "containers", 0, "image"))
            ),
            "",
        )


def _operand(policy: Object, name: str, namespace: str) -> Object:
    labels = {"app": name}
    pod = {"nodeSelector": {PRESENT: "true"}, "containers": [{"name": "main", "image": f"operands/{name}"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owned_by(policy)]},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
