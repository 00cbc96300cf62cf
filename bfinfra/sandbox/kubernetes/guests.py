"""The guest clusters of a supervisor: made, opened on an address, closed, kept over a restart."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.controllers.claims import storage_class
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change

PORT = 6443
RBAC = "rbac.authorization.k8s.io"
Where = tuple[str, str]  # namespace and name of the cluster's object


class Guests:
    """Running guest clusters by namespace and name."""

    def __init__(self, clock: Clock, outside: Outside, pool: Sequence[str]) -> None:
        self._clock, self._outside, self._pool = clock, outside, tuple(pool)
        self.running: dict[Where, RunningCluster] = {}
        self.addresses: dict[Where, str] = {}
        self.watchers: list[Callable[[Where, Change], None]] = []
        """Called with each change in a guest, whose lock is held."""

    def address(self, where: Where) -> str | None:
        """The address of a cluster, a free one where it has none yet; None where the pool is used up."""
        if where not in self.addresses:
            free = [each for each in self._pool if each not in self.addresses.values()]
            if not free:
                return None
            self.addresses[where] = free[0]
        return self.addresses[where]

    def power_on(self, where: Where, node: str, vm_class: str) -> str:
        """Give a node the GPUs of its class. Returns why it can't have them, or ""."""
        return self._outside.power_on(_holder(where, node), vm_class)

    def power_off(self, where: Where, node: str) -> None:
        """Take a node's GPUs back."""
        self._outside.power_off(_holder(where, node))

    def open(self, where: Where, version: str, saved: Mapping[str, object] | None = None) -> RunningCluster:
        """The cluster, made and opened where it isn't yet. Its address must have been asked for."""
        if where not in self.running:
            own = replace(self._outside, gpus=lambda node: self._outside.devices(_holder(where, node)))
            cluster = RunningCluster(where[1], version, self._clock, own)
            if saved:
                cluster.restore(saved)
            cluster.cluster.store.listeners.append(partial(self._changed, where))
            cluster.start()
            self.running[where] = cluster
            self._outside.open(f"{self.addresses[where]}:{PORT}", cluster.cluster.handler, "kubernetes")
        return self.running[where]

    def _changed(self, where: Where, change: Change) -> None:
        for watcher in self.watchers:
            watcher(where, change)

    def close(self, where: Where) -> None:
        """End a cluster and free its address."""
        cluster = self.running.pop(where, None)
        address = self.addresses.pop(where, None)
        self._outside.power_off(_holder(where))
        if cluster and address:
            self._outside.close(f"{address}:{PORT}")
            cluster.cluster.close()

    def close_all(self) -> None:
        """End all of them."""
        for where in list(self.addresses):
            self.close(where)

    def kubeconfig(self, where: Where) -> str:
        """The administrator's kubeconfig, as its Secret holds it."""
        name, cluster = where[1], self.running[where].cluster
        authority = base64.b64encode(self._outside.ca_pem.encode()).decode()
        user, server = f"{name}-admin", f"https://{self.addresses[where]}:{PORT}"
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": f"{user}@{name}",
                "preferences": {},
                "clusters": [
                    {"name": name, "cluster": {"server": server, "certificate-authority-data": authority}}
                ],
                "users": [{"name": user, "user": {"token": cluster.admin_token}}],
                "contexts": [{"name": f"{user}@{name}", "context": {"cluster": name, "user": user}}],
            },
            indent=1,
        )

    def furnish(
        self, where: Where, classes: Sequence[str], default: str, administrators: Sequence[Object]
    ) -> None:
        """Let a cluster have these storage classes, and these subjects as its administrators."""
        cluster = self.running[where].cluster
        for name in classes:
            cluster.ensure(storage_class(name, default=name == default))
        for each in cluster.all("storage.k8s.io", "storageclasses"):
            if dig(each, "parameters", "svStorageClass") and name_of(each) not in classes:
                cluster.remove(each)
        _bind(cluster.ensure, cluster.change, administrators)

    def save(self) -> list[Any]:
        """Everything that survives a restart."""
        return [
            [*where, self.addresses[where], cluster.cluster.version, cluster.save()]
            for where, cluster in self.running.items()
        ]

    def restore(self, data: list[Any]) -> None:
        """Open again what was open."""
        for namespace, name, address, version, saved in data:
            self.addresses[(namespace, name)] = address
            self.open((namespace, name), version, saved)


def _holder(where: Where, *node: str) -> str:
    return "/".join(("cluster", *where, *node))


def _bind(
    ensure: Callable[[Object], Object],
    change: Callable[[Object, Callable[[Object], None]], Object | None],
    subjects: Sequence[Object],
) -> None:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    binding = ensure(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "vmware-system-auth-sync"},
            "subjects": list(subjects),
            "roleRef": reference,
        }
    )
    if binding.get("subjects", []) != list(subjects):
        change(binding, lambda live: live.__setitem__("subjects", list(subjects)))
