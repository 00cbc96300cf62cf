"""Turns a Kubernetes API's errors into bfinfra's. Messages are made safe to print; those about Secrets are
left out.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from bfinfra.backends.words import LONGEST, safe
from bfinfra.model.errors import (
    Busy,
    Conflict,
    Exists,
    Expired,
    Forbidden,
    Malformed,
    Missing,
    Rejected,
    RemoteError,
    Unanswered,
)

if TYPE_CHECKING:
    import httpx2

NOT_OURS = (
    "admission webhook",
    "exceeded quota",
    "violates PodSecurity",
    "is forbidden by",
    "ValidatingAdmissionPolicy",
)
"""Texts of a 403 that isn't about rights: another rule refuses the object itself."""
GIVING = "attempting to grant RBAC permissions not currently held"
"""Texts of a 403 for granting rights that the account doesn't have."""
GIVEN = re.compile(
    (
        r"^\{(?:APIGroups:\[.*?\], Resources:\[(.*?)\](?:, "
        r"ResourceNames:\[(.*?)\])?|NonResourceURLs:\[(.*?)\]), Verbs:\[(.*?)\]\}"
    ),
    re.MULTILINE,
)
PATH = re.compile(r"^/(api|apis/[^/]+)/[^/]+")
CANNOT = re.compile(r"cannot (\w+) resource ")
NEVER = ("failed to create typed patch object", "etcdserver: request is too large")
"""Texts of a 500 that time does not mend: an apply that the schema does not allow, an object that is
larger than etcd takes.
"""
YOUNG = '/default: serviceaccount "default" not found'
"""Texts of a 403 for a pod in a new namespace, before its service account exists."""
TERMINATING = "because it is being terminated"
"""Text of a 403 for anything new in a namespace that is being deleted."""
GOING = "object is being deleted: "
"""How the message of a 409 begins where the object that has the name is being deleted."""


def of_answer(response: httpx2.Response, request: httpx2.Request, what: str, server: str) -> RemoteError:
    """The error of an answer that isn't a success, after its body was read. Missing has the server's own
    Status if it sent one.
    """
    status = _status(response)
    code = response.status_code
    going = code in (403, 409) and _terminating(status)
    error = Terminating if going else _class(code, status, request)
    why = f"{_words(status, request) or words(response)} ({code})".strip()
    if error is Busy:
        wait = "apply again once it is gone" if code == 409 else ""
        return Busy(what, server=server, why=why, next=wait, retry_after=_retry_after(response, status))
    if error is Forbidden:
        message = str(status.get("message", ""))
        right = _right(request, message)
        if GIVING in message:
            right = _giving(request)
            why = (
                f"the right to {right} is missing, or else all that the role gives, of which the account "
                f"lacks {_lacking(message)}"
            )
        else:
            why = "; ".join(filter(None, (right and f"the right to {right} is missing", why)))
        return Forbidden(
            what,
            server=server,
            why=why,
            next="grant it to the account; all rights that it needs: bfinfra privileges SITE",
            privilege=right,
        )
    if error is Missing and not status:
        return NotServed(
            what,
            server=server,
            why=why,
            next="the cluster does not know this kind of object, or it is not a Kubernetes API",
            path=request.url.path,
        )
    return error(what, server=server, why=why)


def words(response: httpx2.Response) -> str:
    """The text of an answer that is no Status of Kubernetes."""
    return safe(_status(response).get("message") or response.text, 200)


class NotServed(Missing):
    """The path is unknown: the cluster doesn't serve this kind of object. `path`: the requested path, or
    "".
    """

    def __init__(self, what: str, *, server: str = "", why: str = "", next: str = "", path: str = "") -> None:
        self.path = path
        super().__init__(what, server=server, why=why, next=next)


class Terminating(Rejected):
    """The namespace is being deleted: nothing can be made in it any more, and it may be held for ever."""

    remedy = "wait until the namespace is gone, or take away what holds it; then run this again"


class NotYetServed(Busy):
    """The path is unknown although the cluster lists it: its definition is being created or deleted."""


def malformed(what: str, server: str, why: object) -> Malformed:
    """The error of an answer that can't be read."""
    return Malformed(what, server=server, why=safe(why), next="check that this address is a Kubernetes API")


def _right(request: httpx2.Request, message: str) -> str:
    """The missing right as RBAC names it: `create secrets in namespace default`; "" for a path that is no
    resource. The server's message has the verb, which a method doesn't always tell: who applies an object
    that isn't there needs `create`.
    """
    rest = PATH.sub("", request.url.path).strip("/").split("/")
    space, rest = (rest[1], rest[2:]) if rest[0] == "namespaces" and len(rest) > 2 else ("", rest)
    reading = "get" if len(rest) > 1 else "list"
    verb = {"GET": reading, "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}.get(
        request.method, ""
    )
    if verb and (named := CANNOT.search(message)):
        verb = named[1]
    if not verb or not rest[0] or not PATH.match(request.url.path):
        return ""
    return safe(
        f"{verb} {'/'.join(rest[0:1] + rest[2:3])}" + (f" in namespace {space}" if space else ""), 300
    )


def _giving(request: httpx2.Request) -> str:
    """The verb that allows an account to grant rights that it doesn't have."""
    binding = "bindings" in PATH.sub("", request.url.path)
    plural = "clusterroles" if "/cluster" in request.url.path else "roles"
    return (
        f"bind {plural}, or clusterroles,"
        if binding and plural == "roles"
        else f"{'bind' if binding else 'escalate'} {plural}"
    )


def _lacking(message: str) -> str:
    """The rights that the role would grant, as kubectl names them."""
    found = (
        f"{verbs.replace(' ', ',')} {things or urls} {names}".rstrip()
        for things, names, urls, verbs in GIVEN.findall(message[: 64 * LONGEST])
    )
    return safe("; ".join(found).replace('"', "") or "some")


def _class(code: int, status: dict[str, Any], request: httpx2.Request) -> type[RemoteError]:
    reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    reading = request.method in ("GET", "HEAD")
    if (code == 409 and message.startswith(GOING)) or (code == 403 and YOUNG in message):
        return Busy
    if code == 409:
        return Exists if reason == "AlreadyExists" else Conflict
    if code == 403 and any(words in message for words in NOT_OURS):
        return Rejected
    if code == 500 and any(words in message for words in NEVER):
        return Rejected
    if code in (500, 504):
        return Busy if reading else Unanswered
    fixed = {401: Expired, 403: Forbidden, 404: Missing, 410: Busy, 429: Busy, 502: Busy, 503: Busy}
    return fixed.get(code, Malformed if code < 400 else Rejected)


def _terminating(status: dict[str, Any]) -> bool:
    causes = (status.get("details") or {}).get("causes") or []
    return TERMINATING in str(status.get("message", "")) or any(
        isinstance(c, dict) and c.get("reason") == "NamespaceTerminating" for c in causes
    )


def _words(status: dict[str, Any], request: httpx2.Request) -> str:
    """The message. For Secrets only the reason and the fields, as the message may quote a value."""
    if "/secrets" not in request.url.path:
        return safe(status.get("message", ""))
    causes = (status.get("details") or {}).get("causes") or []
    fields = [str(c.get("field", "")) for c in causes if isinstance(c, dict)]
    return safe(", ".join((str(status.get("reason", "")), *dict.fromkeys(fields))))


def _status(response: httpx2.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(body, dict) or body.get("kind") != "Status":
        return {}
    return {**body, "details": body["details"] if isinstance(body.get("details"), dict) else {}}


def _retry_after(response: httpx2.Response, status: dict[str, Any]) -> float | None:
    text = response.headers.get("retry-after", "") or str(
        (status.get("details") or {}).get("retryAfterSeconds", "")
    )
    return float(text) if re.fullmatch(r"\d{1,5}", text) else None
