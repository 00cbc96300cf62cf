"""A served cluster and independent clients for it; waiting by looking."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from lightkube import Client, KubeConfig

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

APPLY = "application/apply-patch+yaml"
OPENED: list[Client] = []


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
        return httpx2.Client(
            base_url=self.url,
            verify=context,
            headers={"user-agent": "curl/8", **headers},
            trust_env=False,
            timeout=60,
        )

    def kubeconfig(self, token: str | None = None) -> dict[str, Any]:
        """A kubeconfig."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [
                {"name": "c", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}}
            ],
            "users": [{"name": "u", "user": {"token": token or self.cluster.admin_token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
        }

    def lightkube(self, token: str | None = None) -> Client:
        """A lightkube client."""
        config = KubeConfig.from_dict(self.kubeconfig(token)).get()
        assert config
        client = Client(config=config, field_manager="tests", trust_env=False)
        OPENED.append(client)
        return client


def until(test: Callable[[], Any], seconds: float = 60) -> Any:
    """What `test` answers once it is true; fails where that takes too long."""
    end = time.monotonic() + seconds
    while not (found := test()):
        assert time.monotonic() < end, f"still {found!r} after {seconds} s"
        time.sleep(0.005)
    return found


@contextmanager
def http_of(cluster: Cluster, listeners: Listeners, pki: Pki) -> Iterator[httpx2.Client]:
    """A plain HTTP client of a cluster's administrator, at a listener of its own."""
    port = listeners.open(f"{cluster.name}.local:6443", cluster.handler)
    with Served(cluster, f"https://127.0.0.1:{port}", pki.ca_file).http() as client:
        yield client
