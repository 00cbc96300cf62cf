"""Namespaces: what every one has, and how one ends."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.controllers.loop import Item
from bfinfra.sandbox.kubernetes.objects import Object, namespace_of
from bfinfra.sandbox.kubernetes.store import Change, Key

NAMESPACES: Key = ("", "namespaces")


class Namespaces:
    """Default service account and CA bundle in each; a terminating one is emptied first, then let go."""

    kinds = (NAMESPACES,)

    def __init__(self, cluster: Cluster, ca_pem: str) -> None:
        self._cluster, self._ca_pem = cluster, ca_pem

    def touched(self, change: Change) -> Iterable[Item]:
        """The namespace of what went."""
        if change.kind == "DELETED" and namespace_of(change.after):
            yield (NAMESPACES, "", namespace_of(change.after))

    def look(self, item: Item, thing: Object | None) -> None:
        """Fill or empty."""
        if thing is None:
            return
        name = item[2]
        if thing["metadata"].get("deletionTimestamp"):
            self._empty(name, thing)
            return
        self._cluster.ensure(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        )
        self._cluster.ensure(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kube-root-ca.crt", "namespace": name},
                "data": {"ca.crt": self._ca_pem},
            }
        )

    def _empty(self, name: str, thing: Object) -> None:
        store = self._cluster.store
        for key in store.held():
            for each in store.all(key, name):
                if not each["metadata"].get("deletionTimestamp"):
                    self._cluster.remove(each)
        if not any(store.all(key, name) for key in store.held()):
            self._cluster.change(
                thing, lambda live: live.__setitem__("spec", {"finalizers": []}), subresource="finalize"
            )
