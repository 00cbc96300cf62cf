"""A Kubernetes object as JSON has it: its place and its version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Place = tuple[str, str]
"""Namespace, "" if there is none, and name."""
Object = dict[str, Any]
VERSION = ("uid", "resourceVersion")


def place_of(obj: Mapping[str, Any]) -> Place:
    """The place of an object."""
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def version_of(obj: Object) -> Mapping[str, str]:
    """Its `uid` and `resourceVersion`."""
    return {name: str(obj["metadata"][name]) for name in VERSION}


def is_at(obj: Object, place: Place) -> bool:
    """Return whether an answer is the object at a place, with its version. A deletion may be answered with
    anything.
    """
    metadata = obj.get("metadata")
    return (
        isinstance(metadata, dict)
        and {*VERSION} <= {*metadata}
        and (metadata.get("namespace"), metadata.get("name")) == place
    )
