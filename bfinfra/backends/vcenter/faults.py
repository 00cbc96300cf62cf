"""Turns vCenter's errors into bfinfra's: SOAP faults by type, REST errors by `error_type`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
from pyVmomi.VmomiSupport import DataObject, ManagedObject

from bfinfra.backends import writes
from bfinfra.backends.vcenter import refs
from bfinfra.backends.words import safe, web_page
from bfinfra.model.errors import (
    Busy,
    Conflict,
    Denied,
    Exists,
    Expired,
    Forbidden,
    Malformed,
    Missing,
    Rejected,
    RemoteError,
    Unanswered,
)

TYPE_NAME = re.compile(r"\*types\.\w+")
"""A message that only names the fault's type, as vcsim sends: *types.InvalidState."""
SHOWN_APART = ("msg", "dynamicType")
GRANT = "grant it to the account; all that it needs, and where: bfinfra privileges SITE"
SOAP: dict[str, type[RemoteError]] = {
    "NotAuthenticated": Expired,
    "InvalidLogin": Denied,
    "InvalidLoginFault": Denied,
    "NoPermission": Forbidden,
    "RestrictedVersion": Forbidden,
    "ManagedObjectNotFound": Missing,
    "NotFound": Missing,
    "DuplicateName": Exists,
    "AlreadyExists": Exists,
    "FileAlreadyExists": Exists,
    "ConcurrentAccess": Conflict,
    "TaskInProgress": Busy,
    "VAppTaskInProgress": Busy,
    "TooManyConsecutiveOverrides": Busy,
    "HostCommunication": Busy,
    "HostNotConnected": Busy,
    "HostNotReachable": Busy,
    "Timedout": Busy,
    "SessionNotFound": Expired,
}
REST: dict[str, type[RemoteError]] = {
    "ALREADY_EXISTS": Exists,
    "CONCURRENT_CHANGE": Conflict,
    "NOT_FOUND": Missing,
    "RESOURCE_BUSY": Busy,
    "RESOURCE_INACCESSIBLE": Busy,
    "SERVICE_UNAVAILABLE": Busy,
    "UNAUTHENTICATED": Expired,
    "UNAUTHORIZED": Forbidden,
    "TIMED_OUT": Unanswered,
    "INTERNAL_SERVER_ERROR": Unanswered,
}
STATUS: dict[int, type[RemoteError]] = {
    401: Expired,
    403: Forbidden,
    404: Missing,
    409: Conflict,
    429: Busy,
    500: Unanswered,
    502: Busy,
    503: Busy,
    504: Unanswered,
}


def of_fault(fault: object, what: str, server: str) -> RemoteError:
    """The error of a SOAP fault (raised, or in a task, a lease or a missing set); `what`: what was tried."""
    name = type(fault).__name__.rpartition(".")[2]
    error = next(
        (SOAP[n] for n in (c.__name__.rpartition(".")[2] for c in type(fault).__mro__) if n in SOAP), Rejected
    )
    why = _words(fault) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    if error is Forbidden and name == "NoPermission":
        privilege = safe(getattr(fault, "privilegeId", ""))
        return Forbidden(
            what,
            server=server,
            why=f"the privilege {privilege} is missing{_on(getattr(fault, 'object', None))}",
            next=GRANT,
            privilege=privilege,
        )
    if error is Denied:
        return Denied(what, server=server, why=why, next="check vcenter.username and vcenter.password")
    return error(what, server=server, why=why if name in why else f"{why} ({name})")


def _on(ref: object) -> str:
    """` on HostSystem host-12`."""
    return (
        f" on {safe(type(ref).__name__.rpartition('.')[2])} {safe(ref._GetMoId())}"  # noqa: SLF001 - pyVmomi's public accessor has this name
        if isinstance(ref, ManagedObject)
        else ""
    )


def _words(fault: object) -> str:
    """The fault's message, its detail messages and its properties, each once."""
    parts = [
        getattr(fault, "msg", "") or "",
        *(m.message or "" for m in getattr(fault, "faultMessage", None) or ()),
    ]
    parts = [text for text in parts if not TYPE_NAME.fullmatch(text)]
    parts += [f"{name}: {value}" for name, value in _properties(fault)]
    cause = getattr(fault, "faultCause", None)
    if cause is not None:
        parts.append(_words(cause))
    return safe("; ".join(dict.fromkeys(s.strip() for s in parts if s and s.strip())))


def _properties(fault: object) -> Iterator[tuple[str, object]]:
    """The plain properties of a fault, and the ids of objects in it, by name."""
    for name, found in vars(fault).items() if isinstance(fault, DataObject) else ():
        value = refs.moid(found) if isinstance(found, ManagedObject) else found
        if name not in SHOWN_APART and isinstance(value, (str, int)) and value != "":
            yield name, value


NOT_SERVED = "the server has no such API (404)"
SERVERS = "check that it is a vCenter of 7.0 or newer; a simulator serves only a part of vCenter's APIs"


def of_answer(response: httpx2.Response, what: str, server: str) -> RemoteError:
    """The error of a REST answer that isn't a success. Server errors of a read may be retried."""
    kind, words = _rest(_json(response))
    words = words or web_page(response.read())
    error = REST.get(kind) or STATUS.get(response.status_code, Rejected)
    if error is Unanswered and not writes.writes(response.request):
        error = Busy
    why = "; ".join(part for part in (words, f"{response.status_code} {kind}".strip()) if part)
    if error is Busy:
        return Busy(what, server=server, why=why, retry_after=_retry_after(response))
    if error is Forbidden and response.status_code == 403:
        return Forbidden(what, server=server, why=why, next=GRANT)
    if error is Missing and not (kind or words):
        return Missing(what, server=server, why=NOT_SERVED, next=SERVERS)
    return error(what, server=server, why=why)


def of_entrance(response: httpx2.Response, what: str, server: str) -> RemoteError:
    """The same for requests before login: a web page there comes from no vCenter, or a broken one, which time
    does not repair.
    """
    if response.status_code in (200, 500) and (page := web_page(response.read())):
        return Malformed(
            f"no vCenter answers {response.request.method} {response.request.url.path}",
            server=server,
            why=f"{page}; {response.status_code}",
            next="check vcenter.server; if it is right, check what runs there",
        )
    return of_answer(response, what, server)


def _json(response: httpx2.Response) -> Any:
    try:
        return json.loads(response.read() or b"null")
    except (ValueError, RecursionError):
        return None


def _rest(body: object) -> tuple[str, str]:
    """The error type and the messages, from `/api` bodies and the older `/rest` ones."""
    if not isinstance(body, dict):
        return "", ""
    old = body.get("value") if isinstance(body.get("value"), dict) else {}
    kind = str(body.get("error_type") or re.sub(r".*\.", "", str(body.get("type") or ""))).upper()
    messages = body.get("messages") or (old or {}).get("messages") or []
    details = (
        [m.get("default_message", "") for m in messages if isinstance(m, dict)]
        if isinstance(messages, list)
        else []
    )
    return kind, safe("; ".join(dict.fromkeys(str(s) for s in details if s)))


def _retry_after(response: httpx2.Response) -> float | None:
    text = response.headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"\d{1,5}", text) else None


def malformed(what: str, server: str, why: object) -> Malformed:
    """The error of an answer that can't be read."""
    return Malformed(
        what,
        server=server,
        why=safe(why),
        next="if it is a vCenter, please report it with the version of the server",
    )
