"""`kubectl vsphere login`: vCenter accounts become bearer tokens of the supervisor or of a guest cluster."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from typing import Any

from bfinfra.sandbox.handler import Request, Response, as_json
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.guests import Guests
from bfinfra.sandbox.kubernetes.identity import MASTERS, User
from bfinfra.sandbox.kubernetes.outside import Outside, Person

LIFE = 10 * 3600.0  # seconds
PORT = 6443
AUDIENCE = "vmware-tes:vc:vns:k8s"
DENIED = {"www-authenticate": 'Basic realm="wcp"', "content-type": "text/plain; charset=utf-8"}


class Login:
    """The handler of <supervisor>:443."""

    def __init__(
        self,
        address: str,
        cluster: Cluster,
        guests: Guests,
        namespaces: Callable[[], Iterable[str]],
        outside: Outside,
    ) -> None:
        self._address, self._cluster, self._guests = address, cluster, guests
        self._namespaces, self._outside = namespaces, outside

    def handler(self, request: Request) -> Response:
        """/wcp/login and /wcp/workloads; everything else is the API."""
        path = request.path.rstrip("/")
        if path == "/wcp/login":
            return self._login(request) if request.method == "POST" else Response(405, b"", {"allow": "POST"})
        if path == "/wcp/workloads":
            return self._workloads(request)
        if path.startswith("/wcp"):
            return Response(404, f"the sandbox has no {path}\n".encode(), {"content-type": "text/plain"})
        return self._cluster.handler(request)

    def _login(self, request: Request) -> Response:
        person = self._person(request)
        if person is None:
            return Response(401, b"Unauthorized\n", DENIED)
        try:
            body = request.json() or {}
        except ValueError:
            return Response(400, b"the body is not JSON\n", {"content-type": "text/plain"})
        name = body.get("guest_cluster_name", "") if isinstance(body, dict) else ""
        if not name:
            return _answer({"session_id": self._token(self._cluster, person)})
        where = self._guest(name, body.get("guest_cluster_namespace", ""), person)
        if where is None:
            return _answer(
                {
                    "session_id": self._token(self._cluster, person),
                    "guest_cluster_server": "",
                    "guest_cluster_ca": "",
                }
            )
        guests = self._guests
        return _answer(
            {
                "session_id": self._token(guests.running[where].cluster, person),
                "guest_cluster_server": guests.addresses[where],
                "guest_cluster_ca": base64.b64encode(self._outside.ca_pem.encode()).decode(),
            }
        )

    def _guest(self, name: str, namespace: str, person: Person) -> tuple[str, str] | None:
        mine = set(self._visible(user_of(person)))
        found = [
            where
            for where in self._guests.running
            if where[1] == name and namespace in ("", where[0]) and where[0] in mine
        ]
        return found[0] if len(found) == 1 else None

    def _workloads(self, request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        person = self._person(request)
        user = (
            user_of(person)
            if person
            else (self._cluster.authenticate(token) if scheme.lower() == "bearer" else None)
        )
        if user is None:
            return Response(401, b"Unauthorized\n", DENIED)
        host = self._address
        return as_json(
            [
                {
                    "namespace": name,
                    "master_host": host,
                    "control_plane_api_server_port": PORT,
                    "control_plane_DNS_names": [],
                }
                for name in self._visible(user)
            ]
        )

    def _visible(self, user: User) -> list[str]:
        authorizer = self._cluster.authorizer
        return [name for name in self._namespaces() if authorizer.bound(user, name)]

    def _person(self, request: Request) -> Person | None:
        scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return None
        return self._outside.login(name, password)

    def _token(self, cluster: Cluster, person: Person) -> str:
        claims: dict[str, Any] = {
            "username": person.name,
            "domain": person.name.rpartition("@")[2],
            "aud": AUDIENCE,
            "group_ids": list(person.groups),
        }
        return cluster.tokens.issue(user_of(person), LIFE, claims)


def _answer(body: dict[str, str]) -> Response:
    """JSON that calls itself HTML, as a supervisor of 2021 answers."""
    return Response(200, json.dumps(body).encode(), {"content-type": "text/html", "server": "VMware-WCP"})


def user_of(person: Person) -> User:
    """Return the user and groups that RBAC sees for a vCenter account."""
    groups = tuple(f"sso:{group}" for group in person.groups)
    return User(f"sso:{person.name}", (*groups, MASTERS) if person.admin else groups)
