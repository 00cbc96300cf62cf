"""A chart's archive: its digest, and what its templates ask of a cluster."""

from __future__ import annotations

import functools
import hashlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from bfinfra.backends.archives.bounds import FILE, BadArchive, Bounds, Budget, NoArchive
from bfinfra.backends.archives.packed import opened
from bfinfra.backends.archives.tar import Tar
from bfinfra.model import foreign
from bfinfra.model.records import dataclass
from bfinfra.model.sources import plain_file

Values = Mapping[str, Any]
LARGEST = 32 << 20  # bytes of an archive
LARGEST_TEMPLATE = 4 << 20  # bytes
BOUNDS = Bounds(whole=128 << 20, member=LARGEST, members=20_000, inside=8)
"""helm 3.18 reads no more than 100 MiB of a chart, and older ones all that there is; charts inside of a chart
may be packed.
"""
ASKED = re.compile(rb"""APIVersions\.Has\s*\(?\s*["`]([A-Za-z0-9./-]+)["`]""")
ABOUT = re.compile(r"[^/]+/Chart\.yaml")
VALUES = re.compile(r"[^/]+/values\.yaml")
TEMPLATE = re.compile(r".*/templates/.*\.(ya?ml|tpl|txt)")
INSIDE = re.compile(r".*/charts/[^/]+\.t(ar\.)?gz")


@dataclass(frozen=True)
class ChartFile:
    """A chart's archive as it was read, and its SHA-256 in hexadecimal."""

    path: Path
    digest: str
    content: bytes


def read(path: Path) -> ChartFile:
    """The archive. Raises OSError, ValueError if it is larger than 32 MiB."""
    found = path.stat()
    return _read(path, (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino))


@functools.lru_cache(maxsize=16)
def _read(path: Path, _: tuple[int, ...]) -> ChartFile:
    with plain_file(path) as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{path.name} is larger than {LARGEST >> 20} MiB")
    return ChartFile(path, hashlib.sha256(content).hexdigest(), content)


@dataclass(frozen=True)
class Contents:
    """What was read of an archive: its version, its own values, and the APIs that its templates ask for."""

    version: str
    defaults: Values
    asked: tuple[str, ...]


def defaults_of(chart: ChartFile) -> Values:
    """The chart's own values. Raises ValueError if it is no archive of a chart."""
    return contents_of(chart).defaults


def version_of(chart: ChartFile) -> str:
    """The version that the chart has of itself. Raises ValueError if it is no archive of a chart."""
    return contents_of(chart).version


def asked_of(chart: ChartFile) -> tuple[str, ...]:
    """The APIs that its templates ask for by name: `policy/v1`, `monitoring.coreos.com/v1/ServiceMonitor`.
    Raises ValueError if it is no archive of a chart.
    """
    return contents_of(chart).asked


@functools.lru_cache(maxsize=16)
def contents_of(chart: ChartFile) -> Contents:
    """Read the whole archive once, with the charts inside: nothing else may see what is out of bounds. Raises
    ValueError if it is no archive of a chart.
    """
    found: dict[re.Pattern[str], bytes] = {}
    asked: set[str] = set()
    try:
        _walk(io.BytesIO(chart.content), Budget(BOUNDS), found, asked)
        about, defaults = (_mapping(found.get(each, b"")) for each in (ABOUT, VALUES))
    except NoArchive:
        raise ValueError(f"{chart.path.name} is not the archive of a chart, as it is no tar") from None
    except BadArchive as error:
        raise ValueError(f"{chart.path.name} is not the archive of a chart: {error}") from None
    except foreign.Unfit as error:
        raise ValueError(f"{chart.path.name}: {error}") from None
    return Contents(str(about.get("version") or ""), defaults, tuple(sorted(asked)))


def _walk(stream: BinaryIO, budget: Budget, found: dict[re.Pattern[str], bytes], asked: set[str]) -> None:
    tar = Tar(opened(stream, budget), budget)
    for member in tar:
        if member.kind != FILE:
            continue
        if INSIDE.fullmatch(member.name):
            inner = io.BytesIO(tar.content(member, LARGEST))
            _walk(inner, budget.within(), {}, asked)
        elif TEMPLATE.fullmatch(member.name) and member.size <= LARGEST_TEMPLATE:
            asked |= {each.decode() for each in ASKED.findall(tar.content(member, LARGEST_TEMPLATE))}
        for each in (ABOUT, VALUES):
            if each.fullmatch(member.name):
                found.setdefault(each, tar.content(member, LARGEST_TEMPLATE))


def _mapping(text: bytes) -> Values:
    found = foreign.documents(text, LARGEST_TEMPLATE)
    return found[0] if found and isinstance(found[0], dict) else {}
