"""Makes Debian packages with a name and, if given, programs: the client packages that a site names."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from bfinfra.sandbox.factories.ova import member

TIME = 1_625_209_648


def make_deb(  # noqa: PLR0913 - a package's own words
    path: Path,
    *,
    package: str,
    version: str,
    architecture: str = "amd64",
    programs: Mapping[str, str] = MappingProxyType({}),
    units: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a .deb that dpkg reads; the same arguments give the same bytes. `programs`: name in /usr/bin →
    its text; `units`: of systemd likewise.
    """
    control = (
        f"Package: {package}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: sandbox "
        "<root@localhost>\n"
        "Section: misc\nPriority: optional\nDescription: stand-in for a client of remote GPUs\n"
    )
    note = f"{package} {version}: a stand-in, it runs nothing\n"
    parts = (
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", _tar({"./control": control})),
        (
            "data.tar.gz",
            _tar(
                {
                    f"./usr/share/doc/{package}/README": note,
                    **{f"./usr/bin/{name}": text for name, text in programs.items()},
                    **{f"./usr/lib/systemd/system/{name}": text for name, text in units.items()},
                }
            ),
        ),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"!<arch>\n" + b"".join(_entry(name, data) for name, data in parts))


def _entry(name: str, data: bytes) -> bytes:
    return (
        f"{name:<16}{TIME:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        + data
        + b"\n" * (len(data) % 2)
    )


def _tar(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for folder in sorted({str(above) for name in files for above in PurePosixPath(name).parents}):
            info = member(f"./{folder}/" if folder != "." else "./", 0)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for name, text in files.items():
            info = member(name, len(text.encode()))
            info.mode = 0o755 if name.startswith("./usr/bin/") else info.mode
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()
