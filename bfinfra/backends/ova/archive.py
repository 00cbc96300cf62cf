"""The archive of an OVA: its members' names, places and sizes, from the tar headers only: a few hundred bytes
for each.

The standard library's tarfile follows links, sparse maps and extended headers of any length; an OVA has none
of them.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO

from bfinfra.backends.ova.contents import Member
from bfinfra.backends.ova.source import refusal, shown

BLOCK = tarfile.BLOCKSIZE
MOST = 256  # members
LONGEST = 1 << 16  # bytes of an extended header
PLAIN = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE})
EXTENDED = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE})
NAMES = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.DIRTYPE: "a folder",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}


def members(path: PurePath, stream: BinaryIO, size: int) -> dict[str, Member]:
    """Name → member, in the order of the archive. Raises Refusal for a file that is no tar, is cut short, or
    contains what no OVA has.
    """
    found: dict[str, Member] = {}
    for member in _walk(path, stream, size):
        _check_name(path, member.name)
        if member.name in found:
            raise refusal(path, f"it holds {member.name} twice")
        if len(found) >= MOST:
            raise refusal(path, f"it holds more than {MOST} files", next="make sure that it is an OVA")
        found[member.name] = member
    if not found:
        raise refusal(path, "it is empty")
    return found


def _walk(path: PurePath, stream: BinaryIO, size: int) -> Iterator[Member]:
    """The members up to the end mark. An extended header is about the next member."""
    position, declared = 0, dict[str, str]()
    while (info := _header(path, stream, position)) is not None:
        begin, end = position + BLOCK, position + BLOCK + info.size
        if end > size:
            raise refusal(
                path, f"it is cut short: {shown(info.name)} should end at byte {end}, and the file has {size}"
            )
        if info.type in EXTENDED or info.type == tarfile.GNUTYPE_LONGNAME:
            declared |= _extended(path, stream, info)
        elif info.type in PLAIN:
            length = int(declared["size"]) if declared.get("size", "").isdigit() else info.size
            if begin + length > size:
                raise refusal(
                    path,
                    (
                        f"it is cut short: {shown(info.name)} should end at byte {begin + length}, and the "
                        f"file has {size}"
                    ),
                )
            yield Member(declared.get("path", info.name), begin, length)
            end, declared = begin + length, {}
        else:
            raise refusal(
                path,
                f"it holds {NAMES.get(info.type, 'something that is not a file')}: {shown(info.name)}",
                "an OVA contains only regular files",
            )
        position = -(-end // BLOCK) * BLOCK


def _header(path: PurePath, stream: BinaryIO, position: int) -> tarfile.TarInfo | None:
    stream.seek(position)
    data = stream.read(BLOCK)
    if data == bytes(BLOCK):
        return None  # the end mark
    try:
        info = tarfile.TarInfo.frombuf(data, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        if position == 0:
            raise refusal(
                path,
                "it is not an OVA",
                "an OVA is a tar archive",
                "name the .ova file itself, unpacked from any .zip or .gz",
            ) from None
        where = "no end mark" if len(data) < BLOCK else f"damaged at byte {position}"
        raise refusal(path, f"it is cut short or damaged: {where}") from None
    if info.size < 0:
        raise refusal(path, f"it is damaged at byte {position}", "a size is negative")
    return info


def _extended(path: PurePath, stream: BinaryIO, info: tarfile.TarInfo) -> dict[str, str]:
    """The name and size of the next member in an extended header."""
    if info.size > LONGEST:
        raise refusal(path, f"one of its headers has {info.size} bytes")
    text = stream.read(info.size).decode(errors="replace")
    if info.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": text.rstrip("\0")}
    if info.type == tarfile.XGLTYPE:
        return {}
    pairs = (line.partition(" ")[2].partition("=") for line in text.split("\n"))
    found = {key: value for key, _, value in pairs}
    if any(key.startswith("GNU.sparse") for key in found):
        raise refusal(path, "it contains a sparse file", "an OVA contains only regular files")
    return {key: found[key] for key in ("path", "size") if key in found}


def _check_name(path: PurePath, name: str) -> None:
    if (
        not name
        or name.startswith(".")
        or not name.isprintable()
        or any(c in name for c in "/\\:")
        or len(name) > 255
    ):
        raise refusal(
            path,
            f"it holds a file called {shown(name)!r}",
            "the files of an OVA are not in folders, and have plain names",
            "do not use it",
        )
