"""Charts, image archives, ZIP archives of certificates and packed answers for the fuzzer: honest ones with members
that no honest one has, and whole ones with bytes changed, below their packing and above it.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import json
import lzma
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from bad_input import archives, bombs, nasty
from hypothesis import strategies as st

from bfinfra.sandbox.factories.image import make_image

Draw = archives.Draw
CHART = {
    "demo/Chart.yaml": b"apiVersion: v2\nname: demo\nversion: 1.0.0\n",
    "demo/values.yaml": b"replicas: 1\nimage: {tag: '1.9'}\n",
    "demo/templates/a.yaml": b'{{ if .Capabilities.APIVersions.Has "policy/v1" }}\nkind: ConfigMap\n',
}
JSON = tuple(each if isinstance(each, bytes) else each.encode(errors="replace") for each in (
    *nasty.BYTES, *nasty.WORDS, "null", "[]", "{}", '"', "[" * 100_000, "1e999", "\\ud800", "-1", "../x",
))  # fmt: skip
ENCODINGS = (
    "gzip",
    "deflate",
    "br",
    "zstd",
    "identity",
    "",
    "gzip, gzip",
    "GZIP ",
    "deflate, gzip",
    "x" * 5000,
    "\x1b[2J",
)
ANSWERS = (
    b'{"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "a"}}]}',
    b'<?xml version="1.0"?><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><a/></e:Body></e:Envelope>',
    b"[" * 100_000,
    b"<a>" * 100_000,
    b'{"a":' * 50_000,
    b" " * (17 << 20),
    b"[]," * (1 << 18),
    b"",
)


@functools.cache
def chart() -> bytes:
    """A whole chart, not packed yet."""
    return (
        b"".join(part for name, content in CHART.items() for part in bombs.member(name, content)) + bombs.END
    )


@functools.cache
def image() -> bytes:
    """A whole archive of an image."""
    with tempfile.TemporaryDirectory() as folder:
        make_image(Path(folder) / "a.tar", image="team/x:1")
        return (Path(folder) / "a.tar").read_bytes()


def charts() -> st.SearchStrategy[bytes]:
    plain = (
        archives.changed(chart())
        | archives.members(chart())
        | archives.text(
            chart(), ".yaml", (*nasty.BYTES, *(each.encode(errors="surrogatepass") for each in nasty.YAML))
        )
        | st.builds(
            lambda part: _beside(chart(), "demo/charts/sub-1.tgz", gzip.compress(part)),
            archives.members(chart()),
        )
        | st.just(chart())
    )
    packed = st.builds(
        lambda pack, whole: pack(whole), st.sampled_from((gzip.compress, bz2.compress, lzma.compress)), plain
    )
    return plain | packed | flipped(packed) | st.builds(archives.swollen, plain) | st.binary(max_size=2000)


def _beside(whole: bytes, name: str, content: bytes) -> bytes:
    return whole.removesuffix(bombs.END) + b"".join(bombs.member(name, content)) + bombs.END


def images() -> st.SearchStrategy[bytes]:
    return (
        archives.changed(image())
        | archives.members(image())
        | archives.text(image(), ".json", JSON)
        | st.builds(gzip.compress, st.just(image()))
        | st.just(image())
        | st.binary(max_size=2000)
    )


@st.composite
def zips(draw: Draw) -> bytes:
    """ZIP archives of certificates, with strangers among them, and with bytes changed."""
    out = io.BytesIO()
    names = st.sampled_from(
        (*archives.NAMES, bombs.CERTIFICATE, "certs/lin/1.0", "certs/win/1.crt", "certs/lin/")
    )
    with zipfile.ZipFile(out, "w") as archive:
        for _ in range(draw(st.integers(0, 5))):
            info = zipfile.ZipInfo("x")
            info.filename = draw(names).encode(errors="replace").decode()
            info.compress_type = draw(st.sampled_from((0, 8, 8, 8, 12)))
            info.external_attr = draw(st.sampled_from((0, 0o100644, 0o120777, 0o010644, 0o040755))) << 16
            content = draw(
                st.binary(max_size=300) | st.sampled_from((b"\0" * (400 << 10), b"-----BEGIN", b"\xff"))
            )
            archive.writestr(info, content)
        archive.comment = draw(st.sampled_from((b"", b"PK\5\6", b"x" * 60_000)))
    whole = bytearray(out.getvalue())
    for _ in range(draw(st.integers(0, 3))):
        draw(st.sampled_from((_zip_field, archives.flip, archives.cut)))(draw, whole, 0)
    return bytes(whole)


def _zip_field(draw: Draw, data: bytearray, _at: int) -> None:
    """A field of a header: sizes, offsets, counts, flags, lengths."""
    sign, fields = draw(st.sampled_from(((b"PK\1\2", 46), (b"PK\3\4", 30), (b"PK\5\6", 22))))
    spots = [at for at in range(len(data)) if data[at : at + 4] == sign]
    if spots:
        at = draw(st.sampled_from(spots)) + draw(st.integers(4, fields - 2))
        value = draw(st.sampled_from((0, 1, 0x41, 0xFFFF, 1 << 16, 0x7FFFFFFF, 0xFFFFFFFF)))
        new = struct.pack("<I", value)[: draw(st.sampled_from((1, 2, 4)))]
        data[at : at + len(new)] = new


@st.composite
def flipped(draw: Draw, wholes: st.SearchStrategy[bytes]) -> bytes:
    """Bytes changed, added or taken out."""
    data = bytearray(draw(wholes))
    for _ in range(draw(st.integers(1, 3))):
        draw(st.sampled_from((archives.flip, archives.cut)))(draw, data, 0)
    return bytes(data) + draw(st.sampled_from((b"", b"", b"x" * 1000, bytes(2000))))


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, 1),
    "deflate": zlib.compress,
    "raw": lambda body: zlib.compress(body)[2:-4],
    "twice": lambda body: gzip.compress(gzip.compress(body, 1), 1),
    "in parts": lambda body: gzip.compress(body[:50], 1) + gzip.compress(body[50:], 1),
    "in nothing": lambda body: gzip.compress(b"") * 2000 + gzip.compress(body, 1),
    "not": bytes,
}


@st.composite
def answers(draw: Draw) -> tuple[str, list[bytes]]:
    """A Content-Encoding, and the blocks of a body, packed so or otherwise."""
    body = draw(
        st.sampled_from(ANSWERS)
        | st.binary(max_size=500)
        | st.builds(json.dumps, st.recursive(st.none() | st.text(), st.lists)).map(str.encode)
    )
    packed = PACKERS[draw(st.sampled_from(sorted(PACKERS)))](body)
    data = bytearray(packed)
    if draw(st.booleans()):
        draw(st.sampled_from((archives.flip, archives.cut)))(draw, data, 0)
    data += draw(st.sampled_from((b"", b"", b"", b"x" * 1000, bytes(1000))))
    step = draw(st.sampled_from((1 << 16, 1 << 16, 1000)))
    encoding = draw(st.sampled_from(("gzip", "gzip", "deflate", *ENCODINGS)))
    return encoding, [bytes(data[at : at + step]) for at in range(0, len(data), step)]
