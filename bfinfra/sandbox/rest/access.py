"""Permissions on a namespace, one subject at a time. Source: com.vmware.vcenter.namespaces.Access."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.namespaces import PATH, change, may_configure, one
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check

ACCESS_PATH = PATH + "/{namespace}/access/{domain}/{subject}"
SPEC = {"role": ("OWNER", "EDIT", "VIEW"), "identity_provider?": str}


@route("GET", ACCESS_PATH)
def get(call: Call, namespace: str, domain: str, subject: str) -> Any:
    """The subject's role."""
    found = _find(call, namespace, _who(call, domain, subject))
    if found is None:
        raise missing("The access of the subject", f"{subject}@{domain}")
    return {"role": found["role"], "inherited": False}


@route("POST", ACCESS_PATH)
def create(call: Call, namespace: str, domain: str, subject: str) -> None:
    """Give the subject a role."""
    who = _who(call, domain, subject)
    if _find(call, namespace, who):
        raise Refused("ALREADY_EXISTS", f"{subject}@{domain} has access to '{namespace}' already.")
    _put(call, namespace, who, [{**who, **check(call.spec, SPEC)}])


@route("PUT", ACCESS_PATH)
def replace(call: Call, namespace: str, domain: str, subject: str) -> None:
    """Give the subject another role."""
    who = _who(call, domain, subject)
    if _find(call, namespace, who) is None:
        raise missing("The access of the subject", f"{subject}@{domain}")
    _put(call, namespace, who, [{**who, **check(call.spec, SPEC)}])


@route("DELETE", ACCESS_PATH)
def delete(call: Call, namespace: str, domain: str, subject: str) -> None:
    """Take the subject's role away."""
    who = _who(call, domain, subject)
    if _find(call, namespace, who) is None:
        raise missing("The access of the subject", f"{subject}@{domain}")
    _put(call, namespace, who, [])


def _who(call: Call, domain: str, subject: str) -> dict[str, str]:
    kind = call.query.get("type", [""])[-1]
    if kind not in ("USER", "GROUP"):
        raise Refused("INVALID_ARGUMENT", "type: USER or GROUP is expected")
    return {"subject_type": kind, "subject": subject, "domain": domain}


def _find(call: Call, namespace: str, who: dict[str, str]) -> dict[str, Any] | None:
    with call.state.lock:
        entries = one(call.state, namespace)["access_list"]
        return next((each for each in entries if who.items() <= each.items()), None)


def _put(call: Call, namespace: str, who: dict[str, str], entries: list[dict[str, Any]]) -> None:
    may_configure(call, namespace)
    change(
        call,
        namespace,
        lambda info: {
            "access_list": [
                *(each for each in info["access_list"] if not who.items() <= each.items()),
                *entries,
            ]
        },
    )
