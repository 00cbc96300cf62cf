"""Reads a manifest file as kubectl does, with limits; only the types that a workload may have."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bfinfra.model import foreign
from bfinfra.model.names import DNS_NAME

KINDS = {("v1", "PersistentVolumeClaim"): 0, ("v1", "Pod"): 1, ("batch/v1", "Job"): 1}
"""The types of a workload's objects, in the order of their creation."""

Manifest = dict[str, Any]


def read(path: Path) -> tuple[Manifest, ...]:
    """The manifests, claims first. They are cached as long as the file doesn't change: don't modify them.
    Raises ValueError with what is wrong, where, and what to do.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    return _read(path, (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino))


@functools.lru_cache(maxsize=1 << 14)
def _read(path: Path, _: tuple[int, ...]) -> tuple[Manifest, ...]:
    try:
        with path.open("rb") as stream:
            text = stream.read(foreign.LARGEST + 1)
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    try:
        documents = [d for d in foreign.documents(text) if d is not None]
    except foreign.Unfit as error:
        raise ValueError(f"{path} can't be used: {error}") from None
    found = [
        checked for document in documents for item in _items(document) if (checked := _checked(item, path))
    ]
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
    """The pod's spec in a Pod or Job; None for a claim."""
    if manifest["kind"] == "Pod":
        spec = manifest.get("spec")
    elif manifest["kind"] == "Job":
        spec = ((manifest.get("spec") or {}).get("template") or {}).get("spec")
    else:
        return None
    return spec if isinstance(spec, dict) else None


def pods(manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """The specs of all pods in them."""
    return (pod for manifest in manifests if (pod := pod_spec(manifest)))


def leaves(value: object, above: str = "", field: str = "") -> Iterator[tuple[str, str, object]]:
    """Every scalar in a pod's spec, with its field and the field above: `limits`, `nvidia.com/gpu`, 1."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, field, name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, above, field)
    else:
        yield above, field, value


def _items(document: object) -> Iterator[Any]:
    if isinstance(document, dict) and document.get("kind") == "List":
        items = document.get("items")
        yield from items if isinstance(items, list) else ()
    else:
        yield document


def _checked(manifest: object, path: Path) -> Manifest:
    if not isinstance(manifest, dict):
        raise ValueError(f"{path}: a document is no manifest")
    kind = manifest.get("apiVersion"), manifest.get("kind")
    if not all(isinstance(each, str) for each in kind) or kind not in KINDS:
        known = ", ".join(f"{api} {name}" for api, name in KINDS)
        raise ValueError(f"{path}: a workload can't contain {kind[0]} {kind[1]}; it is made of {known}")
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not re.fullmatch(DNS_NAME, name):
        raise ValueError(
            f"{path}: a {kind[1]} has no metadata.name that can be one; generated names can't be found again"
        )
    if kind[1] != "PersistentVolumeClaim" and not (pod_spec(manifest) or {}).get("containers"):
        raise ValueError(f"{path}: {kind[1]}/{name} has no containers")
    return manifest
