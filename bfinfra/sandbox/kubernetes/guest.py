"""A whole cluster: API server, controllers, logs. Guest clusters are these; the supervisor is built on
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.bootstrap import bootstrap
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.controllers.claims import Claims
from bfinfra.sandbox.kubernetes.controllers.definitions import DEFINITIONS, Definitions
from bfinfra.sandbox.kubernetes.controllers.devices import Devices
from bfinfra.sandbox.kubernetes.controllers.dra_drivers import DraDrivers
from bfinfra.sandbox.kubernetes.controllers.garbage import Garbage
from bfinfra.sandbox.kubernetes.controllers.gpu_cluster import GpuClusters
from bfinfra.sandbox.kubernetes.controllers.gpu_operator import GpuOperator
from bfinfra.sandbox.kubernetes.controllers.jobs import Jobs
from bfinfra.sandbox.kubernetes.controllers.kubelet import Kubelet
from bfinfra.sandbox.kubernetes.controllers.loop import Loop
from bfinfra.sandbox.kubernetes.controllers.mig_manager import MigManagers
from bfinfra.sandbox.kubernetes.controllers.mpi import MpiJobs
from bfinfra.sandbox.kubernetes.controllers.namespaces import Namespaces
from bfinfra.sandbox.kubernetes.controllers.nvidia import NvidiaDevices
from bfinfra.sandbox.kubernetes.controllers.quota import Quotas
from bfinfra.sandbox.kubernetes.controllers.replicas import Replicas
from bfinfra.sandbox.kubernetes.controllers.resource_claims import ResourceClaims
from bfinfra.sandbox.kubernetes.controllers.scheduler import Scheduler
from bfinfra.sandbox.kubernetes.defaults import NAMES_NAMESPACES, named
from bfinfra.sandbox.kubernetes.identity import Tokens
from bfinfra.sandbox.kubernetes.logs import Logs
from bfinfra.sandbox.kubernetes.objects import Object, condition, copied, stamp
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.registry import Convert, Registry

NAMESPACES = ("", "namespaces")


class RunningCluster:
    """A cluster in which things happen. `cluster` is its API; `save` and `restore` hold its logs too."""

    def __init__(  # noqa: PLR0913 - one decision's whole input
        self,
        name: str,
        version: str,
        clock: Clock,
        outside: Outside,
        *,
        tokens: Tokens | None = None,
        converts: Mapping[str, Convert] | None = None,
    ) -> None:
        self.cluster = Cluster(name, version, clock, tokens=tokens)
        self.loop = Loop(self.cluster, outside.durations)
        self.logs = Logs(self.cluster)
        self._new: tuple[int, str] | None = None
        self._kept: list[Any] = []
        self.definitions = Definitions(self.loop, converts)
        managers = MigManagers(self.loop, outside)
        operator = GpuOperator(self.loop, outside, managers)
        outside = replace(outside, gpus=operator.gpus)
        drivers = DraDrivers(self.loop, outside)
        self.loop.add(
            Namespaces(self.cluster, outside.ca_pem),
            self.definitions,
            Garbage(self.cluster),
            Quotas(self.cluster),
            Claims(self.loop),
            ResourceClaims(self.loop),
            Scheduler(self.loop),
            Kubelet(self.loop, outside, self.logs, drivers),
            Jobs(self.loop),
            Replicas(self.loop),
            MpiJobs(self.loop),
            managers,
            operator,
            GpuClusters(self.loop, operator),
            drivers,
            Devices(self.loop, outside),
            NvidiaDevices(self.loop, outside),
        )

    def start(self) -> None:
        """Fill in what a fresh cluster has and look at everything."""
        for thing in self.cluster.store.all(DEFINITIONS):
            self.definitions.serve(thing)
        bootstrap(self.cluster)
        self.loop.look_at_all()

    def keep_as_new(self) -> None:
        """As it is now, all that it has is what a new one has: `as_new` until something is written."""
        with self.cluster.store.lock:
            self._new, self._kept = self._now(), self.cluster.store.save()["objects"]

    def renew(self) -> bool:
        """Restore what `keep_as_new` kept; False where nothing was kept of this version."""
        if self._new is None or self._new[1] != self.cluster.version:
            return False
        self._empty(self._kept)
        self.loop.look_at_all()
        return True

    @property
    def as_new(self) -> bool:
        """Return whether nothing was written since `keep_as_new`; logins don't count."""
        return self._new == self._now()

    def _now(self) -> tuple[int, str]:
        return self.cluster.store.revision, self.cluster.version

    def clear(self) -> None:
        """Make it empty, with the administrator's token alone; call `start` after it."""
        self._empty([])

    def _empty(self, but: list[Any]) -> None:
        with self.cluster.store.lock:
            self.cluster.tokens.end_all()
            self.cluster.store.restore({"revision": self.cluster.store.revision, "objects": but})
            self.loop.forget()
            self.logs.sweep()
            self.upgrade(self.cluster.version)

    def add_node(  # noqa: PLR0913 - one decision's whole input
        self,
        name: str,
        *,
        cpus: int,
        memory: int,
        version: str,
        roles: tuple[str, ...] = (),
        address: str = "",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Object] = (),
    ) -> Object:
        """A node that is ready. `memory` in bytes."""
        when = stamp(self.cluster.clock.now())
        room = {"cpu": str(cpus), "memory": f"{memory // 1024}Ki", "pods": "110", "ephemeral-storage": "16Gi"}
        own = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **{f"node-role.kubernetes.io/{role}": "" for role in roles},
        }
        first = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
        all_taints = [*([first] if "control-plane" in roles else []), *taints]
        status = {
            "capacity": room,
            "allocatable": room,
            "conditions": [condition("Ready", status=True, when=when, reason="KubeletReady")],
            "nodeInfo": {
                "kubeletVersion": version,
                "osImage": "VMware Photon OS/Linux",
                "architecture": "amd64",
                "operatingSystem": "linux",
                "bootID": "",
                "containerRuntimeVersion": "containerd://1.4.3",
                "kernelVersion": "4.19.154-3.ph3",
                "kubeProxyVersion": version,
                "machineID": "",
                "systemUUID": "",
            },
            "addresses": [
                {"type": "Hostname", "address": name},
                *([{"type": "InternalIP", "address": address}] if address else []),
            ],
        }
        spec = {"taints": all_taints} if all_taints else {}
        return self.cluster.ensure(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {**own, **(labels or {})}},
                "spec": spec,
                "status": status,
            }
        )

    def upgrade(self, version: str) -> None:
        """Serve as another version from now on."""
        self.cluster.version = version
        self.cluster.registry = Registry(version)
        for space in (
            self.cluster.store.all(NAMESPACES) if self.cluster.registry.minor >= NAMES_NAMESPACES else ()
        ):
            if (fresh := named(copied(space))) != space:
                self.cluster.store.put(NAMESPACES, fresh)
        for thing in self.cluster.store.all(DEFINITIONS):
            self.definitions.serve(thing)

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart."""
        return {
            "cluster": self.cluster.save(),
            "logs": self.logs.save(),
            "programs": self.cluster.webhooks.services.save(),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take over what `save` gave; `start` comes after it."""
        self.cluster.restore(data["cluster"])
        self.upgrade(self.cluster.version)
        self.logs.restore(data["logs"])
        self.cluster.webhooks.services.restore(data.get("programs", {}))
