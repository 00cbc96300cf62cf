"""Finds planted secrets in bytes, in any form in which they may have been written. Shares no code with what
hides them.
"""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import quopri
import re
import tarfile
import urllib.parse
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

PIECE = 12  # characters from either end of a secret that give it away
LINE = 20  # characters of a line of a secret with several


class Scanner:
    """`secrets`: name → value."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.names = sorted(secrets)
        self._needles = {
            needle: f"{name} {form}"
            for name, value in secrets.items()
            for part in parts(value)
            for form, needle in forms(part)
        }

    def __len__(self) -> int:
        return len(self._needles)

    def find(self, data: bytes) -> list[str]:
        """Which secrets stand in the data, and in which form."""
        found = {self._needles[needle] for view in views(data) for needle in self._needles if needle in view}
        return sorted(found)

    def text(self, *texts: object) -> list[str]:
        """The same for text."""
        return self.find("\n".join(map(str, texts)).encode(errors="surrogatepass"))

    def folder(
        self, folder: Path, without: re.Pattern[bytes], leave: Iterable[Path] = ()
    ) -> dict[str, list[str]]:
        """The same for names and contents of all files in a folder, links and all."""
        out, left = {}, [*map(Path.resolve, leave)]
        for path in sorted(folder.rglob("*")):
            if any(path.resolve().is_relative_to(each) for each in left):
                continue
            output = (
                str(path.readlink()).encode()
                if path.is_symlink()
                else path.read_bytes()
                if path.is_file()
                else b""
            )
            if found := sorted({*self.text(path.relative_to(folder)), *self.find(without.sub(b"", output))}):
                out[str(path.relative_to(folder))] = found
        return out


def parts(value: str) -> Iterator[str]:
    """A secret, and each of its telling lines."""
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) <= 1:
        yield value.strip()
        return
    yield value
    yield from (line for line in lines if len(line) >= LINE and not line.startswith("-----"))


def forms(value: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each form."""
    escaped = {
        "plain": value,
        "json": json.dumps(value)[1:-1],
        "json with its letters": json.dumps(value, ensure_ascii=False)[1:-1],
        "python": repr(value)[1:-1],
        "xml": escape(value),
        "xml attribute": quoteattr(value)[1:-1],
        "html": html.escape(value),
        "xml quoted": escape(value, {'"': "&quot;"}),
        "xml, all": escape(value, {'"': "&quot;", "'": "&apos;"}),
        "url": urllib.parse.quote(value),
        "url whole": urllib.parse.quote(value, safe=""),
        "form": urllib.parse.quote_plus(value),
        "quoted-printable": quopri.encodestring(value.encode()).decode().replace("=\n", ""),
    }
    for name, text in escaped.items():
        yield name, text.encode()
        yield from _encoded(name, text.encode())
    if "\n" not in value:  # of a file in PEM both are everybody's
        yield "beginning", value[:PIECE].encode()
        yield "end", value[-PIECE:].encode()
    for name in ("utf-16-le", "utf-16-be", "utf-32-le"):
        yield name, value.encode(name)
        yield from _encoded(name, value.encode(name))
    for core in _base64(value.encode()):
        for twice in _base64(core):
            yield "base64 twice", twice


def _encoded(name: str, raw: bytes) -> Iterator[tuple[str, bytes]]:
    yield f"{name}, hex", raw.hex().encode()
    for core in _base64(raw):
        yield f"{name}, base64", core
        yield f"{name}, base64 for urls", core.translate(bytes.maketrans(b"+/", b"-_"))


def _base64(raw: bytes) -> Iterator[bytes]:
    """Of each of three alignments the letters that belong to the value alone."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw)
        bits = [
            index
            for index in range(len(whole))
            if index * 6 >= before * 8 and index * 6 + 6 <= (before + len(raw)) * 8
        ]
        yield whole[bits[0] : bits[-1] + 1]


def views(data: bytes) -> Iterator[bytes]:
    """The data, and what it shows when folded lines are joined or archives unpacked."""
    yield data
    yield data.lower()
    yield re.sub(rb"\s+", b"", data)
    yield data.replace(b"=\n", b"").replace(b"=\r\n", b"")
    for opener in (_gzip, _zip, _tar):
        yield from opener(data)


def _gzip(data: bytes) -> Iterator[bytes]:
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)


def _zip(data: bytes) -> Iterator[bytes]:
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from (archive.read(name) for name in archive.namelist())


def _tar(data: bytes) -> Iterator[bytes]:
    if data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            yield from (
                stream.read()
                for member in archive
                if member.isfile() and (stream := archive.extractfile(member))
            )
