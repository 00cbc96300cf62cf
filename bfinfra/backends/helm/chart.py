"""A chart's archive: its digest, and what its templates ask of a cluster."""

from __future__ import annotations

import functools
import hashlib
import io
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bfinfra.model import foreign
from bfinfra.model.records import dataclass
from bfinfra.model.sources import plain_file

LARGEST = 32 << 20  # bytes of an archive
LARGEST_TEMPLATE = 4 << 20  # bytes
ASKED = re.compile(rb"""APIVersions\.Has\s*\(?\s*["`]([A-Za-z0-9./-]+)["`]""")
ABOUT = re.compile(r"[^/]+/Chart\.yaml")
VALUES = re.compile(r"[^/]+/values\.yaml")
TEMPLATE = re.compile(r".*/templates/.*\.(ya?ml|tpl|txt)")


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
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    return ChartFile(path, hashlib.sha256(content).hexdigest(), content)


@functools.lru_cache(maxsize=16)
def defaults_of(chart: ChartFile) -> Mapping[str, Any]:
    """The chart's own values. Raises ValueError if it is no archive of a chart."""
    return _mapping(chart, VALUES)


def version_of(chart: ChartFile) -> str:
    """The version that the chart has of itself. Raises ValueError if it is no archive of a chart."""
    return str(_mapping(chart, ABOUT).get("version") or "")


def _mapping(chart: ChartFile, file: re.Pattern[str]) -> Mapping[str, Any]:
    try:
        with tarfile.open(fileobj=io.BytesIO(chart.content)) as archive:
            member = next((each for each in archive if file.fullmatch(each.name)), None)
            stream = archive.extractfile(member) if member and member.isfile() else None
            text = stream.read(LARGEST_TEMPLATE) if stream else b""
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ValueError(f"it is not the archive of a chart ({type(error).__name__})") from None
    found = foreign.documents(text, LARGEST_TEMPLATE)
    return found[0] if found and isinstance(found[0], dict) else {}


@functools.lru_cache(maxsize=16)
def asked_of(chart: ChartFile) -> tuple[str, ...]:
    """The APIs that its templates ask for by name: `policy/v1`, `monitoring.coreos.com/v1/ServiceMonitor`.
    Raises ValueError if it is no archive of a chart.
    """
    found: set[str] = set()
    try:
        with tarfile.open(fileobj=io.BytesIO(chart.content)) as archive:
            for member in archive:
                if member.isfile() and member.size <= LARGEST_TEMPLATE and TEMPLATE.fullmatch(member.name):
                    stream = archive.extractfile(member)
                    found |= {each.decode() for each in ASKED.findall(stream.read() if stream else b"")}
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ValueError(f"it is not the archive of a chart ({type(error).__name__})") from None
    return tuple(sorted(found))
