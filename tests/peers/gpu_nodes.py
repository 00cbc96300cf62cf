"""A site with the GPU operator on a real kube-apiserver: its node, and what NVIDIA's software writes."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kinds.lifecycle import SPECS
from peers.found import Peers
from peers.site_files import SiteFile

GPU = "gpu.nvidia.com"


class Nvidia(threading.Thread, ABC):
    """What NVIDIA's software writes, each half a second, until it is stopped."""

    def __init__(self, peers: Peers) -> None:
        super().__init__(daemon=True)
        self._peers, self._stopped = peers, threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(0.5):
            with contextlib.suppress(AssertionError):  # a type is not served yet, or an object is gone
                self.look()

    @abstractmethod
    def look(self) -> None:
        """Write what is to be written now."""

    @contextmanager
    def beside(self, site: SiteFile) -> Iterator[None]:
        """It runs, until the site is destroyed."""
        self.start()
        try:
            yield
            site.apply(destroy=True)
        finally:
            self._stopped.set()
            self.join()


@contextmanager
def gpu_node(peers: Peers, folder: Path, rendering: str, sort: str) -> Iterator[SiteFile]:
    """With a namespace and a node with GPUs of the test's own, both called as the site. `rendering`: the
    operator's, in specs/manifests; `sort`: what the names have in common.
    """
    own = f"peers-{sort}-{uuid.uuid4().hex[:8]}"
    found = SiteFile(SPECS / "peers/gpu-operator.yaml", folder)
    found.given["site"] = found.given["namespace"]["gpus"]["namespace"] = own
    found.put("admin.kubeconfig", peers.kubeconfig.read_text())
    found.take(f"manifests/{rendering}/operator.yaml", "operator.yaml")
    labels = {"nvidia.com/gpu.present": "true", "type": "kwok", "kubernetes.io/hostname": own}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": own, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [{"key": own, "effect": "NoSchedule"}]},
    }
    peers.kubectl("apply", "-f", "-", given=json.dumps(node))
    try:
        yield found
    finally:
        _delete(peers, ("node", own), ("namespace", own))


@contextmanager
def gpus_by_claims(peers: Peers, folder: Path, rendering: str, sort: str) -> Iterator[SiteFile]:
    """See `gpu_node`; with NVIDIA's class of this sort of devices: gpu or mig."""
    of_class = f"{sort}.nvidia.com"
    with gpu_node(peers, folder, rendering, sort) as found:
        gpus = found.given["gpu_operator"]["gpus"]
        del gpus["mig"]
        gpus["allocate"] = "dra"
        expression = f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == '{sort}'"
        devices = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": of_class},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        peers.kubectl("apply", "-f", "-", given=json.dumps(devices))
        try:
            yield found
        finally:
            _delete(peers, ("resourceslice", found.given["site"]), ("deviceclass", of_class))


def _delete(peers: Peers, *things: tuple[str, str]) -> None:
    for kind, name in things:
        peers.kubectl("delete", kind, name, "--ignore-not-found", "--wait=false")
