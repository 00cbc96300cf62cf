"""Programs that containers of the sandbox run: no container runs for real, what its image would answer over
TLS is played here.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bfinfra.sandbox.handler import Request
from bfinfra.sandbox.kubernetes.objects import Object, dig, namespace_of

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.cluster_state import ClusterState

MINUTE = 60.0


@dataclass(frozen=True)
class Container:
    """A container of a ready pod. `files`: what its volumes held when it started, by path."""

    cluster: ClusterState
    pod: Object
    spec: Object
    files: Mapping[str, bytes]

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Any]:
        """A request to the cluster's API by the pod's service account: status code and answer."""
        account = dig(self.pod, "spec", "serviceAccountName", default="default")
        token = self.cluster.account_token(namespace_of(self.pod), account, MINUTE)
        headers = {
            "authorization": f"Bearer {token}",
            "user-agent": "bfinfra-sandbox",
            **({"content-type": "application/json"} if body else {}),
        }
        data = json.dumps(body).encode() if body else b""
        path, _, query = path.partition("?")
        response = self.cluster.handler(
            Request(method, path, query, headers, io.BytesIO(data), "kubernetes.default.svc:443")
        )
        answered = response.body if isinstance(response.body, bytes) else b"".join(response.body)
        return response.status, json.loads(answered)


@dataclass(frozen=True)
class Listening:
    """The address on which a program listens, and the certificate and key (PEM) that it shows."""

    port: int
    certificate: bytes
    key: bytes


class Program(Protocol):
    """The behaviour of one image. A program keeps no state: it is called again for each container."""

    def runs(self, image: str) -> bool:
        """Return whether a container of this image runs the program."""

    def listens(self, container: Container) -> Listening | None:
        """Return the address on which it listens; None while it did not find what it needs."""

    def review(self, container: Container, path: str, review: Object) -> Object | None:
        """The answer to an AdmissionReview; None for an unknown path (404). Raises TimeoutError if it
        doesn't answer.
        """
