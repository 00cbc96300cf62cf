"""The supervisors of a world: told by vCenter's REST state, opened on the listeners, fed by the Bitfusion servers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes.outside import Outside, Person
from bfinfra.sandbox.kubernetes.supervisor import Access, NamespaceSpec, Supervisor

if TYPE_CHECKING:
    from bfinfra.sandbox.bitfusion import BitfusionServers
    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.rest import RestState
    from bfinfra.sandbox.server import Listeners
    from bfinfra.sandbox.world import World

COUNTS = {
    "pod_count": "pods", "service_count": "services", "deployment_count": "count/deployments.apps", "daemon_set_count": "count/daemonsets.apps",
    "replica_set_count": "count/replicasets.apps", "replication_controller_count": "replicationcontrollers",
    "stateful_set_count": "count/statefulsets.apps", "config_map_count": "configmaps", "secret_count": "secrets",
    "persistent_volume_claim_count": "persistentvolumeclaims", "job_count": "count/jobs.batch",
}  # fmt: skip
"""Count in a namespace's resource_spec → key of a ResourceQuota."""


@dataclass(frozen=True)
class Size:
    """A machine class. `memory` in bytes."""

    cpus: int
    memory: int


class Supervisors:
    """All supervisors of a world, by the id of their cluster."""

    def __init__(self, world: World, clock: Clock, ca_pem: str, listeners: Listeners, rest: RestState, bitfusion: BitfusionServers) -> None:
        self._world, self._rest, self._bitfusion = world, rest, bitfusion
        outside = Outside(
            durations=world.durations, ca_pem=ca_pem, registries=world.registries, images=world.images, gpu_server=bitfusion.find,
            gpu_servers=lambda: dict(bitfusion.running), login=self._login, machine_classes=self._classes, open=listeners.open, close=listeners.close,
        )  # fmt: skip
        self.by_cluster = {
            moid: Supervisor(each.address, each.version, clock, outside, releases=world.tanzu_releases, pool=each.guest_addresses(),
                             hosts=tuple(world.clusters[cluster.name].hosts))
            for moid, (cluster, each) in rest.supervisors().items()
        }  # fmt: skip
        rest.namespace_hooks.append(self._namespace)
        rest.class_hooks.append(lambda _name, _info: self._sync_classes())

    def open(self) -> None:
        """Open every supervisor's addresses."""
        for each in self.by_cluster.values():
            each.open()

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart, by the supervisor's address."""
        return {each.address: each.save() for each in self.by_cluster.values()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """As it was saved."""
        for each in self.by_cluster.values():
            if each.address in data:
                each.restore(data[each.address])

    def reset(self) -> None:
        """As at the start."""
        for each in self.by_cluster.values():
            each.reset()

    def expire(self) -> None:
        """End every token."""
        for each in self.by_cluster.values():
            each.expire()

    def dump(self) -> dict[str, Any]:
        """Without generated ids and times, by address."""
        return {each.address: each.dump() for each in self.by_cluster.values()}

    def open_tokens(self) -> list[str]:
        """Names of users with tokens that are still good."""
        return sorted(name for each in self.by_cluster.values() for name in each.open_tokens())

    def _namespace(self, name: str, info: Mapping[str, Any] | None) -> None:
        for moid, supervisor in self.by_cluster.items():
            if info is None and name in supervisor.namespaces():
                supervisor.namespace_removed(name)
            elif info is not None and info.get("cluster") == moid:
                supervisor.namespace_ready(name, self._spec(info))

    def _spec(self, info: Mapping[str, Any]) -> NamespaceSpec:
        policies = {identity: name for identity, (name, _) in self._rest.policies().items()}
        storage = {policies[each["policy"]]: each.get("limit") for each in info.get("storage_specs", []) if each["policy"] in policies}
        access = tuple(Access(f"{each['subject']}@{each['domain']}", each["role"], each["subject_type"]) for each in info.get("access_list", []))
        limits = info.get("resource_spec") or {}
        counts = {COUNTS[name]: str(value) for name, value in limits.items() if name in COUNTS}
        if "storage_request_limit" in limits:
            counts["requests.storage"] = f"{limits['storage_request_limit']}Mi"
        classes = (info.get("vm_service_spec") or {}).get("vm_classes") or []
        return NamespaceSpec(storage=storage, vm_classes=sorted(classes), access=access, counts=counts)

    def _classes(self) -> dict[str, Size]:
        with self._rest.lock:
            return {name: Size(each["cpu_count"], each["memory_MB"] * 2**20) for name, each in self._rest.vm_classes.items()}

    def _sync_classes(self) -> None:
        for each in self.by_cluster.values():
            each.sync_classes()

    def _login(self, name: str, password: str) -> Person | None:
        for user in self._world.users:
            if user.name.lower() == name.lower() and secrets.compare_digest(str(user.password).encode(), password.encode()):
                return Person(user.name, tuple(user.groups), admin=user.role == "admin")
        return None
