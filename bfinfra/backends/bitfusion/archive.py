"""Reads the members of a token from its tar or unpacked folder. Nothing is unpacked, no link is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bfinfra.backends.archives.bounds import FOLDER, BadArchive, Bounds, Budget, NoArchive, shown
from bfinfra.backends.archives.packed import opened
from bfinfra.backends.archives.tar import Tar
from bfinfra.model.sources import plain_file

FILES = ("ca.crt", "client.yaml", "servers.conf")
LARGEST = 1 << 20  # bytes of a member; real ones are a few kilobytes
MOST = 32  # members that are read
BOUNDS = Bounds(whole=4 << 20, member=LARGEST, members=MOST, folders=1)


class BadToken(ValueError):
    """A token can't be used. The message says why and what to do; it never quotes the token's content."""


def members(path: Path) -> dict[str, bytes]:
    """`{"ca.crt": …, "client.yaml": …, "servers.conf": …}`. Raises BadToken."""
    found = _checked(path, _of_folder(path) if path.is_dir() else _of_tar(path))
    if missing := [name for name in FILES if name not in found]:
        raise BadToken(
            f"{path} has no {', '.join(missing)}: download the token again from the Bitfusion plug-in"
        )
    return found


def _checked(path: Path, entries: Iterator[tuple[str, bytes]]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, content in entries:
        if name not in FILES:
            raise BadToken(
                f"{path} holds {shown(name)}, which is not part of a token: a token has only "
                f"{', '.join(FILES)}"
            )
        if not content:
            raise BadToken(f"{name} in {path} is empty: download the token again")
        found[name] = content
    return found


def _of_folder(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        entries = sorted(os.scandir(path), key=lambda e: e.name)
        for entry in entries[: MOST + 1]:
            info = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(info.st_mode):
                raise BadToken(f"{shown(entry.name)} is not a regular file: put the file itself there")
            if info.st_size > LARGEST:
                raise BadToken(f"{shown(entry.name)} has {info.st_size} bytes, more than {LARGEST}")
            yield entry.name, Path(entry.path).read_bytes()
    except OSError as error:
        raise BadToken(f"{path} can't be read: {error.strerror}") from None


def _of_tar(path: Path) -> Iterator[tuple[str, bytes]]:
    budget = Budget(BOUNDS)
    try:
        with plain_file(path) as stream:
            tar = Tar(opened(stream, budget), budget)
            for member in tar:
                if member.kind != FOLDER or member.name != ".":
                    yield member.name, tar.content(member, LARGEST)
    except OSError as error:
        raise BadToken(f"{path} can't be read: {error.strerror or 'it is damaged'}") from None
    except NoArchive:
        raise BadToken(f"{path} is not a tar, or damaged: download the token again") from None
    except BadArchive as error:
        what, why = error.what.replace(": ", ", "), f" ({error.why})" if error.why else ""
        raise BadToken(f"{path} is not a token, as {what}{why}: download the token again") from None
