"""Paths → documents: the files of a site, each read once, with its digest."""

from __future__ import annotations

import errno
import functools
import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from bfinfra.model.errors import Place, Problem
from bfinfra.model.records import dataclass
from bfinfra.model.sources import plain_file
from bfinfra.model.suggest import nearest
from bfinfra.model.yaml import LARGEST, Node, Unreadable, compose

ENDINGS = frozenset({".yaml", ".yml"})
STDIN = Path("-")
"""What a user types for standard input."""
PIPED = Path("<stdin>")
"""Its name in problems; relative paths in it start from the current folder."""


@dataclass(frozen=True)
class SiteDocument:
    """One file of a site. `root` is None if it is empty or can't be read."""

    path: Path
    digest: str
    root: Node | None

    @functools.cached_property
    def folder(self) -> Path:
        """The folder at which its relative paths begin."""
        return self.path.absolute().parent


def read(paths: Sequence[Path], problems: list[Problem]) -> list[SiteDocument]:
    """The documents at `paths`, each once; a folder means the YAML files directly in it. Problems are added
    to `problems`.
    """
    documents = [_document(file, problems) for file in listed(paths, problems)]
    return [d for d in documents if d is not None]


def listed(paths: Sequence[Path], problems: list[Problem]) -> Iterator[Path]:
    """The files at `paths`, each once."""
    visited = set()
    for path in paths:
        for file in _files(path, problems):
            if (real := file.resolve()) not in visited:
                visited.add(real)
                yield file


def _files(path: Path, problems: list[Problem]) -> Iterator[Path]:
    if path == STDIN:
        yield PIPED
        return
    if not path.is_dir():
        yield path
        return
    found = sorted(
        f for f in path.iterdir() if f.suffix in ENDINGS and not f.name.startswith(".") and f.is_file()
    )
    if not found:
        problems.append(
            Problem(
                "the folder holds no site file",
                str(path),
                "no file in it ends in .yaml or .yml",
                "name the site's file, or another folder",
            )
        )
    yield from found


def _document(path: Path, problems: list[Problem]) -> SiteDocument | None:
    data = _bytes(path, problems)
    if data is None:
        return None
    root = None
    text = _decoded(path, data, problems)
    if text is not None:
        try:
            root, found = compose(path, text)
            problems += found
        except Unreadable as error:
            problems.append(error.problem)
    return SiteDocument(path, hashlib.sha256(data).hexdigest(), root)


def text_of(path: Path, problems: list[Problem]) -> str | None:
    """A file's text; None where it has none, and why in `problems`."""
    data = _bytes(path, problems)
    return None if data is None else _decoded(path, data, problems)


def _bytes(path: Path, problems: list[Problem]) -> bytes | None:
    try:
        with nullcontext(sys.stdin.buffer) if path == PIPED else plain_file(path) as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        problems.append(Problem("the file can't be read", str(path), why, _instead(path, error)))
        return None
    if len(data) <= LARGEST:
        return data
    why = f"more than {LARGEST >> 20} MiB"
    problems.append(
        Problem("the file is too large for a site", str(path), why, "split the site into several files")
    )
    return None


def _decoded(path: Path, data: bytes, problems: list[Problem]) -> str | None:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.append(
            Problem(
                "the file is not UTF-8 text",
                Place(path, line, 1),
                f"byte {error.start} is not part of a character",
                "save it as UTF-8",
            )
        )
    return None


def _instead(path: Path, error: OSError) -> str:
    """Return what to do about a file that can't be read."""
    if error.errno == errno.EINVAL:
        return "name a regular file: a site is read more than once"
    if not isinstance(error, FileNotFoundError):
        return "give this user permission to read it, or name another file"
    with suppress(OSError):
        if near := nearest(path.name, [p.name for p in path.parent.iterdir() if p.suffix in ENDINGS]):
            return near
    return "name the site's file, or the folder with its files"
