"""The control API: plain HTTP on loopback for tests and for `bfinfra sandbox`; counts, faults, the world as
a dump, reset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.changes import BadChange, change
from bfinfra.sandbox.faults import BadRule
from bfinfra.sandbox.handler import Handler, Request, Response, as_json

if TYPE_CHECKING:
    from bfinfra.sandbox.parts import Parts

Action = Callable[["Parts", Any], Any]


def control_handler(parts: Parts) -> Handler:
    """The handler. Requests that a web page could send are refused."""

    def handler(request: Request) -> Response:
        if "origin" in request.headers or "referer" in request.headers:
            return _wrong(403, "not for web pages")
        action = ACTIONS.get((request.method, request.path))
        if action is None:
            return _wrong(
                404,
                (
                    f"nothing at {request.method} {request.path}; there are "
                    f"{', '.join(f'{m} {p}' for m, p in ACTIONS)}"
                ),
            )
        try:
            answer = action(parts, request.json())
        except (BadRule, BadChange, ValueError, TypeError) as error:
            return _wrong(400, str(error))
        if isinstance(answer, Response):
            return answer
        return Response(204) if answer is None else as_json(answer)

    return handler


def _wrong(status: int, message: str) -> Response:
    return Response(status, f"{message}\n".encode(), {"content-type": "text/plain"})


def _pace(parts: Parts, body: object) -> None:
    if not isinstance(body, dict) or not isinstance(body.get("pace"), int | float) or body["pace"] < 0:
        raise ValueError('write {"pace": NUMBER}, 0 or more')
    parts.clock.pace = float(body["pace"])


def _world(parts: Parts, _: object) -> Response:
    """Not in the middle of what a reset or a request set off."""
    parts.clock.rest()
    return Response(200, parts.dump().encode(), {"content-type": "application/json"})


ACTIONS: dict[tuple[str, str], Action] = {
    ("GET", "/tally"): lambda parts, _: parts.tally.read(),
    ("DELETE", "/tally"): lambda parts, _: parts.tally.clear(),
    ("GET", "/faults"): lambda parts, _: parts.faults.read(),
    ("POST", "/faults"): lambda parts, body: parts.faults.add(body),
    ("DELETE", "/faults"): lambda parts, _: parts.faults.clear(),
    ("GET", "/world"): _world,
    ("POST", "/reset"): lambda parts, _: parts.reset(),
    ("POST", "/pace"): _pace,
    ("POST", "/change"): change,
    ("GET", "/sessions"): lambda parts, _: parts.open_sessions(),
    ("POST", "/expire"): lambda parts, _: parts.expire(),
}
