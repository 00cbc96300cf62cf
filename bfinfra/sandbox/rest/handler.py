"""The handler of the REST API: /api, and the older /rest, which wraps bodies in `spec` and answers in
`value`.
"""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.handler import Handler, Request, Response, as_json
from bfinfra.sandbox.rest import handlers
from bfinfra.sandbox.rest.errors import Refused
from bfinfra.sandbox.rest.routes import Call, find
from bfinfra.sandbox.sessions import BadLogin, Session, Sessions

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Inventory
    from bfinfra.sandbox.rest.state import RestState

SESSION, OLD_SESSION = "/api/session", "/rest/com/vmware/cis/session"
HEADER = "vmware-api-session-id"


def rest_handler(inventory: Inventory, sessions: Sessions, state: RestState) -> Handler:
    """The handler of everything under /api and /rest."""
    handlers.load()

    def handler(request: Request) -> Response:
        old = request.path.startswith("/rest/")
        try:
            if request.path.rstrip("/") in (SESSION, OLD_SESSION):
                return _session(request, sessions, old=old)
            return _call(request, _open(request, sessions), inventory, state, old=old)
        except Refused as error:
            return error.answer(old=old)

    return handler


def _call(
    request: Request, session: Session, inventory: Inventory, state: RestState, *, old: bool
) -> Response:
    path = request.path.rstrip("/").removeprefix(
        "/rest/com/vmware" if request.path.startswith("/rest/com/vmware/") else "/rest" if old else "/api"
    )
    handle, arguments = find(
        request.method, path, request.params.get("action", request.params.get("~action", ""))
    )
    spec = _body(request)
    if old and isinstance(spec, dict) and len(spec) == 1 and next(iter(spec)).endswith("spec"):
        spec = next(iter(spec.values()))
    answer = handle(Call(request, spec, session, inventory, state), **arguments)
    if answer is None:
        return Response(200 if old else 204)
    status = 201 if request.method == "POST" and isinstance(answer, str) and not old else 200
    return as_json({"value": answer} if old else answer, status)


def _body(request: Request) -> Any:
    try:
        return request.json()
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Refused("INVALID_ARGUMENT", f"The body is not JSON: {error}") from None


def _open(request: Request, sessions: Sessions) -> Session:
    session = sessions.find(request.headers.get(HEADER))
    if session is None:
        raise Refused("UNAUTHENTICATED", "Authentication required.")
    return session


def _session(request: Request, sessions: Sessions, *, old: bool) -> Response:
    if request.method == "POST" and "~action" not in request.params:
        session = _login(request, sessions)
        return as_json(
            {"value": session.key} if old else session.key, 200 if old else 201, **{HEADER: session.key}
        )
    session = _open(request, sessions)
    if request.method == "DELETE":
        sessions.end(session.key)
        return Response(200 if old else 204)
    if request.method in ("GET", "POST"):
        info = {
            "user": session.user.name,
            "created_time": _moment(session.started),
            "last_accessed_time": _moment(session.used),
        }
        return as_json({"value": info} if old else info)
    raise Refused("OPERATION_NOT_FOUND", f"The sandbox does not implement {request.method} {request.path}.")


def _login(request: Request, sessions: Sessions) -> Session:
    scheme, _, coded = request.headers.get("authorization", "").partition(" ")
    try:
        name, _, password = (
            base64.b64decode(coded if scheme.lower() == "basic" else "", validate=True)
            .decode()
            .partition(":")
        )
        return sessions.login(name, password, "rest", request.headers.get("user-agent", ""))
    except (BadLogin, binascii.Error, UnicodeDecodeError):
        raise Refused(
            "UNAUTHENTICATED", "Unable to authenticate: the user name or the password is wrong."
        ) from None


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
