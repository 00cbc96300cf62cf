"""The files that a saved plan was made from, by path below the site's folder, with their digests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from bfinfra.model.errors import Problem
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile, LocalOutput
from bfinfra.spec.leads import walk

ABSENT = ""
"""The digest of a missing file."""


def folder_of(site: Site) -> Path:
    """The folder where a site's relative paths start, as it was named."""
    first = site.paths[0]
    return first if first.is_dir() else first.parent


def relative(path: Path, base: Path) -> str:
    """The path relative to a folder."""
    return os.path.relpath(path.absolute(), base)


def contents(site: Site, base: Path) -> dict[str, str]:
    """The digest of each file that the site names, and of each in a folder that it names. Secrets are left
    out: a short one could be guessed from its digest.
    """
    found: dict[str, str] = {}
    for _, value in walk(site):
        if isinstance(value, LocalFile) and not isinstance(value, LocalOutput):
            name = _name(value, site, base)
            if name not in found:
                found.update(_below(name, value.path))
    return found


def _name(file: LocalFile, site: Site, base: Path) -> str:
    """The path below the site's folder; the site's text if it is absolute or starts at the home."""
    if file.text.startswith(("/", "~")):
        return file.text
    stood_in = site.stand_ins is not None and file.path.is_relative_to(site.stand_ins)
    return relative(file.path, site.stand_ins if stood_in and site.stand_ins else base)


def _below(name: str, path: Path) -> dict[str, str]:
    if path.is_dir():
        inner = sorted(each for each in path.rglob("*") if each.is_file())
        return {f"{name}/{each.relative_to(path)}": digest(each) for each in inner}
    return {name: digest(path)}


def digest(file: Path) -> str:
    """SHA-256 of a regular file; ABSENT if it is none or can't be read."""
    try:
        if not file.is_file():
            return ABSENT
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError):
        return ABSENT


def changed(file: Path, name: str) -> Problem:
    """The problem of a file that has changed since the plan was made."""
    why = "" if file.is_file() or name.startswith(("/", "~")) else f"there is no {file}"
    return Problem(f"{name} has changed since the plan was made", str(file), why, "plan again")
