"""OVAs and token archives for the fuzzer: members that no honest archive has, and whole archives with bytes
changed.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import re
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bad_input import nasty
from hypothesis import strategies as st

from bfinfra.sandbox.factories.ova import make_ova
from bfinfra.sandbox.factories.token import make_token

Draw = Callable[[Any], Any]
BLOCK = tarfile.BLOCKSIZE
TYPES = b"0\x001234567SLKDMVNxgX9\xff"
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
NAMES = (
    "../x",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "C:x",
    ".",
    "",
    "x" * 99,
    "x" * 300,
    "a.ovf",
    "A.OVF",
    "a.mf",
    "a.cert",
    "ca.crt",
    "client.yaml",
    "servers.conf",
    "./ca.crt",
    *nasty.ESCAPES,
)
HUGE = (0, 1, 511, 513, 1 << 20, 8**11 - 1, 1 << 62, (1 << 63) - 1)
PAX = (
    "path",
    "size",
    "linkpath",
    "mtime",
    "GNU.sparse.major",
    "GNU.sparse.realsize",
    "GNU.sparse.map",
    "SCHILY.filetype",
    "hdrcharset",
    "comment",
)
XML = (
    (
        b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c '
        b'"&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>'
    ),
    b'<!DOCTYPE a SYSTEM "file:///etc/passwd">',
    b"&c;",
    b"&#x1b;",
    b"&#x202e;",
    b"&#xD800;",
    b"&#0;",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"<?x ?>",
    b'<?xml version="1.0" encoding="UTF-16"?>',
    b'<?xml version="1.0" encoding="utf-7"?>',
    b"<a>" * 300,
    b"<a " + b'b="c" ' * 50,
    b"xmlns:ovf='x'",
    b'ovf:size="99999999999999999999"',
    b'ovf:capacity="-1"',
    b'ovf:fileRef="../x"',
    b"<Property ovf:key='a'/>" * 50,
    b"\x00",
    b"\xff",
    b"<xi:include href='/etc/passwd'/>",
)


@functools.cache
def ova() -> bytes:
    """A whole OVA of a few kilobytes."""
    with tempfile.TemporaryDirectory() as folder:
        make_ova(Path(folder) / "a.ova", disk=1 << 12)
        return (Path(folder) / "a.ova").read_bytes()


@functools.cache
def token() -> bytes:
    """A whole token."""
    with tempfile.TemporaryDirectory() as folder:
        make_token(Path(folder) / "a.tar", servers=("10.2.0.5:56001",))
        return (Path(folder) / "a.tar").read_bytes()


def ovas() -> st.SearchStrategy[bytes]:
    return (
        changed(ova())
        | members(ova())
        | text(ova(), ".ovf", XML)
        | text(ova(), ".mf", tuple(nasty.BYTES))
        | st.binary(max_size=2000)
    )


def tokens() -> st.SearchStrategy[bytes]:
    texts = (*nasty.BYTES, *(each.encode(errors="surrogatepass") for each in (*nasty.YAML, *nasty.WORDS)))
    plain = (
        changed(token())
        | members(token())
        | text(token(), ".conf", texts)
        | text(token(), ".yaml", texts)
        | text(token(), ".crt", texts)
        | st.binary(max_size=2000)
    )
    return (
        plain
        | plain.map(gzip.compress)
        | plain.map(bz2.compress)
        | plain.map(lzma.compress)
        | st.builds(swollen, plain)
    )


def swollen(data: bytes) -> bytes:
    """A packed archive that is two thousand times as large unpacked."""
    return gzip.compress(data[: len(data) // BLOCK * BLOCK] + b"\0" * (32 << 20), 1)


@st.composite
def changed(draw: Draw, whole: bytes) -> bytes:
    """Headers with other fields, most with a right checksum; bytes flipped, blocks repeated, cut or taken
    out.
    """
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        heads = [at for at in range(0, len(data), BLOCK) if data[at + 257 : at + 262] == b"ustar"] or [0]
        at = draw(st.sampled_from(heads))
        draw(st.sampled_from((_field, flip, _repeat, cut, _gone)))(draw, data, at)
        for head in heads if draw(st.integers(0, 3)) else ():
            _sum(data, head)
    return bytes(data)


def _field(draw: Draw, data: bytearray, at: int) -> None:
    begin, length, values = draw(
        st.sampled_from(
            (
                (0, 100, [each.encode(errors="surrogatepass") for each in NAMES]),
                (156, 1, [bytes([each]) for each in TYPES]),
                (157, 100, [b"/etc/passwd", b"../..", b"ca.crt"]),
                (
                    124,
                    12,
                    [
                        *(b"%011o\0" % min(each, 8**11 - 1) for each in HUGE),
                        *(b"\x80" + each.to_bytes(11, "big") for each in HUGE),
                        b"\xff" * 12,
                        b"-1\0",
                        b"9" * 12,
                    ],
                ),
                (345, 155, [b"../..", b"/", b"a" * 155]),
                (257, 8, [b"ustar  \0", b"\0" * 8]),
                (386, 97, [b"0" * 96]),
            )
        )
    )
    value = draw(st.sampled_from(values))[:length]
    data[at + begin : at + begin + length] = value.ljust(length, b"\0")


def flip(draw: Draw, data: bytearray, _at: int) -> None:
    if data:
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))


def _repeat(draw: Draw, data: bytearray, at: int) -> None:
    data[at:at] = data[at : at + BLOCK * draw(st.integers(1, 4))] * draw(st.sampled_from((1, 2, 300)))


def cut(draw: Draw, data: bytearray, _at: int) -> None:
    del data[draw(st.integers(0, len(data))) :]


def _gone(draw: Draw, data: bytearray, at: int) -> None:
    del data[at : at + BLOCK * draw(st.integers(1, 4))]


def _sum(data: bytearray, at: int) -> None:
    if len(data) >= at + BLOCK:
        data[at + 148 : at + 156] = b" " * 8
        data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + BLOCK])


@st.composite
def members(draw: Draw, whole: bytes) -> bytes:
    """The honest members with others between them: links, devices, sparse files, doubles, odd names, extended
    headers that lie.
    """
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(whole)) as source,
        tarfile.open(fileobj=out, mode="w", format=draw(st.sampled_from(FORMATS))) as tar,
    ):
        for member in source:
            if draw(st.integers(0, 2)) == 0:
                _stranger(draw, tar)
            if draw(st.integers(0, 9)):
                for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
                    tar.addfile(member, source.extractfile(member))
        if draw(st.booleans()):
            _stranger(draw, tar)
    return out.getvalue()


def _stranger(draw: Draw, tar: tarfile.TarFile) -> None:
    info = tarfile.TarInfo(draw(st.sampled_from(NAMES)).encode(errors="replace").decode())
    info.type = bytes([draw(st.sampled_from(TYPES[:14]))])
    info.linkname = draw(st.sampled_from(("", "/etc/passwd", "../x", "ca.crt", "x" * 200)))
    if tar.format == tarfile.PAX_FORMAT:
        info.pax_headers = {
            draw(st.sampled_from(PAX)): draw(
                st.sampled_from(
                    ("1", "-1", "9" * 30, "../x", "0,99999999999", "x" * 70_000, "\x1b[2J", "BINARY")
                )
            )
        }
    body = b"x" * draw(st.sampled_from((0, 1, 600)))
    info.size = len(body)
    with contextlib.suppress(ValueError):  # some formats can't say everything
        tar.addfile(info, io.BytesIO(body))


@st.composite
def text(draw: Draw, whole: bytes, ending: str, pieces: tuple[bytes, ...]) -> bytes:
    """One file's text with other things in it, in a whole archive."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(whole)) as source,
        tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for member in source:
            stream = source.extractfile(member)
            body = stream.read() if stream else b""
            if member.name.endswith(ending):
                for _ in range(draw(st.integers(1, 3))):
                    body = _other(draw, body, pieces)
                member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return out.getvalue()


def _other(draw: Draw, body: bytes, pieces: tuple[bytes, ...]) -> bytes:
    spots = [found.start() for found in re.finditer(rb'[<>"\n: ]', body)] or [0]
    begin, end = sorted((draw(st.sampled_from(spots)), draw(st.sampled_from(spots))))
    how = draw(st.integers(0, 3))
    if how == 0:
        return body[:begin] + body[end:]
    if how == 1:
        return body[:end] + body[begin:end] * draw(st.sampled_from((1, 3, 40))) + body[end:]
    piece = draw(st.sampled_from(pieces) | st.binary(max_size=6))
    return body[:begin] + piece + body[begin if how == 2 else begin + len(piece) :]
