"""A Kubernetes object as JSON has it: where it is, and in which version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Place = tuple[str, str]
"""Namespace, "" where there is none, and name."""
Object = dict[str, Any]
VERSION = ("uid", "resourceVersion")


def place_of(obj: Mapping[str, Any]) -> Place:
    """Where an object is."""
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def version_of(obj: Object) -> Mapping[str, str]:
    """Its `uid` and `resourceVersion`."""
    return {name: str(obj["metadata"][name]) for name in VERSION}


def stands_at(obj: Object, place: Place) -> bool:
    """Whether an answer is the object at a place, with its version: a deletion is answered with anything."""
    metadata = obj.get("metadata")
    return (
        isinstance(metadata, dict)
        and {*VERSION} <= {*metadata}
        and (metadata.get("namespace"), metadata.get("name")) == place
    )
