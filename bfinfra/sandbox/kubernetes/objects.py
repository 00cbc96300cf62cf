"""Kubernetes objects as plain JSON, and the few things that every part does with them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # what generateName appends from: no vowels, nothing that looks alike


def name_of(thing: Mapping[str, Any]) -> str:
    """metadata.name; empty where there is none."""
    return str(thing.get("metadata", {}).get("name") or "")


def namespace_of(thing: Mapping[str, Any]) -> str:
    """metadata.namespace; empty for objects of the whole cluster."""
    return str(thing.get("metadata", {}).get("namespace") or "")


def uid_of(thing: Mapping[str, Any]) -> str:
    """metadata.uid."""
    return str(thing["metadata"].get("uid") or "")


def dig(thing: Any, *path: str | int, default: Any = None) -> Any:
    """The value under a path of keys and positions, or the default."""
    for step in path:
        try:
            thing = thing[step]
        except (KeyError, IndexError, TypeError):
            return default
    return thing


def is_ready(pod: Object) -> bool:
    """Return whether a pod's containers are all ready."""
    return dig(pod, "status", "phase") == "Running" and all(
        each.get("ready") for each in dig(pod, "status", "containerStatuses", default=[])
    )


def runs(pod: Object) -> bool:
    """Return whether a pod's containers are all ready, and it is not being deleted."""
    return is_ready(pod) and not pod["metadata"].get("deletionTimestamp")


def copied(thing: object) -> Any:
    """A deep copy of JSON: what the store holds is never changed in place."""
    if isinstance(thing, dict):
        return {name: copied(each) for name, each in thing.items()}
    return [copied(each) for each in thing] if isinstance(thing, list) else thing


def stamp(seconds: float) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def random_suffix(length: int = 5) -> str:
    """Return the suffix that generateName appends."""
    return "".join(secrets.choice(SUFFIX) for _ in range(length))


def owned_by(owner: Mapping[str, object]) -> dict[str, Any]:
    """The reference that makes an object a controller's own child."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition(
    kind: str, status: bool | str, when: str, reason: str = "", message: str = ""
) -> dict[str, str]:
    """One condition of a status."""
    text = {True: "True", False: "False"}.get(status, str(status)) if isinstance(status, bool) else status
    extra = {key: value for key, value in {"reason": reason, "message": message}.items() if value}
    return {"type": kind, "status": text, "lastTransitionTime": when, **extra}
