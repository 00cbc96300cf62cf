"""Clusters outside of supervisors: they exist from the start, reached by the kubeconfig that the world's
`files` make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.linux.kubeadm import Kubernetes, Planned
from bfinfra.sandbox.linux.node import NodeMachine, gpus_of

if TYPE_CHECKING:
    from bfinfra.sandbox.bitfusion import BitfusionServers
    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.handler import Handler
    from bfinfra.sandbox.pki import Pki
    from bfinfra.sandbox.server import Listeners
    from bfinfra.sandbox.world import World
    from bfinfra.sandbox.world_outside import KubernetesCluster

CPUS, MEMORY = 8, 32 * 2**30  # of a node; memory in bytes


class Elsewhere:
    """The world's `kubernetes_clusters`, running, by name."""

    def __init__(
        self, world: World, pki: Pki, clock: Clock, listeners: Listeners, bitfusion: BitfusionServers
    ) -> None:
        self._listeners, self._as_written = listeners, world.kubernetes_clusters
        outside = Outside(
            durations=world.durations,
            ca_pem=pki.ca_pem,
            registries=world.registries,
            images=world.images,
            gpu_server=bitfusion.running.get,
            gpu_servers=lambda: dict(bitfusion.running),
            serves=bitfusion.serves,
            gpus=self._gpus,
            host=self._host,
        )
        self.host: Callable[[str], NodeMachine | None] = lambda _: None
        """The Linux machine that a node is."""
        self._ca_pem = pki.ca_pem
        self._kubeadm = {
            name: each.kubeadm for name, each in world.kubernetes_clusters.items() if each.kubeadm
        }
        self._joined: dict[str, set[str]] = {}
        """Clusters of kubeadm that are up: the machines that have joined."""
        self._machines_known: dict[str, object] = {}
        """What the nodes of each cluster had for containers at the last look. Where that changes, waiting
        pods are looked at again.
        """
        self.all = {
            name: RunningCluster(
                name, each.version, clock, replace(outside, kubelet_folders=each.kubelet_folders)
            )
            for name, each in self._as_written.items()
        }

    def open(self) -> None:
        """Be reachable."""
        for name, each in self.all.items():
            if name not in self._kubeadm:
                self._start(name)
                self._listeners.open(self._as_written[name].address, each.cluster.handler)

    def by_kubeadm(self) -> Kubernetes:
        """The clusters that Linux machines make, as kubeadm and kubectl there need them."""
        planned = {
            machine: Planned(
                name,
                self._as_written[name].address,
                self._as_written[name].version,
                str(self._as_written[name].token),
                self._ca_pem,
            )
            for name, machine in self._kubeadm.items()
        }
        return Kubernetes(
            planned,
            lambda name: self.all[name].cluster if name in self._joined else None,
            self._up,
            self._down,
            self._follow,
        )

    def _up(self, name: str, joined: set[str]) -> None:
        """Record that the control plane is up, and that these machines have joined."""
        written, running = self._as_written[name], self.all[name]
        if name not in self._joined:
            self._joined[name] = set()
            running.start()
            running.cluster.keep_admin_token(written.token)
            self._listeners.open(written.address, running.cluster.handler)
        for machine in sorted(joined - self._joined[name]):
            first = machine == written.kubeadm
            running.add_node(
                machine,
                cpus=CPUS,
                memory=MEMORY,
                version=written.version,
                roles=("control-plane",) if first else (),
            )
        self._joined[name] = joined

    def _follow(self) -> None:
        """Something was written to a machine."""
        for name, running in self.all.items():
            there = self._joined.get(name, ()) if name in self._kubeadm else self._as_written[name].machines
            had = {node: (self._gpus(node), found.folders()) for node in there if (found := self.host(node))}
            if had != self._machines_known.get(name, {}):
                self._machines_known[name] = had
                running.loop.look_at_all()

    def _down(self, name: str) -> None:
        """Remove its control plane, with all its objects."""
        if self._joined.pop(name, None) is not None:
            self._listeners.close(self._as_written[name].address)
            self.all[name].clear()

    def _host(self, node: str) -> NodeMachine | None:
        return self.host(node)

    def _gpus(self, node: str) -> Gpus:
        """The GPUs of a node. If it is one of the world's machines, its files decide; else the world gives
        their number, and they are ready for containers.
        """
        if found := self.host(node):
            return gpus_of(found.machine)
        written = next((each for name, each in self._as_written.items() if node in _nodes(name, each)), None)
        return Gpus(written.gpus, frozenset({""}), product=written.gpu_product) if written else Gpus()

    def reset(self) -> None:
        """As new; the kubeconfigs stay good."""
        self.expire()
        self._machines_known.clear()
        for name, each in self.all.items():
            if name in self._kubeadm:
                self._down(name)
            elif not each.as_new and not each.renew():
                each.clear()
                self._start(name)

    def expire(self) -> None:
        """End every token but the administrators'."""
        for each in self.all.values():
            each.cluster.tokens.end_all()

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart, by name."""
        return {
            name: {**each.save(), **({"joined": sorted(self._joined[name])} if name in self._joined else {})}
            for name, each in self.all.items()
            if name in self._joined or name not in self._kubeadm
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Restore the saved clusters; a cluster that the world did not have then is new."""
        for name, each in self.all.items():
            if name in data:
                each.restore(data[name])
                if "joined" in data[name]:
                    self._joined[name] = set(data[name]["joined"])
                    each.start()
                    self._listeners.open(self._as_written[name].address, each.cluster.handler)
                else:
                    self._start(name)

    def dump(self) -> dict[str, Any]:
        """Without generated ids and times, by name."""
        return {
            name: each.cluster.dump()
            for name, each in self.all.items()
            if name in self._joined or name not in self._kubeadm
        }

    def open_sessions(self) -> list[str]:
        """Names of users with tokens that are still good and will expire."""
        return [user for each in self.all.values() for user in each.cluster.tokens.open()]

    def as_administrator(self, address: str) -> tuple[Handler | None, dict[str, str]]:
        """The API behind an address, and the headers of its administrator; None where there is none."""
        for name, each in self.all.items():
            if self._as_written[name].address == address and (
                name in self._joined or name not in self._kubeadm
            ):
                return each.cluster.handler, {"authorization": f"Bearer {each.cluster.admin_token}"}
        return None, {}

    def _start(self, name: str) -> None:
        written, running = self._as_written[name], self.all[name]
        running.start()
        running.cluster.keep_admin_token(written.token)
        for node in _nodes(name, written):
            running.add_node(node, cpus=CPUS, memory=MEMORY, version=running.cluster.version)


def _nodes(name: str, written: KubernetesCluster) -> list[str]:
    """Of a cluster that no kubeadm makes."""
    return (
        []
        if written.kubeadm
        else list(written.machines) or [f"{name}-{number}" for number in range(written.nodes)]
    )
