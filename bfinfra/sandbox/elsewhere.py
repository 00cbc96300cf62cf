"""Clusters that no supervisor made: there from the start, reached by the kubeconfig that the world's `files` make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.outside import Outside

if TYPE_CHECKING:
    from bfinfra.sandbox.bitfusion import BitfusionServers
    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.door import Door
    from bfinfra.sandbox.pki import Pki
    from bfinfra.sandbox.server import Listeners
    from bfinfra.sandbox.world import World

CPUS, MEMORY = 8, 32 * 2**30  # of a node; memory in bytes


class Elsewhere:
    """The world's `kubernetes_clusters`, running, by name."""

    def __init__(self, world: World, pki: Pki, clock: Clock, listeners: Listeners, bitfusion: BitfusionServers) -> None:
        self._listeners, self._as_written = listeners, world.kubernetes_clusters
        outside = Outside(
            durations=world.durations, ca_pem=pki.ca_pem, registries=world.registries, images=world.images,
            gpu_server=bitfusion.running.get, gpu_servers=lambda: dict(bitfusion.running),
        )
        self.all = {name: RunningCluster(name, each.version, clock, outside) for name, each in self._as_written.items()}

    def open(self) -> None:
        """Be reachable."""
        for name, each in self.all.items():
            self._start(name)
            self._listeners.open(self._as_written[name].address, each.cluster.door)

    def reset(self) -> None:
        """As new; the kubeconfigs stay good."""
        self.expire()
        for name, each in self.all.items():
            if not each.as_new:
                each.clear()
                self._start(name)

    def expire(self) -> None:
        """End every token but the administrators'."""
        for each in self.all.values():
            each.cluster.tokens.end_all()

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart, by name."""
        return {name: each.save() for name, each in self.all.items()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """As it was saved; a cluster that was not in the world then is new."""
        for name, each in self.all.items():
            if name in data:
                each.restore(data[name])
                self._start(name)

    def dump(self) -> dict[str, Any]:
        """Without generated ids and times, by name."""
        return {name: each.cluster.dump() for name, each in self.all.items()}

    def open_sessions(self) -> list[str]:
        """Names of users with tokens that are still good and will expire."""
        return [user for each in self.all.values() for user in each.cluster.tokens.open()]

    def as_administrator(self, address: str) -> tuple[Door | None, dict[str, str]]:
        """The API behind an address, and the headers of its administrator; None where there is none."""
        for name, each in self.all.items():
            if self._as_written[name].address == address:
                return each.cluster.door, {"authorization": f"Bearer {each.cluster.admin_token}"}
        return None, {}

    def _start(self, name: str) -> None:
        written, running = self._as_written[name], self.all[name]
        running.start()
        running.cluster.keep_admin_token(written.token)
        for number in range(written.nodes):
            running.add_node(f"{name}-{number}", cpus=CPUS, memory=MEMORY, version=running.cluster.version, gpus=written.gpus)
