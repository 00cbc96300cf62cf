"""The digest of a folder that an image is built from: contents, names and executable bits. `.git` is left
out.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bfinfra.model.errors import Problem

MOST, LARGEST = 20_000, 1 << 31  # files; bytes of all
LEFT_OUT = ".git"


def digest(folder: Path, dockerfile: str) -> str | Problem:
    """SHA-256 over all files, sorted by name; or the problem. Links count by their target."""
    if not folder.is_dir():
        return Problem(f"{folder} is not a folder", next="clone the sources there, or correct the path")
    if not (folder / dockerfile).is_file():
        return Problem(
            f"{folder} has no {dockerfile}", next="give its path in dockerfile, relative to source"
        )
    whole, size = hashlib.sha256(), 0
    try:
        for count, path in enumerate(_below(folder), 1):
            info = path.lstat()
            size += info.st_size
            if count > MOST or size > LARGEST:
                return Problem(
                    f"{folder} contains more than {MOST:,} files or {LARGEST >> 30} GiB",
                    next="name the folder that the Dockerfile needs, or leave out what it doesn't",
                )
            whole.update(f"{path.relative_to(folder)}\0{_of(path, info)}\0".encode(errors="surrogateescape"))
    except OSError as error:
        return Problem(f"{error.filename or folder} can't be read", why=error.strerror or "")
    return whole.hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    """All files and links below, without folders."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda each: each.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name != LEFT_OUT:
                yield from _below(Path(entry.path))
        else:
            yield Path(entry.path)


def _of(path: Path, info: os.stat_result) -> str:
    if stat.S_ISLNK(info.st_mode):
        return f"link {path.readlink()}"
    if not stat.S_ISREG(info.st_mode):
        return "special"
    with path.open("rb") as stream:
        return (
            f"{'run' if info.st_mode & stat.S_IXUSR else 'file'} "
            f"{hashlib.file_digest(stream, 'sha256').hexdigest()}"
        )
