"""A file of manifests, as kubectl reads it, bounded; only what a workload is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bfinfra.model.names import DNS_NAME

LARGEST = 1 << 20  # bytes
MOST = 100_000  # values, aliases counted each time: a small file may blow up
KINDS = {("v1", "PersistentVolumeClaim"): 0, ("v1", "Pod"): 1, ("batch/v1", "Job"): 1}
"""What a workload is made of, and in which order it is made."""

Manifest = dict[str, Any]


def read(path: Path) -> tuple[Manifest, ...]:
    """The manifests, claims first. ValueError says what is wrong, where, and what to do."""
    try:
        text = path.read_bytes()[: LARGEST + 1]
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    if len(text) > LARGEST:
        raise ValueError(f"{path} is larger than {LARGEST} bytes")
    try:
        documents = [d for d in yaml.safe_load_all(text) if d is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"{path} is not YAML{f': line {mark.line + 1}' if mark else ''}: {getattr(error, 'problem', None) or error}") from None
    if not _small(documents):
        raise ValueError(f"{path} has more than {MOST} values once its aliases are followed")
    found = [checked for document in documents for item in _items(document) if (checked := _checked(item, path))]
    if not found:
        raise ValueError(f"{path} holds no manifest")
    names = [identity(manifest) for manifest in found]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{path} holds {double} twice")
    return tuple(sorted(found, key=lambda m: KINDS[m["apiVersion"], m["kind"]]))


def identity(manifest: Manifest) -> str:
    """`Job/train`."""
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def pod_spec(manifest: Manifest) -> Manifest | None:
    """The pod's spec in a Pod or Job, None in a claim."""
    if manifest["kind"] == "Pod":
        spec = manifest.get("spec")
    elif manifest["kind"] == "Job":
        spec = ((manifest.get("spec") or {}).get("template") or {}).get("spec")
    else:
        return None
    return spec if isinstance(spec, dict) else None


def _items(document: Any) -> Iterator[Any]:
    if isinstance(document, dict) and document.get("kind") == "List":
        yield from document.get("items") or ()
    else:
        yield document


def _checked(manifest: Any, path: Path) -> Manifest:
    if not isinstance(manifest, dict):
        raise ValueError(f"{path}: a document is no manifest")
    kind = manifest.get("apiVersion"), manifest.get("kind")
    if kind not in KINDS:
        known = ", ".join(f"{api} {name}" for api, name in KINDS)
        raise ValueError(f"{path}: a workload can't hold {kind[0]} {kind[1]}; it is made of {known}")
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not re.fullmatch(DNS_NAME, name):
        raise ValueError(f"{path}: a {kind[1]} has no metadata.name that can be one; generated names can't be found again")
    if kind[1] != "PersistentVolumeClaim" and not (pod_spec(manifest) or {}).get("containers"):
        raise ValueError(f"{path}: {kind[1]}/{name} has no containers")
    return manifest


def _small(value: Any) -> bool:
    left, stack = MOST, [value]
    while stack and left > 0:
        left -= 1
        item = stack.pop()
        stack += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return not stack
