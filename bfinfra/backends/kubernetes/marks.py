"""The mark on Kubernetes objects: a label to select by, and an annotation with the owner and what was
applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.model.mark import Mark

MANAGER = "bfinfra"
SITE = "bfinfra.io/site"
MARK = "bfinfra.io/mark"

Manifest = Mapping[str, Any]
Marked = dict[str, Any]


class Marking(Marked):
    """What changes of an existing object, by its uid: its mark, and what stands beside it here."""


def marked(manifest: Manifest, mark: Mark) -> Marked:
    """A copy of the manifest with the mark."""
    metadata = dict(manifest.get("metadata") or {})
    metadata["labels"] = {**(metadata.get("labels") or {}), SITE: mark.site}
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        MARK: mark.on(_place(metadata)).encode(),
    }
    return {**manifest, "metadata": metadata}


def mark_only(manifest: Manifest, mark: Mark, uid: str) -> Marking:
    """What `apply` marks an existing object with, and changes nothing else of it. `manifest`: the object, or
    as it shall be; `uid`: that of the object that was read, as no other one may get the mark.
    """
    place = {
        name: manifest["metadata"][name] for name in ("name", "namespace") if name in manifest["metadata"]
    }
    thing = {name: manifest[name] for name in ("apiVersion", "kind")}
    return Marking(marked({**thing, "metadata": {**place, "uid": uid}}, mark))


def mark_of(obj: Manifest) -> Mark | None:
    """The mark on an object, or None. A mark copied from another object doesn't count; that of an object
    without its label, which lists select by, is unfinished work.
    """
    found = Mark.decode(notes(obj).get(MARK))
    own = found.where(_place(obj.get("metadata") or {})) if found else None
    return own.pending if own and site_of(obj) != own.site else own


def _place(metadata: Manifest) -> str:
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"


def notes(obj: Manifest) -> Mapping[str, str]:
    """An object's annotations; {} if it has none."""
    return (obj.get("metadata") or {}).get("annotations") or {}


def selector(site: str) -> str:
    """The label selector for everything that a site made."""
    return f"{SITE}={site}"


def site_of(obj: Manifest) -> str | None:
    """The site in an object's label."""
    found = ((obj.get("metadata") or {}).get("labels") or {}).get(SITE)
    return None if found is None else str(found)


def ours(obj: Manifest, site: str) -> bool:
    """Return whether the site made the object, or one of the site's objects did. A mark copied from another
    object doesn't count.
    """
    if MARK not in notes(obj):
        return site_of(obj) == site
    mark = mark_of(obj)
    return mark is not None and mark.site == site
