"""A cluster of the sandbox behind a real TLS listener, and independent clients for it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lightkube import Client, KubeConfig

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.kubernetes.bootstrap import bootstrap
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners
from bfinfra.sandbox.tally import Tally

APPLY = "application/apply-patch+yaml"


@dataclass
class Served:
    """A cluster and how to reach it."""

    cluster: Cluster
    url: str
    ca_file: Path

    def http(self, token: str | None = None) -> httpx2.Client:
        """A plain HTTP client with a bearer token (the administrator's where none is given)."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        headers = {"authorization": f"Bearer {token or self.cluster.admin_token}"} if token != "" else {}
        return httpx2.Client(base_url=self.url, verify=context, headers={"user-agent": "curl/8", **headers}, trust_env=False, timeout=10)

    def kubeconfig(self, token: str | None = None) -> dict[str, Any]:
        """A kubeconfig."""
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}}],
            "users": [{"name": "u", "user": {"token": token or self.cluster.admin_token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
        }  # fmt: skip

    def lightkube(self, token: str | None = None) -> Client:
        """A lightkube client."""
        config = KubeConfig.from_dict(self.kubeconfig(token)).get()
        assert config
        return Client(config=config, field_manager="tests", trust_env=False)


def until(test: Callable[[], Any], seconds: float = 10) -> Any:
    """What `test` answers once it is true; fails where that takes too long."""
    end = time.monotonic() + seconds
    while not (found := test()):
        assert time.monotonic() < end, f"still {found!r} after {seconds} s"
        time.sleep(0.005)
    return found


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def listeners(pki: Pki) -> Iterator[Listeners]:
    opened = Listeners(pki, Faults(), Tally())
    yield opened
    opened.close_all()


@pytest.fixture
def clock() -> Clock:
    return Clock(pace=0)


@pytest.fixture
def served(listeners: Listeners, pki: Pki, clock: Clock) -> Iterator[Served]:
    """A bare API server: nothing runs in it."""
    cluster = Cluster("bare", "v1.27.5", clock)
    bootstrap(cluster)
    port = listeners.open("bare.local:6443", cluster.door)
    yield Served(cluster, f"https://127.0.0.1:{port}", pki.ca_file)
    cluster.close()


@pytest.fixture
def http(served: Served) -> Iterator[httpx2.Client]:
    with served.http() as client:
        yield client
