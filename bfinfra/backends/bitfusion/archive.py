"""Reads the members of a token from its tar or unpacked folder. Nothing is unpacked, no link is followed."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

FILES = ("ca.crt", "client.yaml", "servers.conf")
LARGEST = 1 << 20  # bytes of a member; real ones are a few kilobytes
WHOLE = 4 << 20  # bytes of the archive, compressed or not
PACKED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda data: zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, WHOLE + 1),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data, WHOLE + 1),
    b"\xfd7zXZ": lambda data: lzma.LZMADecompressor(memlimit=64 << 20).decompress(data, WHOLE + 1),
}
MOST = 32  # members that are read


class BadToken(ValueError):
    """A token can't be used. The message says why and what to do; it never quotes the token's content."""


def members(path: Path) -> dict[str, bytes]:
    """`{"ca.crt": …, "client.yaml": …, "servers.conf": …}`. Raises BadToken."""
    found = _checked(_of_folder(path) if path.is_dir() else _of_tar(path))
    if missing := [name for name in FILES if name not in found]:
        raise BadToken(
            f"{path} has no {', '.join(missing)}: download the token again from the Bitfusion plug-in"
        )
    return found


def _checked(entries: Iterator[tuple[str, bytes]]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, content in entries:
        if name in found:
            raise BadToken(f"it holds {name} twice: download the token again")
        found[name] = content
    return found


def _of_folder(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        entries = sorted(os.scandir(path), key=lambda e: e.name)
        for entry in entries[: MOST + 1]:
            _check_name(entry.name)
            info = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(info.st_mode):
                raise BadToken(f"{entry.name} is not a regular file: put the file itself there")
            _check_size(entry.name, info.st_size)
            yield entry.name, Path(entry.path).read_bytes()
    except OSError as error:
        raise BadToken(f"{path} can't be read: {error.strerror}") from None


def _of_tar(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(_unpacked(path)), mode="r:") as tar:
            for count, member in enumerate(tar):
                if count > MOST:
                    raise BadToken(f"{path} has more than {MOST} members: it is not a token")
                yield from _of_member(tar, member)
    except OSError as error:
        raise BadToken(f"{path} can't be read: {error.strerror or 'it is damaged'}") from None
    except (tarfile.TarError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        if isinstance(error, BadToken):
            raise
        raise BadToken(f"{path} is not a tar, or damaged: download the token again") from None


def _unpacked(path: Path) -> bytes:
    """The tar's uncompressed bytes; never more than a token can have."""
    with path.open("rb") as stream:
        data = stream.read(WHOLE + 1)
    unpack = next((make for magic, make in PACKED.items() if data.startswith(magic)), None)
    data = unpack(data) if unpack else data
    if len(data) > WHOLE:
        raise BadToken(f"{path} has more than {WHOLE >> 20} MiB: it is not a token")
    return data


def _of_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[tuple[str, bytes]]:
    name = member.name.removeprefix("./")
    if member.isdir() and name in ("", "."):
        return
    _check_name(name)
    if not member.isreg():
        raise BadToken(f"{name} is not a regular file in it: download the token again")
    _check_size(name, member.size)
    stream = tar.extractfile(member)
    assert stream is not None
    content = stream.read(LARGEST + 1)
    if len(content) != member.size:
        raise BadToken(f"{name} is cut short: download the token again")
    yield name, content


def _check_name(name: str) -> None:
    if name not in FILES:
        shown = "".join(c if c.isprintable() else "\ufffd" for c in name)[:80]
        raise BadToken(f"it holds {shown}, which is not part of a token: a token has only {', '.join(FILES)}")


def _check_size(name: str, size: int) -> None:
    if size > LARGEST:
        raise BadToken(f"{name} has {size} bytes, more than {LARGEST}: it is not part of a token")
    if size == 0:
        raise BadToken(f"{name} is empty: download the token again")
