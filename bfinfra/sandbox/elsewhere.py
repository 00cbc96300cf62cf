"""Clusters that no supervisor made: a world file that makes a `kubeconfig` has the cluster that it leads to."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.outside import Outside

if TYPE_CHECKING:
    from bfinfra.sandbox.bitfusion import BitfusionServers
    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.pki import Pki
    from bfinfra.sandbox.server import Listeners
    from bfinfra.sandbox.world import World

PORT = 6443
VERSION = "v1.27.3"


def make_kubeconfig(path: Path, *, ca_pem: str, address: str, version: str = VERSION) -> None:
    """A kubeconfig for the administrator of the cluster at `address`, which runs `version`."""
    authority = base64.b64encode(ca_pem.encode()).decode()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": address,
        "clusters": [{"name": address, "cluster": {"server": f"https://{address}:{PORT}", "certificate-authority-data": authority}}],
        "users": [{"name": "admin", "user": {"token": _token(address, version)}}],
        "contexts": [{"name": address, "context": {"cluster": address, "user": "admin"}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config, indent=1))


class Elsewhere:
    """The clusters by address: there from the start, as the world's files say."""

    def __init__(self, world: World, pki: Pki, clock: Clock, listeners: Listeners, bitfusion: BitfusionServers) -> None:
        self._listeners = listeners
        outside = Outside(
            durations=world.durations, ca_pem=pki.ca_pem, registries=world.registries, images=world.images,
            gpu_server=bitfusion.running.get, gpu_servers=lambda: dict(bitfusion.running),
        )
        wanted = [file.options for file in world.files.values() if file.make == "kubeconfig"]
        self.all = {str(o["address"]): RunningCluster("elsewhere", str(o.get("version", VERSION)), clock, outside) for o in wanted if "address" in o}

    def open(self) -> None:
        """Be reachable."""
        for address, each in self.all.items():
            _start(address, each)
            self._listeners.open(f"{address}:{PORT}", each.cluster.door)

    def reset(self) -> None:
        """As new."""
        for address, each in self.all.items():
            each.cluster.store.restore({"revision": each.cluster.store.revision, "objects": []})
            _start(address, each)

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart, by address."""
        return {address: each.save() for address, each in self.all.items()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """As it was saved."""
        for address, each in self.all.items():
            if address in data:
                each.restore(data[address])

    def dump(self) -> dict[str, Any]:
        """Without generated ids and times, by address."""
        return {address: each.cluster.dump() for address, each in self.all.items()}


def _start(address: str, running: RunningCluster) -> None:
    running.start()
    running.cluster.keep_admin_token(_token(address, running.cluster.version))
    running.add_node("worker", cpus=8, memory=2**35, version=running.cluster.version)


def _token(address: str, version: str) -> str:
    """The same each time, so that the kubeconfig outlives a restart; it opens nothing but this sandbox's loopback door."""
    return hashlib.sha256(f"administrator of {address} {version}".encode()).hexdigest()
