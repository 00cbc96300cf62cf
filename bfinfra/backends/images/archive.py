"""Reads archives of images that `docker save` writes: which images are in one."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

LARGEST = 8 << 20  # bytes of a manifest or configuration


def full_name(name: str) -> str:
    """An image's name with registry, path and tag: `docker.io/library/busybox:latest` for busybox."""
    first, slash, _ = name.partition("/")
    registry = slash and ("." in first or ":" in first or first == "localhost")
    whole = name if registry else f"docker.io/{name if slash else f'library/{name}'}"
    return whole if ":" in whole.rpartition("/")[2] else f"{whole}:latest"


def contents(path: Path) -> dict[str, str]:
    """Full name → id (SHA-256 of its configuration) of each image. Raises ValueError for a file that is no
    such archive; OSError.
    """
    try:
        with tarfile.open(path, "r:") as tar:
            manifest = json.loads(_part(tar, "manifest.json"))
            found: dict[str, str] = {}
            for each in manifest:
                config = hashlib.sha256(_part(tar, each["Config"])).hexdigest()
                found |= dict.fromkeys(map(full_name, each.get("RepoTags") or ()), f"sha256:{config}")
            return found
    except tarfile.TarError:
        raise ValueError("it is not a tar archive; unpack a compressed one first") from None
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
        raise ValueError("it has no manifest as docker save writes it") from None


def _part(tar: tarfile.TarFile, name: str) -> bytes:
    stream = tar.extractfile(name)
    if stream is None:
        raise KeyError(name)
    return stream.read(LARGEST)
