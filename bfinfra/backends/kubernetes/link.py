"""The connection to one Kubernetes API: lightkube on bfinfra's transport, with the token, and with every
failure as one of bfinfra's errors.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import httpx2
from lightkube import Client
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import Cluster as ClusterModel
from lightkube.config.models import Context, User
from lightkube.core.decoders import decode_list, decode_status, decode_watch_event
from lightkube.generic_resource import GenericGlobalResource, GenericNamespacedResource, create_api_info
from lightkube.models.meta_v1 import ObjectMeta

from bfinfra.backends.kubernetes import errors
from bfinfra.backends.kubernetes.access import Access
from bfinfra.backends.kubernetes.marks import MANAGER
from bfinfra.backends.kubernetes.resources import Resource
from bfinfra.backends.transport import Transport

# msgspec inspects a class at its first use; two threads that do so at once crash the process (SIGSEGV).
ObjectMeta.from_dict({})
decode_list(b'{"items": []}', ObjectMeta)
decode_status(b"{}")
decode_watch_event(b'{"type": "", "object": {}}')
_inspecting = threading.Lock()


class Link:
    """One login's connections: `objects` (lightkube) and `raw` (plain HTTP), on the same transport."""

    def __init__(self, transport: Transport, access: Access, server: str) -> None:
        self.access = access
        self._wire = _Wire(
            transport.transport(
                access.url, access.trust, extra_pem=access.extra_pem, identity=access.identity
            ),
            access.token,
            server,
        )
        self.raw = httpx2.Client(
            base_url=access.url, transport=self._wire, trust_env=False, timeout=transport.timeout
        )
        self.objects: Any = Client(
            config=_config(access.url),
            transport=self._wire,
            trust_env=False,
            timeout=transport.timeout,
            field_manager=MANAGER,
        )

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()


@functools.lru_cache(maxsize=256)
def resource_class(resource: Resource) -> Any:
    """The class of lightkube for a kind of object. Its objects are dictionaries and lose nothing."""
    base = GenericNamespacedResource if resource.namespaced else GenericGlobalResource
    info = create_api_info(resource.group, resource.version, resource.kind, resource.plural)
    made = type(resource.kind, (base,), {"_api_info": info})
    with _inspecting:
        decode_list(b'{"items": []}', made)
    return made


def _config(url: str) -> SingleConfig:
    # The transport verifies certificates; this only keeps lightkube from making a second, unused context.
    cluster = ClusterModel(server=url, insecure=True)
    return SingleConfig(
        context_name="bfinfra", context=Context(cluster="bfinfra"), cluster=cluster, user=User()
    )


class _Wire(httpx2.BaseTransport):
    def __init__(self, inner: httpx2.BaseTransport, token: str, server: str) -> None:
        self._inner = inner
        self._token = token
        self._server = server

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        response = self._inner.handle_request(request)
        if not 200 <= response.status_code < 300:
            response.read()
            raise errors.of_answer(response, request, f"{request.method} {request.url.path}", self._server)
        if response.headers.get("content-type", "").startswith("text/html"):
            response.close()
            raise errors.malformed(
                f"{request.method} {request.url.path}", self._server, "it sends a web page"
            )
        return response

    def close(self) -> None:
        self._inner.close()
