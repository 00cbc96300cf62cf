"""Archives that are made to cost more than they may, or to lead out of their folder: each is written as a stream,
and is a few megabytes on the disk.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30
BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
SEGMENT = 16 * MIB


@dataclass(frozen=True)
class Target:
    """What a caller reads: `files` of an honest archive; `file` is one that it reads whole; `more`: a name that a
    further file may have; `members`: how many it lets in.
    """

    files: dict[str, bytes]
    file: str
    more: str
    members: int
    packed: bool = True


Blocks = Iterator[bytes | int]
"""Bytes, or a number of zeros."""


def header(
    name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "", form: int = tarfile.GNU_FORMAT
) -> bytes:
    """One member's header, with extended ones where the format has them."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info.tobuf(form, "utf-8", "surrogateescape")


def member(name: str, content: bytes = b"") -> Iterator[bytes]:
    yield header(name, len(content))
    yield content.ljust(-(-len(content) // BLOCK) * BLOCK, b"\0")


def honest(target: Target, *, but: str = "") -> Iterator[bytes]:
    for name, content in target.files.items():
        if name != but:
            yield from member(name, content)


def pax(records: dict[str, str]) -> bytes:
    """An extended header about the next member."""
    body = b""
    for key, value in records.items():
        rest = f" {key}={value}\n".encode()
        size = len(rest)
        while len(str(size)) + len(rest) != size:
            size = len(str(size)) + len(rest)
        body += str(size).encode() + rest
    return header("PaxHeaders/x", len(body), tarfile.XHDTYPE) + body.ljust(
        -(-len(body) // BLOCK) * BLOCK, b"\0"
    )


def zeros(target: Target) -> Blocks:
    yield header(target.file, 8 * GIB)
    yield 8 * GIB
    yield from honest(target, but=target.file)


def pax_header(target: Target) -> Blocks:
    yield header("PaxHeaders/x", 4 * GIB, tarfile.XHDTYPE)
    yield 4 * GIB
    yield from honest(target)


def long_name(target: Target) -> Blocks:
    yield header("././@LongLink", 4 * GIB, tarfile.GNUTYPE_LONGNAME)
    yield 4 * GIB
    yield from honest(target)


def sparse(target: Target) -> Blocks:
    """GNU's own form: 8 GiB that take no room."""
    info = bytearray(header(target.more, 0, tarfile.GNUTYPE_SPARSE))
    info[386:482] = bytes(96)
    info[483:495] = b"\x80" + (8 * GIB).to_bytes(11, "big")
    info[148:156] = b" " * 8
    info[148:156] = b"%06o\0 " % sum(info)
    yield from honest(target)
    yield bytes(info)


def sparse_by_pax(target: Target) -> Blocks:
    yield from honest(target)
    yield pax({"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(8 * GIB)})
    yield header(target.more, BLOCK) + b"0\n".ljust(BLOCK, b"\0")


def tiny_members(target: Target, count: int = 0) -> Blocks:
    """Each of another name; by default one more than the caller lets in."""
    yield from honest(target)
    mould = bytearray(header(f"{target.more}{0:09d}"))
    at = mould.index(b"\0") - 9
    bare = sum(mould[:148]) + sum(mould[156:BLOCK]) + 8 * 0x20 - 9 * ord("0")
    for number in range(count or target.members):
        digits = b"%09d" % number
        mould[at : at + 9] = digits
        mould[148:156] = b"%06o\0 " % (bare + sum(digits))
        yield bytes(mould)


def headers_without_end(target: Target) -> Blocks:
    yield from (pax({"comment": "x"}) for _ in range(200))
    yield from honest(target)


def extra(name: str = "", kind: bytes = tarfile.REGTYPE, link: str = "") -> Callable[[Target], Blocks]:
    """An honest archive, and one member more; "" is its usual name."""

    def blocks(target: Target) -> Blocks:
        yield from honest(target)
        yield header(name or target.more, 0, kind, link)

    return blocks


def twice(target: Target) -> Blocks:
    yield from honest(target)
    yield from member(target.file, target.files[target.file])


def write_through(target: Target) -> Blocks:
    yield from honest(target)
    yield header("d", 0, tarfile.SYMTYPE, "/etc")
    yield from member("d/passwd", b"x")


def cut_short(target: Target) -> Blocks:
    yield from honest(target)
    yield header(target.more, 10 * BLOCK)


TARS: dict[str, tuple[Callable[[Target], Blocks], str]] = {
    "8 GiB of zeros": (zeros, r"unpacked|swells|are not read|no OVF descriptor"),
    "a pax header of 4 GiB": (pax_header, r"one of its headers has 4,294,967,296 bytes"),
    "a name of 4 GiB": (long_name, r"one of its headers has 4,294,967,296 bytes"),
    "a sparse file of 8 GiB": (sparse, r"a sparse file"),
    "a sparse file by pax": (sparse_by_pax, r"a sparse file"),
    "too many members": (tiny_members, r"more than [\d,]+ files|not part of a token"),
    "headers without end": (headers_without_end, r"more than 4 headers"),
    "a name twice": (twice, r"twice"),
    "..": (extra("../../x"), r"holds a file called"),
    "an inner ..": (extra("a/../../x"), r"holds a file called"),
    "an absolute name": (extra("/etc/passwd"), r"holds a file called"),
    "a drive": (extra("C:/x"), r"holds a file called"),
    "a backslash": (extra("..\\x"), r"holds a file called"),
    "a control character": (extra("a\x1b[2Jb"), r"holds a file called"),
    "a name without end": (extra("x" * 60_000), r"holds a file called"),
    "folders without end": (extra("d/" * 20_000 + "x"), r"holds a file called"),
    "a symbolic link, written through": (write_through, r"twice|a symbolic link"),
    "a hard link": (extra(kind=tarfile.LNKTYPE, link="/etc/passwd"), r"a hard link"),
    "a device": (extra(kind=tarfile.CHRTYPE), r"a device"),
    "a pipe": (extra(kind=tarfile.FIFOTYPE), r"a pipe"),
    "an unknown type": (extra(kind=b"Z"), r"something that is not a file"),
    "a file cut short": (cut_short, r"cut short"),
}
"""Name → how its blocks are made, and what its refusal says."""


def write(path: Path, blocks: Blocks, *, packed: bool) -> None:
    """A tar, with an end mark; packed with gzip, or with holes for zeros."""
    (_packed if packed else _plain)(path, blocks)


def _plain(path: Path, blocks: Blocks) -> None:
    with path.open("wb") as out:
        for block in blocks:
            if isinstance(block, int):
                out.seek(block, os.SEEK_CUR)
            else:
                out.write(block)
        out.write(END)


def _packed(path: Path, blocks: Blocks) -> None:
    """Zeros are the same packed segment again and again; so the checksum at the end is wrong, as no reader may get
    there.
    """
    stream = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    with path.open("wb") as out:
        for block in blocks:
            if isinstance(block, int):
                out.write(stream.flush(zlib.Z_FULL_FLUSH))
                out.write(_segment() * (block // SEGMENT))
            else:
                out.write(stream.compress(block))
        out.write(stream.compress(END) + stream.flush())


def _segment() -> bytes:
    """SEGMENT zeros within a deflate stream."""
    part = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return part.compress(bytes(SEGMENT)) + part.flush(zlib.Z_FULL_FLUSH)


def gz_streams(target: Target) -> bytes:
    """Ten thousand empty streams before the archive."""
    return gzip.compress(b"") * 10_000 + gzip.compress(b"".join(honest(target)) + END)


def gz_garbage(target: Target) -> bytes:
    """Something else after the archive, where a reader may go on."""
    whole = gzip.compress(b"".join(honest(target)))
    return whole + b"garbage" * 1000


def gz_cut(target: Target) -> bytes:
    whole = gzip.compress(b"".join(honest(target)) + os.urandom(1000) + END)
    return whole[: len(whole) // 2]


PACKED: dict[str, tuple[Callable[[Target], bytes], str]] = {
    "10,000 packed streams": (gz_streams, r"more than 1,000 packed streams"),
    "garbage after the archive": (gz_garbage, r"damaged, or no gzip"),
    "a packed stream cut short": (gz_cut, r"cut short"),
}


def nested(target: Target, depth: int, inside: str) -> bytes:
    """An archive within an archive within …; `inside`: what one is called."""
    whole = gzip.compress(b"".join(honest(target)) + END)
    for _ in range(depth):
        whole = gzip.compress(b"".join((*honest(target), *member(inside, whole))) + END, 1)
    return whole


CERTIFICATE = "certs/lin/0a1b2c3d.0"


def _zip(*members: tuple[str | zipfile.ZipInfo, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how, compresslevel=9) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def zip_zeros() -> bytes:
    """What the issue found: 2.3 MB that took 4.1 GiB."""
    return _zip(*((f"certs/lin/{number:08x}.0", bytes(MIB)) for number in range(32)))


def zip_zeros_in_one() -> bytes:
    return _zip((CERTIFICATE, bytes(32 * MIB)))


def zip_lies() -> bytes:
    """The list says 10 bytes, and 16 MiB come."""
    whole = bytearray(_zip((CERTIFICATE, bytes(16 * MIB))))
    at = whole.rindex(b"PK\1\2")
    whole[at + 24 : at + 28] = struct.pack("<I", 10)
    return bytes(whole)


def zip_overlaps() -> bytes:
    """A thousand names for the same packed bytes."""
    whole = _zip((CERTIFICATE, bytes(MIB)))
    at, end = whole.rindex(b"PK\1\2"), whole.rindex(b"PK\5\6")
    entry = whole[at:end]
    more = b"".join(entry.replace(b"0a1b2c3d", b"%08x" % number) for number in range(1000))
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1000, 1000, len(more), at, 0)
    return whole[:at] + more + tail


def zip_of_many() -> bytes:
    """Twelve thousand entries, of which the count at the end admits one."""
    whole = bytearray(
        _zip(*((f"certs/lin/{number:08x}.0", b"") for number in range(12_000)), how=zipfile.ZIP_STORED)
    )
    at = whole.rindex(b"PK\5\6")
    whole[at + 8 : at + 12] = struct.pack("<2H", 1, 1)
    return bytes(whole)


def zip_encrypted() -> bytes:
    whole = bytearray(_zip((CERTIFICATE, b"x")))
    for sign, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        whole[whole.index(sign) + at] |= 1
    return bytes(whole)


def zip_link() -> bytes:
    info = zipfile.ZipInfo(CERTIFICATE)
    info.external_attr = 0o120777 << 16
    return _zip((info, b"/etc/passwd"))


def zip_64() -> bytes:
    """A member of 2^62 bytes, by its own words."""
    whole = bytearray(_zip((CERTIFICATE, b"x")))
    at, end = whole.rindex(b"PK\1\2"), whole.rindex(b"PK\5\6")
    extra = struct.pack("<HHQ", 1, 8, 1 << 62)
    whole[at + 24 : at + 28] = b"\xff" * 4
    whole[at + 30 : at + 32] = struct.pack("<H", len(extra))
    whole[end:end] = extra
    new = whole.rindex(b"PK\5\6")
    whole[new + 12 : new + 16] = struct.pack("<I", new - at)
    return bytes(whole)


def zip_named(name: str) -> Callable[[], bytes]:
    def made() -> bytes:
        whole = _zip((CERTIFICATE, b"x"), ("N" * len(name.encode()), b"y"))
        return whole.replace(b"N" * len(name.encode()), name.encode())

    return made


def zip_twice() -> bytes:
    whole = _zip((CERTIFICATE, b"x"), ("certs/lin/00000000.0", b"y"))
    return whole.replace(b"00000000", b"0a1b2c3d")


ZIPS: dict[str, tuple[Callable[[], bytes], str]] = {
    "32 MiB of zeros": (zip_zeros, r"unpacked|swells"),
    "32 MiB of zeros in one": (zip_zeros_in_one, r"has 33,554,432 bytes"),
    "a size that lies": (zip_lies, r"no ZIP archive, or damaged"),
    "overlapping members": (zip_overlaps, r"overlaps"),
    "12,000 members, admitted as one": (zip_of_many, r"more than 10,000 files"),
    "an encrypted member": (zip_encrypted, r"encrypted"),
    "bzip2 inside": (
        lambda: _zip((CERTIFICATE, bytes(MIB)), how=zipfile.ZIP_BZIP2),
        r"packed in another way",
    ),
    "xz inside": (lambda: _zip((CERTIFICATE, bytes(MIB)), how=zipfile.ZIP_LZMA), r"packed in another way"),
    "a symbolic link": (zip_link, r"a symbolic link"),
    "a member of 2^62 bytes": (zip_64, r"bytes"),
    "..": (zip_named("../../x"), r"holds a file called"),
    "an absolute name": (zip_named("/etc/passwd"), r"holds a file called"),
    "a drive": (zip_named("C:/x"), r"holds a file called"),
    "a backslash": (zip_named("..\\x"), r"holds a file called"),
    "a control character": (zip_named("a\x1bb"), r"holds a file called"),
    "a NUL in a name": (zip_named("certs/lin/a\0b"), r"holds a file called|no ZIP archive"),
    "a name without end": (zip_named("x" * 60_000), r"holds a file called"),
    "folders without end": (zip_named("d/" * 20_000 + "x"), r"holds a file called"),
    "a name twice": (zip_twice, r"twice"),
    "a packed archive cut short": (lambda: _zip((CERTIFICATE, b"x"))[:-30], r"no ZIP archive"),
}
