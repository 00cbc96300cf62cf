"""Plain HTTP clients for the sandbox's servers, on the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bfinfra.sandbox import Running
from bfinfra.sandbox.passwords import Passwords


@dataclass
class Answer:
    """`data`: the body as JSON where it is."""

    status: int
    data: Any
    headers: dict[str, str]


class Https(http.client.HTTPSConnection):
    """A connection to a loopback port that checks the certificate of the name it was asked for."""

    def __init__(self, host: str, port: int, ca_file: str) -> None:
        super().__init__(host, timeout=60, context=ssl.create_default_context(cafile=ca_file))
        self.real = port

    def connect(self) -> None:
        self.sock = self._context.wrap_socket(
            socket.create_connection(("127.0.0.1", self.real), 60), server_hostname=self.host
        )


class Rest:
    """A logged-in client of the world's REST API."""

    def __init__(self, world: Running, user: str = "", password: str = "") -> None:
        host = next(a for a in world.addresses if a.startswith("v")).rpartition(":")[0]
        found = world.lookup(host, 443)
        assert found
        self.host, self.port, self.ca_file = host, found[1], str(world.ca_file)
        answer = self.raw(
            "POST",
            "/api/session",
            headers=basic(user or "admin@small.test", password or world.env["VCENTER_PASSWORD"]),
        )
        assert answer.status == 201, answer
        self.token = answer.data

    def raw(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """One request on a connection of its own."""
        connection = Https(self.host, self.port, self.ca_file)
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json", **(headers or {})},
            )
            return read(connection)
        finally:
            connection.close()

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """One request of the session."""
        return self.raw(method, path, body, {"vmware-api-session-id": self.token})

    def get(self, path: str) -> Any:
        """What there is at a path under /api."""
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.data


def generated(world: Running, name: str) -> str:
    """The password that the world generated for a user or a variable."""
    return Passwords.kept_in(world.state).generated(name)


def basic(user: str, password: str) -> dict[str, str]:
    """The header of HTTP basic authentication."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def control(
    world: Running, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Answer:
    """One request to the control API."""
    connection = http.client.HTTPConnection(world.control, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        return read(connection)
    finally:
        connection.close()


def read(connection: http.client.HTTPConnection) -> Answer:
    """The answer that comes."""
    found = connection.getresponse()
    text = found.read()
    headers = {name.lower(): value for name, value in found.getheaders()}
    is_json = (
        "json" in headers.get("content-type", "") or text[:1] == b"{"
    )  # a supervisor's login calls its JSON text/html
    return Answer(found.status, json.loads(text) if text and is_json else text, headers)


def until(test: Callable[[], Any], seconds: float = 60) -> Any:
    """What the test gives once that is true."""
    limit = time.monotonic() + seconds
    while not (found := test()):
        assert time.monotonic() < limit, "it did not become true"
        time.sleep(0.005)
    return found
