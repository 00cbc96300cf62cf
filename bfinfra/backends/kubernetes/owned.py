"""Reads `metadata.managedFields`: who owns which field."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bfinfra.backends.kubernetes.marks import MANAGER
from bfinfra.backends.words import safe

BEFORE = "before-first-apply"
"""The server's name for the maker of an object without recorded writers: any that Kubernetes 1.16 or 1.17
created by POST.
"""


def owned(obj: Mapping[str, object], manager: str = MANAGER) -> dict[str, Any]:
    """The fields of `obj` that `manager` owns, with their values. Lists have only the owned items, in the
    object's order.
    """
    found: dict[str, Any] = {}
    for entry in _entries(obj, manager):
        part = _pick(obj, entry.get("fieldsV1") or {})
        found = _merge(found, part) if isinstance(part, dict) else found
    return found


def owned_fields(obj: Mapping[str, object], manager: str = MANAGER) -> dict[str, Any]:
    """The fields that `manager` owns, as fieldsV1 names them; {} if no owner is recorded."""
    fields: dict[str, Any] = {}
    for entry in _entries(obj, manager):
        fields = _merge(fields, entry.get("fieldsV1") or {})
    return fields


def others_fields(
    obj: Mapping[str, Any], but: str = MANAGER
) -> list[tuple[str, float | None, Mapping[str, Any]]]:
    """Return the fields of other managers: manager, when it wrote last (seconds since the epoch), and the
    fields. Statuses are left out.
    """
    entries = (obj.get("metadata") or {}).get("managedFields") or ()
    return [
        (safe(str(entry.get("manager") or ""), 80), _seconds(entry.get("time")), entry.get("fieldsV1") or {})
        for entry in entries
        if entry.get("manager") != but and not entry.get("subresource")
    ]


def handed_over(obj: Mapping[str, Any], manager: str = MANAGER) -> list[dict[str, Any]] | None:
    """The `managedFields` with which an apply can change what `manager` created; None if it can already.

    For an object created by POST, its maker is an updater: an apply with the same name conflicts with it and
    never removes its fields.
    """
    own = _entries(obj, manager)
    if not any(entry.get("operation") == "Update" for entry in own):
        return None
    others = [entry for entry in obj["metadata"]["managedFields"] if entry not in own]
    return [*others, {**own[0], "operation": "Apply", "fieldsV1": owned_fields(obj, manager)}]


def claimed(obj: Mapping[str, Any], manager: str = MANAGER) -> list[dict[str, Any]] | None:
    """The `managedFields` with which the applier also owns what existed before its first apply; None if it
    does already.
    """
    first = [entry for entry in _entries(obj, BEFORE) if entry.get("operation") == "Update"]
    own = [entry for entry in _entries(obj, manager) if entry.get("operation") == "Apply"]
    fields: dict[str, Any] = {}
    for entry in (*own, *first):
        fields = _merge(fields, entry.get("fieldsV1") or {})
    if not own or not first:
        return None
    return [
        *(entry for entry in obj["metadata"]["managedFields"] if entry not in (*own, *first)),
        {**own[0], "fieldsV1": fields},
    ]


def known(manifest: object, live: object) -> Any:
    """The part of a manifest that the server stores. An old server silently drops unknown fields, and refuses
    to apply them.
    """
    if isinstance(manifest, Mapping) and isinstance(live, Mapping):
        return {name: known(value, live[name]) for name, value in manifest.items() if name in live}
    if isinstance(manifest, list) and isinstance(live, list) and len(manifest) == len(live):
        return [known(value, there) for value, there in zip(manifest, live, strict=True)]
    return manifest


def writer(
    obj: Mapping[str, Any], path: Sequence[str], but: str = MANAGER
) -> tuple[str, float | None] | None:
    """The other manager who last wrote a field, or anything below it, and when (seconds since the epoch).
    None if no other manager owns it. `path`: names, or `k:{…}` for an entry of a list.
    """
    entries = (obj.get("metadata") or {}).get("managedFields") or ()
    theirs = [
        entry
        for entry in entries
        if entry.get("manager") != but
        and not entry.get("subresource")
        and _names(entry.get("fieldsV1") or {}, path)
    ]
    found = [(safe(str(entry.get("manager") or ""), 80), _seconds(entry.get("time"))) for entry in theirs]
    return max(found, key=lambda each: each[1] or 0, default=None)


def _names(fields: object, path: Sequence[str]) -> bool:
    for part in path:
        name = part if part.startswith("k:") else f"f:{part}"
        fields = fields.get(name) if isinstance(fields, Mapping) else None
    return fields is not None


def _seconds(time: object) -> float | None:
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except ValueError:
        return None


def _entries(obj: Mapping[str, Any], manager: str) -> list[Mapping[str, Any]]:
    entries = (obj.get("metadata") or {}).get("managedFields") or ()
    return [e for e in entries if e.get("manager") == manager and not e.get("subresource")]


def _pick(value: Any, fields: Mapping[str, Any]) -> Any:
    """The part of `value` that a fieldsV1 structure names."""
    inner = {name: sub for name, sub in fields.items() if name != "."}
    if not inner:
        return copy.deepcopy(value)
    if isinstance(value, Mapping):
        return {
            name[2:]: _pick(value[name[2:]], sub)
            for name, sub in inner.items()
            if name.startswith("f:") and name[2:] in value
        }
    if isinstance(value, list):
        return [
            _pick(item, sub)
            for index, item in enumerate(value)
            for name, sub in inner.items()
            if _selects(name, item, index)
        ]
    return value


def _selects(name: str, item: object, index: int) -> bool:
    kind, _, text = name.partition(":")
    if kind == "i":
        return text == str(index)
    if kind == "v":
        return bool(json.loads(text) == item)
    keys = json.loads(text) if kind == "k" else None
    return (
        isinstance(keys, dict)
        and isinstance(item, Mapping)
        and all(item.get(k) == v for k, v in keys.items())
    )


def _merge(first: Mapping[str, object], second: Mapping[str, object]) -> dict[str, Any]:
    merged = dict(first)
    for name, value in second.items():
        before = merged.get(name)
        merged[name] = (
            _merge(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
        )
    return merged
