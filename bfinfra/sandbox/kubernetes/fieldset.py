"""Sets of field paths, which managers own. A path is a tuple of the elements that managedFields write:
f:name, k:{…}, v:…
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from bfinfra.sandbox.kubernetes.types import Type

Path = tuple[str, ...]
Paths = frozenset[Path]
MISSING: Any = object()
UNTRACKED = {("f:apiVersion",), ("f:kind",), ("f:metadata",)} | {
    ("f:metadata", f"f:{name}")
    for name in (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
}


def element(declared: Type, item: object) -> str:
    """The path element of an item of a list that is a map or a set."""
    if not declared.keys:
        return f"v:{json.dumps(item, separators=(',', ':'))}"
    keys = {
        key: item.get(key, _default(declared, key)) if isinstance(item, dict) else None
        for key in declared.keys
    }
    return f"k:{json.dumps({key: keys[key] for key in sorted(keys)}, separators=(',', ':'))}"


def _default(declared: Type, key: str) -> Any:
    below = declared.item.field(key)
    return below.raw.get("default") if below else None


def owned(declared: Type, value: object, path: Path = ()) -> Iterator[Path]:
    """The paths that a manager owns by applying this value."""
    if isinstance(value, dict) and not declared.atomic and declared.form != "scalar":
        for name, child in value.items():
            below, inner = declared.field(name), (*path, f"f:{name}")
            yield from owned(below, child, inner) if below else ()
            if child in (None, {}) or not declared.declared(name):
                yield inner
    elif isinstance(value, list) and not declared.atomic:
        for child in value:
            inner = (*path, element(declared, child))
            yield from owned(declared.item, child, inner)
            yield inner
    elif path:
        yield path


def tracked(paths: Iterable[Path]) -> Paths:
    """Without what no manager owns: names, uids, versions, times."""
    return frozenset(path for path in paths if path not in UNTRACKED)


def differing(declared: Type, before: object, after: object, path: Path = ()) -> tuple[set[Path], set[Path]]:
    """(changed or added, removed) between two values; containers that are new count as added themselves."""
    if before is MISSING or after is MISSING:
        everything = set(owned(declared, after if before is MISSING else before, path)) | _containers(
            declared, after if before is MISSING else before, path
        )
        return (everything, set()) if before is MISSING else (set(), everything)
    if before == after:
        return set(), set()
    inner = children(declared, before), children(declared, after)
    if inner[0] is None or inner[1] is None:
        return {path}, set()
    changed: set[Path] = set()
    removed: set[Path] = set()
    for name in {**inner[0], **inner[1]}:
        below = below_of(declared, name)
        more, less = (
            differing(below, inner[0].get(name, MISSING), inner[1].get(name, MISSING), (*path, name))
            if below
            else (set(), set())
        )
        changed |= more
        removed |= less
    return changed, removed


def _containers(declared: Type, value: object, path: Path) -> set[Path]:
    inner = children(declared, value)
    found = {path} if path else set()
    for name, child in (inner or {}).items():
        below = below_of(declared, name)
        found |= _containers(below, child, (*path, name)) if below else set()
    return found


def children(declared: Type, value: object) -> dict[str, Any] | None:
    """The parts of a value that may have owners of their own, by path element; None for a leaf."""
    if declared.atomic or declared.form == "scalar":
        return None
    if isinstance(value, dict):
        return {f"f:{name}": child for name, child in value.items()}
    if isinstance(value, list):
        return {element(declared, child): child for child in value}
    return None


def below_of(declared: Type, name: str) -> Type | None:
    """The type under a path element."""
    return declared.field(name[2:]) if name.startswith("f:") else declared.item


def to_fields(paths: Iterable[Path]) -> dict[str, Any]:
    """fieldsV1 of a set."""
    root: dict[str, Any] = {}
    members = set(paths)
    for path in sorted(members):
        node = root
        for step in path:
            node = node.setdefault(step, {})
    for path in members:
        node = root
        for step in path:
            node = node[step]
        if node:
            node["."] = {}
    return _sorted(root)


def _sorted(node: dict[str, Any]) -> dict[str, Any]:
    return {key: _sorted(node[key]) for key in sorted(node)}


def from_fields(fields: dict[str, Any], path: Path = ()) -> Iterator[Path]:
    """The set that fieldsV1 write."""
    for name, below in fields.items():
        if name == ".":
            yield path
        elif not below:
            yield (*path, name)
        else:
            yield from from_fields(below, (*path, name))


def readable(path: Path) -> str:
    """`.spec.containers[name="a"].image`."""
    return "".join(_readable(step) for step in path)


def _readable(step: str) -> str:
    if step.startswith("f:"):
        return f".{step[2:]}"
    if step.startswith("v:"):
        return f"[={step[2:]}]"
    return f"[{','.join(f'{key}={json.dumps(value)}' for key, value in json.loads(step[2:]).items())}]"
