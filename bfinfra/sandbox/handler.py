"""A handler is an HTTP server of the sandbox: a function from request to response.

Listeners serve handlers on TLS ports of the loopback address.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO
from urllib.parse import parse_qsl


@dataclass(frozen=True)
class Request:
    """One HTTP request. `address`: the requested host:port; `body`: a stream, without chunks."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]  # names in lower case
    body: BinaryIO
    address: str

    @cached_property
    def params(self) -> dict[str, str]:
        """The query's parameters; the last of a name wins."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def json(self) -> Any:
        """The body as JSON; None if it is empty. Raises ValueError if it is not JSON."""
        data = self.body.read()
        return json.loads(data) if data.strip() else None


@dataclass(frozen=True)
class Response:
    """One HTTP response. A body that is not bytes is streamed chunk by chunk (watches, logs)."""

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Response]


def as_json(value: object, status: int = 200, **headers: str) -> Response:
    """A JSON response."""
    return Response(status, json.dumps(value).encode(), {"content-type": "application/json", **headers})
