"""One API to try the client on: the sandbox's over loopback TLS, and with --peers the real one of
script/peers.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bfinfra.backends.kubernetes import ClusterClient, Clusters
from bfinfra.backends.transport import Transport
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.nvidia import Gpus as NodeGpus
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners
from bfinfra.sandbox.tally import Tally
from bfinfra.sandbox.world_outside import Registry


class HeldClock(Clock):
    """While it is held, nothing that takes time happens."""

    def __init__(self) -> None:
        super().__init__(pace=0)
        self.held = False
        self._later: list[Callable[[], None]] = []

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        """As a clock has it, or once it is let go."""
        if self.held and seconds:
            self._later.append(what)
        else:
            super().after(seconds, what)

    def let_go(self, _: float = 0) -> None:
        """What waits happens now."""
        self.held = False
        while self._later:
            super().after(0, self._later.pop(0))


PEERS = ["sandbox", pytest.param("kube-apiserver", marks=pytest.mark.peers)]


@dataclass(frozen=True)
class Gpus:
    """A Bitfusion server with two V100, as the sandbox's pods see it."""

    uuid: str = "6e9df987-a6e8-4d18-9476-9ea12a419e83"
    version: str = "3.0.0-11"
    memory: tuple[int, ...] = (32510, 32510)


@dataclass
class Api:
    """A Kubernetes API and a kubeconfig for its administrator."""

    config: dict[str, Any]
    faults: Faults | None = None
    running: RunningCluster | None = None

    def secret(self, **changes: Any) -> Secret:
        """The kubeconfig as a reference; `changes` replace fields of its user."""
        config = json.loads(json.dumps(self.config))
        if changes:
            config["users"][0]["user"] = changes
        return Secret("env", "KUBECONFIG_TEXT", Sources(env={"KUBECONFIG_TEXT": json.dumps(config)}))


def somebody_patches(cluster: ClusterClient, path: str, body: dict[str, Any]) -> None:
    """A merge patch by another field manager: `namespaces/x/configmaps/y`."""
    headers = {"content-type": "application/merge-patch+json"}
    cluster._do(
        lambda link: link.raw.patch(
            f"/api/v1/{path}", params={"fieldManager": "somebody"}, headers=headers, json=body
        )
    )


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def kubelet_folders() -> dict[str, str]:
    """Nodes of the sandbox whose kubelets have another folder; a test's own to fill."""
    return {}


@pytest.fixture
def server_version() -> str:
    """Of the sandbox's API server; a test's own to choose."""
    return "v1.20.2"


@pytest.fixture
def clock() -> HeldClock:
    """The sandbox's: it stands still as long as a test holds it."""
    return HeldClock()


@pytest.fixture
def sandbox_api(
    pki: Pki,
    kubelet_folders: dict[str, str],
    server_version: str,
    clock: HeldClock,
    request: pytest.FixtureRequest,
) -> Iterator[Api]:
    """With further nodes, and the GPUs that they have, where a test has a fixture `node_gpus`."""
    has = "node_gpus" in request.fixturenames
    node_gpus: dict[str, NodeGpus] = request.getfixturevalue("node_gpus") if has else {}
    faults = Faults()
    listeners = Listeners(pki, faults, Tally())
    server = Gpus()
    running = RunningCluster(
        "c",
        server_version,
        clock,
        Outside(
            durations={"definition": 1},
            ca_pem=pki.ca_pem,
            gpu_server=lambda _: server,
            kubelet_folders=kubelet_folders,
            gpus=lambda node: node_gpus.get(node, NodeGpus()),
            registries={"closed.test": Registry("u", "p")},
        ),
    )
    running.start()
    for node in {"worker": None, **node_gpus}:
        running.add_node(node, cpus=32, memory=2**36, version=server_version)
    running.cluster.ensure(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "bf-k8s"},
            "provisioner": "csi",
        }
    )
    port = listeners.open("localhost:6443", running.cluster.handler)
    yield Api(_config(f"https://localhost:{port}", pki.ca_pem, running.cluster.admin_token), faults, running)
    listeners.close_all()
    running.cluster.close()


@pytest.fixture(params=PEERS)
def api(request: pytest.FixtureRequest) -> Api:
    if request.param == "sandbox":
        found: Api = request.getfixturevalue("sandbox_api")
        return found
    return Api(json.loads(request.getfixturevalue("peers").kubeconfig.read_text()))


@pytest.fixture
def clusters() -> Iterator[Clusters]:
    transport = Transport()
    made = Clusters(transport, None)
    yield made
    made.close()
    transport.close()


@pytest.fixture
def cluster(api: Api, clusters: Clusters) -> ClusterClient:
    return clusters.at(Endpoint(kubeconfig=api.secret()))


@pytest.fixture
def space(cluster: ClusterClient) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cluster.delete("v1", "Namespace", name)


def _config(url: str, pem: str, token: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(pem.encode()).decode(),
                },
            }
        ],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
