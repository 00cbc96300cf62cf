"""Looking into an OVA: headers, descriptor and manifest; never its disks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from bfinfra.backends.ova import archive, manifest, xml
from bfinfra.backends.ova.contents import Member, Ova, refusal
from bfinfra.backends.ova.descriptor import describe
from bfinfra.model.suggest import nearest

LARGEST = {".ovf": 4 << 20, ".mf": 1 << 20}  # bytes that are read of each


def read(path: Path) -> Ova:
    """What an OVA holds. Reads a few megabytes at most, whatever its size. Refusal says what is wrong and what to do."""
    try:
        with path.open("rb") as stream:
            info = os.fstat(stream.fileno())
            return _read(path, stream, info.st_size, info.st_mtime_ns)
    except FileNotFoundError:
        there = [p.name for p in path.parent.iterdir() if p.suffix.lower() == ".ova"] if path.parent.is_dir() else []
        raise refusal(path, f"there is no {path}", next=nearest(path.name, there) or "download it, or correct the path") from None
    except OSError as error:
        raise refusal(path, "it can't be read", error.strerror or "", "give bfinfra the right to read it") from None


def _read(path: Path, stream: BinaryIO, size: int, changed: int) -> Ova:
    members = archive.members(path, stream, size)
    descriptors = [member for member in members.values() if member.name.lower().endswith(".ovf")]
    if len(descriptors) != 1:
        raise refusal(path, f"it holds {len(descriptors) or 'no'} OVF descriptors" if descriptors else "it holds no OVF descriptor",
                      next="make sure that it is an OVA")
    if next(iter(members)) != descriptors[0].name:
        raise refusal(path, "its OVF descriptor is not its first file", "OVF demands that it comes first", "repack it, for instance with ovftool")
    stem = descriptors[0].name[:-4]
    root, text = xml.parse(path, _content(path, stream, descriptors[0], ".ovf"))
    found = describe(path, root, members)
    digests: Mapping[str, tuple[str, str]] = {}
    if listed := members.get(f"{stem}.mf"):
        names = [name for name in members if name not in (f"{stem}.mf", f"{stem}.cert")]
        digests = manifest.parse(path, _content(path, stream, listed, ".mf"), names)
    elif any(name.lower().endswith(".mf") for name in members):
        raise refusal(path, f"its manifest is not called {archive.shown(stem)}.mf", "so vSphere would not look at it")
    return Ova(
        path=path, size=size, changed=changed, descriptor=text, product=found.product, properties=found.properties, networks=found.networks,
        disks=found.disks, hardware=found.hardware, options=found.options, eula=found.eula, files=found.files, manifest=digests, members=members,
        signed=f"{stem}.cert" in members,
    )


def _content(path: Path, stream: BinaryIO, member: Member, ending: str) -> bytes:
    if member.size > LARGEST[ending]:
        raise refusal(path, f"{member.name} has {member.size} bytes", f"more than {LARGEST[ending] >> 20} MiB are not read", "make sure that it is an OVA")
    stream.seek(member.offset)
    return stream.read(member.size)
