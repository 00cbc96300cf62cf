"""Debian packages with nothing but a name in them: they stand where a site names a client package."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from bfinfra.sandbox.makers.ova import member

TIME = 1_625_209_648


def make_deb(path: Path, *, package: str, version: str, architecture: str = "amd64") -> None:
    """Write a .deb that dpkg reads; the same arguments give the same bytes."""
    control = (
        f"Package: {package}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: sandbox <root@localhost>\n"
        "Section: misc\nPriority: optional\nDescription: stand-in for a Bitfusion client\n"
    )
    note = f"{package} {version}: a stand-in, it runs nothing\n"
    parts = (
        ("debian-binary", b"2.0\n"), ("control.tar.gz", _tar({"./control": control})),
        ("data.tar.gz", _tar({f"./usr/share/doc/{package}/README": note})),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"!<arch>\n" + b"".join(_entry(name, data) for name, data in parts))


def _entry(name: str, data: bytes) -> bytes:
    return f"{name:<16}{TIME:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)


def _tar(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in files.items():
            tar.addfile(member(name, len(text.encode())), io.BytesIO(text.encode()))
    return out.getvalue()
