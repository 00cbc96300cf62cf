"""Errors in vAPI's shape. Source: com.vmware.vapi.std.errors."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.handler import Response, as_json

STATUS = {
    "ALREADY_EXISTS": 400,
    "ALREADY_IN_DESIRED_STATE": 400,
    "INVALID_ARGUMENT": 400,
    "NOT_ALLOWED_IN_CURRENT_STATE": 400,
    "RESOURCE_IN_USE": 400,
    "UNSUPPORTED": 400,
    "NOT_FOUND": 404,
    "OPERATION_NOT_FOUND": 404,
    "UNAUTHENTICATED": 401,
    "UNAUTHORIZED": 403,
    "INTERNAL_SERVER_ERROR": 500,
}
CHALLENGE = 'Basic realm="VAPI Login Application",SIGN realm="com.vmware.vapi.std.errors.unauthenticated"'


class Refused(Exception):
    """A call that is answered with an error. `kind`: one of STATUS."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def answer(self, *, old: bool) -> Response:
        """The answer under /api, or under /rest (`old`)."""
        messages = [
            {
                "id": f"com.vmware.vapi.std.errors.{self.kind.lower()}",
                "default_message": str(self),
                "args": [],
            }
        ]
        body: Any = {"error_type": self.kind, "messages": messages}
        if old:
            body = {
                "type": f"com.vmware.vapi.std.errors.{self.kind.lower()}",
                "value": {"error_type": self.kind, "messages": messages},
            }
        challenge = {"www-authenticate": CHALLENGE} if self.kind == "UNAUTHENTICATED" else {}
        return as_json(body, STATUS[self.kind], **challenge)


def missing(what: str, name: str) -> Refused:
    """NOT_FOUND."""
    return Refused("NOT_FOUND", f"{what} with identifier '{name}' does not exist.")
