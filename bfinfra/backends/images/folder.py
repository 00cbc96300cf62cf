"""A rendered build context: the files that bfinfra wrote, their digests, and the mark beside them. Other
files in the folder are never changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.files import make_folder, reported, write_whole
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

MARK = ".bfinfra.json"  # the file with the mark and the record
LARGEST = 1 << 20  # bytes of that file
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """The record beside the mark: the files written (name → SHA-256), the folders made, the image built and
    pushed.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    built: str = ""
    pushed: str = ""


@dataclass(frozen=True)
class Folder:
    """A build context on disk. `files`: name → SHA-256 of the existing files, among those asked for and those
    written.
    """

    path: Path
    mark: Mark | None
    record: Record
    files: Mapping[str, str]


def look(path: Path, names: frozenset[str]) -> Folder | None:
    """The folder at `path`; None if it has neither a mark nor any of `names`."""
    mark, record = _mark(path)
    files = {name: digest for name in sorted(names | set(record.files)) if (digest := _digest(path / name))}
    return Folder(path, mark, record, files) if mark or files else None


def write(path: Path, mark: Mark, wanted: Mapping[str, bytes | Path], modes: Mapping[str, int]) -> None:
    """Write `wanted` (name → content, or the file to copy), the mark first, and remove files that were
    written earlier and are no longer in it. Raises BfinfraError if the disk refuses, or for a link.
    """
    with reported(path):
        made = [str(folder) for folder in (path, *path.parents) if not folder.exists()]
        make_folder(path.parent)
        make_folder(path, 0o700)
        _, before = _mark(path)
        digests = {
            name: _digest(source) if isinstance(source, Path) else hashlib.sha256(source).hexdigest()
            for name, source in wanted.items()
        }
        record = replace(
            before, files={**before.files, **digests}, folders=tuple(dict.fromkeys((*before.folders, *made)))
        )
        _put_mark(path, mark, record)
        for name, source in wanted.items():
            _make_parent(path, name)
            _put(path / name, source, modes.get(name, 0o644))
        for name in set(before.files) - set(wanted):
            (path / name).unlink(missing_ok=True)
        _put_mark(path, mark, replace(record, files=digests))


def note(path: Path, mark: Mark, **changes: str) -> None:
    """Write the mark again, with a changed record (`built`, `pushed`)."""
    with reported(path):
        _put_mark(path, mark, replace(_mark(path)[1], **changes))  # type: ignore[arg-type]  # both are text


def remove(path: Path) -> None:
    """Remove what was written, and the folders made for it if they are empty; the mark last."""
    with reported(path):
        _, record = _mark(path)
        for name in record.files:
            (path / name).unlink(missing_ok=True)
        for inner in {str((path / name).parent) for name in record.files} - {str(path)}:
            _rmdir(Path(inner))
        (path / MARK).unlink(missing_ok=True)
        for folder in sorted(record.folders, key=len, reverse=True):
            _rmdir(Path(folder))


def _mark(path: Path) -> tuple[Mark | None, Record]:
    try:
        with (path / MARK).open("rb") as stream:
            data = json.loads(stream.read(LARGEST))
        record = Record(dict(data["files"]), tuple(data["folders"]), str(data["built"]), str(data["pushed"]))
    except (FileNotFoundError, NotADirectoryError):
        return None, Record()
    except (OSError, ValueError, KeyError, TypeError):
        return None, Record()
    safe = {
        name: digest
        for name, digest in record.files.items()
        if not Path(name).is_absolute() and ".." not in Path(name).parts
    }
    return Mark.decode(str(data.get("mark"))), replace(record, files=safe)


def _put_mark(path: Path, mark: Mark, record: Record) -> None:
    data: dict[str, Any] = {"mark": mark.encode(), **asdict(record)}
    _put(path / MARK, (json.dumps(data, indent=1) + "\n").encode(), 0o600)


def _digest(path: Path) -> str:
    """SHA-256 of a regular file; "" if there is none, `link` for anything else."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return "link"
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _make_parent(path: Path, name: str) -> None:
    parent = (path / name).parent
    if parent.is_symlink():
        raise BfinfraError(
            Problem(f"{parent} is a link", next="remove it: bfinfra writes only into its own folder")
        )
    parent.mkdir(mode=0o700, exist_ok=True)


def _put(target: Path, source: bytes | Path, mode: int) -> None:
    """Write a file; a link is replaced, not followed."""
    if target.is_symlink():
        target.unlink()
    write_whole(target, source if isinstance(source, bytes) else _blocks(source), mode)


def _blocks(source: Path) -> Iterator[bytes]:
    with source.open("rb") as stream:
        while block := stream.read(BLOCK):
            yield block


def _rmdir(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not empty, or removed already
        folder.rmdir()
