"""Paths → documents: which files belong to a site, read once, with their digests."""

from __future__ import annotations

import errno
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
"""Its name in problems; files that it names are sought in the current folder."""


@dataclass(frozen=True, slots=True)
class Document:
    """One file of a site. `root` is None where it is empty or can't be read."""

    path: Path
    digest: str
    root: Node | None


def read(paths: Sequence[Path], problems: list[Problem]) -> list[Document]:
    """The documents at `paths`, folders by the YAML files right in them, each file once; what is wrong goes
    into `problems`.
    """
    documents, seen = [], set()
    for path in paths:
        for file in _files(path, problems):
            if (real := file.resolve()) not in seen:
                seen.add(real)
                documents.append(_document(file, problems))
    return [d for d in documents if d is not None]


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
            Problem("the folder holds no site file", str(path), "none in it ends in .yaml or .yml")
        )
    yield from found


def _document(path: Path, problems: list[Problem]) -> Document | None:
    try:
        with nullcontext(sys.stdin.buffer) if path == PIPED else plain_file(path) as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        problems.append(
            Problem(
                "the file can't be read",
                str(path),
                error.strerror or type(error).__name__,
                _instead(path, error),
            )
        )
        return None
    if len(data) > LARGEST:
        problems.append(
            Problem(
                "the file is too large for a site",
                str(path),
                f"more than {LARGEST >> 20} MiB",
                "split the site over several files",
            )
        )
        return None
    root = None
    try:
        root, found = compose(path, data.decode("utf-8-sig"))
        problems += found
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.append(
            Problem(
                "the file is not UTF-8 text",
                Place(path, line, 1),
                f"byte {error.start} makes no character",
                "save it as UTF-8",
            )
        )
    except Unreadable as error:
        problems.append(error.problem)
    return Document(path, hashlib.sha256(data).hexdigest(), root)


def _instead(path: Path, error: OSError) -> str:
    """What next, where a file can't be read."""
    if error.errno == errno.EINVAL:
        return "name a file that is kept: a site is read more than once"
    if not isinstance(error, FileNotFoundError):
        return "let the user that runs this read it, or name another file"
    with suppress(OSError):
        if near := nearest(path.name, [p.name for p in path.parent.iterdir() if p.suffix in ENDINGS]):
            return near
    return "correct the path: name the site's file, or the folder that holds its files"
