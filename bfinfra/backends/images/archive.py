"""Reads archives of images that `docker save` writes: which images are in one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from bfinfra.backends.archives.bounds import BadArchive, Bounds, Budget, NoArchive
from bfinfra.backends.archives.tar import Member, Tar
from bfinfra.model.sources import plain_file

LARGEST = 4 << 20  # bytes of a manifest or configuration
BOUNDS = Bounds(whole=1 << 62, member=1 << 62, members=20_000, links=True)
"""Layers may be of any size, as they are not read; older tools link those that images share."""


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
    with plain_file(path) as stream:
        tar = Tar(stream, Budget(BOUNDS), length=path.stat().st_size)
        try:
            return _Images(tar).found()
        except NoArchive:
            raise ValueError("it is not a tar archive; unpack a compressed one first") from None
        except BadArchive as error:
            raise ValueError(f"{path.name}: {error}") from None
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
            raise ValueError("it has no manifest as docker save writes it") from None


class _Images:
    def __init__(self, tar: Tar) -> None:
        self._tar = tar
        self._members: dict[str, Member] = {each.name: each for each in tar}
        self._ids: dict[str, str] = {}

    def found(self) -> dict[str, str]:
        """Full name → id."""
        found: dict[str, str] = {}
        for each in json.loads(self._read("manifest.json")):
            names = each.get("RepoTags") or ()
            found |= dict.fromkeys(map(full_name, names), self._id(each["Config"]))
        return found

    def _id(self, config: str) -> str:
        """Images may share a configuration."""
        if config not in self._ids:
            self._ids[config] = f"sha256:{hashlib.sha256(self._read(config)).hexdigest()}"
        return self._ids[config]

    def _read(self, name: str) -> bytes:
        return self._tar.content(self._members[name], LARGEST)
