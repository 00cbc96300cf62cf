"""Reads parts of Kubernetes objects, and leaves out what is empty or not asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]
Object = dict[str, Any]


def at(value: Fields | None, *path: str) -> Fields:
    """The mapping under a path; empty where there is none."""
    found = value or {}
    for name in path:
        inner = found.get(name)
        found = inner if isinstance(inner, Mapping) else {}
    return found


def written(fields: Fields) -> Object:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value not in (None, {}, [], ())}


def within(now: object, shape: object) -> Any:
    """Return the part of the live object that `shape` has fields for; the rest was filled in by the server or
    others.
    """
    if isinstance(now, Mapping) and isinstance(shape, Mapping):
        return {name: within(value, shape[name]) for name, value in now.items() if name in shape}
    if isinstance(now, list) and isinstance(shape, list) and len(now) == len(shape):
        return [within(value, each) for value, each in zip(now, shape, strict=True)]
    return now
