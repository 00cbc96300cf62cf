"""Small words for objects of Kubernetes."""

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
