"""An API server's refusals: Status bodies, worded as kube-apiserver words them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bfinfra.sandbox.handler import Response, as_json
from bfinfra.sandbox.kubernetes.objects import Object


@dataclass(frozen=True)
class Cause:
    """One reason of a refusal: machine word, message, path of the field."""

    reason: str
    message: str
    field: str


@dataclass
class Refused(Exception):
    """A refusal; `body()` is the Status."""

    code: int
    reason: str
    message: str
    details: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> Object:
        """The Status object."""
        status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return {**status, "code": self.code}

    def response(self) -> Response:
        """The HTTP answer."""
        return as_json(self.body(), self.code, **self.headers)


def qualified(plural: str, group: str) -> str:
    """`pods`, `deployments.apps`: how messages name a resource or a kind."""
    return f"{plural}.{group}" if group else plural


def about(name: str, group: str, kind: str, causes: Sequence[Cause] = ()) -> dict[str, Any]:
    """The details of a Status."""
    listed = [{"reason": each.reason, "message": each.message, "field": each.field} for each in causes]
    return {
        key: value
        for key, value in {"name": name, "group": group, "kind": kind, "causes": listed}.items()
        if value
    }


def not_found(plural: str, group: str, name: str) -> Refused:
    """404 for an object."""
    return Refused(
        404, "NotFound", f'{qualified(plural, group)} "{name}" not found', about(name, group, plural)
    )


def already_exists(plural: str, group: str, name: str, *, going: bool) -> Refused:
    """409 for a create. `going`: what has the name is being deleted."""
    message = f'{qualified(plural, group)} "{name}" already exists'
    if going:
        message = f"object is being deleted: {message}"
    return Refused(409, "AlreadyExists", message, about(name, group, plural))


def conflict(plural: str, group: str, name: str, why: str = "") -> Refused:
    """409 for a write against an older version."""
    reason = (
        why or "the object has been modified; please apply your changes to the latest version and try again"
    )
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {reason}'
    return Refused(409, "Conflict", message, about(name, group, plural))


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> Refused:
    """422 with every field that is wrong."""
    lines = [f"{each.field}: {each.message}" for each in causes]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return Refused(
        422,
        "Invalid",
        f'{qualified(kind, group)} "{name}" is invalid: {text}',
        about(name, group, kind, causes),
    )


def forbidden(plural: str, group: str, name: str, why: str, causes: Sequence[Cause] = ()) -> Refused:
    """403: rights, quotas, admission."""
    thing = qualified(plural, group) + (f' "{name}"' if name else "")
    return Refused(403, "Forbidden", f"{thing} is forbidden: {why}", about(name, group, plural, causes))


def unauthorized() -> Refused:
    """401: no token, or one that is not known any more."""
    return Refused(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> Refused:
    """400: what was sent can't be read."""
    return Refused(400, "BadRequest", message)


def expired(wanted: int, oldest: int) -> Refused:
    """410: a watch or a page from too far back."""
    return Refused(410, "Expired", f"too old resource version: {wanted} ({oldest})")


def not_allowed() -> Refused:
    """405: the resource has no such verb."""
    return Refused(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
    )


def unsupported_media_type(accepted: str = "") -> Refused:
    """415: a patch of an unknown kind."""
    if accepted:
        message = (
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
        return Refused(415, "UnsupportedMediaType", message)
    return Refused(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def internal(message: str) -> Refused:
    """500, which a real server answers for an apply of undeclared fields too."""
    return Refused(500, "", message)


def no_such_path() -> Response:
    """Return a server's answer to a path without a resource."""
    return Response(
        404,
        b"404 page not found\n",
        {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"},
    )
