"""One API to try the client on: the sandbox's over loopback TLS, and the real one where KUBECONFIG names it (script/peers up)."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bfinfra.backends.kubernetes import Cluster, Clusters
from bfinfra.backends.transport import Seam
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.kubernetes.bootstrap import bootstrap
from bfinfra.sandbox.kubernetes.cluster import Cluster as SandboxCluster
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners
from bfinfra.sandbox.tally import Tally

PEERS = ["sandbox", *(["kube-apiserver"] if os.environ.get("KUBECONFIG") else [])]


@dataclass
class Api:
    """A Kubernetes API and a kubeconfig for its administrator."""

    config: dict[str, Any]
    faults: Faults | None = None

    def secret(self, **changes: Any) -> Secret:
        """The kubeconfig as a reference; `changes` replace fields of its user."""
        config = json.loads(json.dumps(self.config))
        if changes:
            config["users"][0]["user"] = changes
        return Secret("env", "KUBECONFIG_TEXT", Sources(env={"KUBECONFIG_TEXT": json.dumps(config)}))


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def sandbox_api(pki: Pki) -> Iterator[Api]:
    faults = Faults()
    listeners = Listeners(pki, faults, Tally())
    cluster = SandboxCluster("c", "v1.20.2", Clock(pace=0))
    bootstrap(cluster)
    port = listeners.open("localhost:6443", cluster.door)
    yield Api(_config(f"https://localhost:{port}", pki.ca_pem, cluster.admin_token), faults)
    listeners.close_all()
    cluster.close()


@pytest.fixture(params=PEERS)
def api(request: pytest.FixtureRequest) -> Api:
    if request.param == "sandbox":
        found: Api = request.getfixturevalue("sandbox_api")
        return found
    return Api(json.loads(Path(os.environ["KUBECONFIG"]).read_text()))


@pytest.fixture
def clusters() -> Iterator[Clusters]:
    seam = Seam()
    made = Clusters(seam, None)
    yield made
    made.close()
    seam.close()


@pytest.fixture
def cluster(api: Api, clusters: Clusters) -> Cluster:
    return clusters.at(Endpoint(kubeconfig=api.secret()))


@pytest.fixture
def space(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cluster.delete("v1", "Namespace", name)


def _config(url: str, pem: str, token: str) -> dict[str, Any]:
    import base64

    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority-data": base64.b64encode(pem.encode()).decode()}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
