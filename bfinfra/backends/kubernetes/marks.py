"""The mark on Kubernetes objects: a label to select by, an annotation that says whose it is and what was applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.model.mark import Mark

MANAGER = "bfinfra"
SITE = "bfinfra.io/site"
MARK = "bfinfra.io/mark"

Manifest = Mapping[str, Any]


def marked(manifest: Manifest, mark: Mark) -> dict[str, Any]:
    """A copy of the manifest that carries the mark."""
    metadata = dict(manifest.get("metadata") or {})
    metadata["labels"] = {**(metadata.get("labels") or {}), SITE: mark.site}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), MARK: mark.encode()}
    return {**manifest, "metadata": metadata}


def mark_of(obj: Manifest) -> Mark | None:
    """The mark on an object, or None."""
    return Mark.decode(notes(obj).get(MARK))


def notes(obj: Manifest) -> Mapping[str, str]:
    """An object's annotations; empty where it has none."""
    return (obj.get("metadata") or {}).get("annotations") or {}


def selector(site: str) -> str:
    """The label selector for everything that a site made."""
    return f"{SITE}={site}"


def ours(obj: Manifest, site: str) -> bool:
    """Whether the site made the object, or an object that the site made did."""
    return ((obj.get("metadata") or {}).get("labels") or {}).get(SITE) == site
