"""Reads tar archives member by member: their headers, and the content of those that are asked for.

The standard library's tarfile follows links and sparse maps, and reads an extended header of any length into
memory before anybody can refuse it. What comes from outside has none of these.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from bfinfra.backends.archives.bounds import FILE, FOLDER, LINK, BadArchive, Budget, NoArchive, shown, size
from bfinfra.model.records import dataclass

BLOCK = tarfile.BLOCKSIZE
STEP = 1 << 18  # bytes that are skipped at once, where a stream can't seek
ABOUT = 4  # extended headers about one member
PLAIN = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE})
PAX = frozenset({tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE})
EXTENDED = PAX | {tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
KINDS = {
    **dict.fromkeys(PLAIN, FILE),
    tarfile.DIRTYPE: FOLDER,
    tarfile.SYMTYPE: LINK,
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}
RECORD = re.compile(rb"(\d{1,9}) ")


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an archive: the offset and number of its bytes. `kind`: FILE, FOLDER or LINK."""

    name: str
    offset: int
    size: int
    kind: str = FILE


class Tar:
    """The members of a tar, in its order. `length`: bytes of a file, which is skipped through by seeking;
    None for a stream. Raises BadArchive, NoArchive.
    """

    def __init__(self, stream: BinaryIO, budget: Budget, *, length: int | None = None) -> None:
        self._stream, self._budget, self._length = stream, budget, length
        self._at = 0

    def __iter__(self) -> Iterator[Member]:
        """The members up to the end mark. An extended header is about the next member."""
        about, headers = dict[str, str](), 0
        while (info := self._header()) is not None:
            begin = self._at
            if info.type in EXTENDED:
                headers += 1
                if headers > ABOUT:
                    raise BadArchive(f"it has more than {ABOUT} headers about one file")
                about |= self._extended(info)
            else:
                declared = int(about["size"]) if "size" in about else info.size
                kind = KINDS.get(info.type, "something that is not a file")
                name = about.get("path", info.name)
                self._ends(name, begin + declared)
                yield Member(self._budget.admit(name, kind, declared), begin, declared, kind)
                self._to(begin + declared)
                about, headers = {}, 0
            self._to(-(-self._at // BLOCK) * BLOCK)

    def content(self, member: Member, most: int) -> bytes:
        """The content of a member; of the last one that came, if this is a stream. Raises BadArchive if it
        has more than `most` bytes.
        """
        if member.kind != FILE:
            raise BadArchive(f"{shown(member.name)} is not a regular file")
        if member.size > most:
            raise BadArchive(
                f"{shown(member.name)} has {member.size:,} bytes", f"more than {size(most)} are not read"
            )
        self._to(member.offset)
        return self._read(member.size, member.name)

    def _header(self) -> tarfile.TarInfo | None:
        at = self._at
        data = self._stream.read(BLOCK)
        self._at += len(data)
        if data == bytes(BLOCK):
            return None  # the end mark
        try:
            info = tarfile.TarInfo.frombuf(data, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            if at == 0:
                raise NoArchive("it is not a tar archive") from None
            where = "no end mark" if len(data) < BLOCK else f"damaged at byte {at}"
            raise BadArchive(f"it is cut short or damaged: {where}") from None
        if info.size < 0:
            raise BadArchive(f"it is damaged at byte {at}", "a size is negative")
        return info

    def _extended(self, info: tarfile.TarInfo) -> dict[str, str]:
        """The name and size of the next member in an extended header."""
        if info.size > self._budget.bounds.header:
            raise BadArchive(
                f"one of its headers has {info.size:,} bytes",
                f"more than {size(self._budget.bounds.header)} are not read",
            )
        self._ends(info.name, self._at + info.size)
        data = self._read(info.size, info.name)
        if info.type == tarfile.GNUTYPE_LONGLINK:
            return {}
        if info.type == tarfile.GNUTYPE_LONGNAME:
            return {"path": data.decode(errors="replace").rstrip("\0")}
        found = dict(_records(data))
        if any(key.startswith("GNU.sparse") for key in found):
            raise BadArchive("it contains a sparse file", "it may contain only regular files")
        named: dict[str, str] = {key: found[key] for key in ("path", "size") if key in found}
        if named and info.type == tarfile.XGLTYPE:
            raise BadArchive("it is damaged", "one header names all files")
        if not re.fullmatch(r"\d{1,18}", named.get("size", "0")):
            raise BadArchive("it is damaged", "a size is no number")
        return named

    def _ends(self, name: str, end: int) -> None:
        if self._length is not None and end > self._length:
            raise BadArchive(
                f"it is cut short: {shown(name)} should end at byte {end}, and the file has {self._length}"
            )

    def _read(self, count: int, name: str) -> bytes:
        data = self._stream.read(count)
        self._at += len(data)
        if len(data) < count:
            raise BadArchive(f"it is cut short: {shown(name)} has no end")
        return data

    def _to(self, position: int) -> None:
        """Go there: by seeking in a file, by reading on in a stream."""
        if self._length is not None:
            if position != self._at:
                self._stream.seek(position, io.SEEK_SET)
                self._at = position
            return
        while self._at < position and (data := self._stream.read(min(STEP, position - self._at))):
            self._at += len(data)
        if self._at != position:
            raise BadArchive("it is cut short")


def _records(data: bytes) -> Iterator[tuple[str, str]]:
    """Key and value of each record, `30 key=value` and a line end, by its length: a value may contain
    line ends.
    """
    at = 0
    while at < len(data) and data[at : at + 1] != b"\0":
        found = RECORD.match(data, at)
        end = at + int(found[1]) if found else 0
        key, sign, value = data[found.end() if found else at : end - 1].partition(b"=")
        if not found or not sign or end > len(data) or data[end - 1 : end] != b"\n":
            raise BadArchive("it is damaged", "an extended header makes no sense")
        yield key.decode(errors="replace"), value.decode(errors="replace")
        at = end
