"""Reads an OVA's headers, descriptor and manifest; never its disks."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.archives.tar import Member
from bfinfra.backends.ova import archive, manifest, vmdk, xml
from bfinfra.backends.ova.contents import Disk, Ova
from bfinfra.backends.ova.descriptor import describe
from bfinfra.backends.ova.source import LocalSource, Source, refusal
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bfinfra.backends.ova.signature import Signature

LARGEST = {".ovf": 4 << 20, ".mf": 1 << 20, ".cert": 1 << 20}  # bytes that are read of each
STEP = 1 << 16  # bytes of each request to a remote source


def read(path: Path) -> Ova:
    """The contents of an OVA. Reads a few megabytes at most. Raises Refusal with what is wrong and what to
    do.
    """
    try:
        with path.open("rb") as stream:
            return _read(LocalSource.of(path), stream)
    except FileNotFoundError:
        there = (
            [p.name for p in path.parent.iterdir() if p.suffix.lower() == ".ova"]
            if path.parent.is_dir()
            else []
        )
        raise refusal(
            path, f"there is no {path}", next=nearest(path.name, there) or "download it, or correct the path"
        ) from None
    except OSError as error:
        raise refusal(
            path, "it can't be read", error.strerror or "", "give this user permission to read it"
        ) from None


def read_from(source: Source) -> Ova:
    """The same for a source of any sort. Raises Refusal, RemoteError."""
    return _read(source, io.BufferedReader(_Steps(source), STEP))


def _read(source: Source, stream: BinaryIO) -> Ova:
    path = source.name
    members = archive.members(path, stream, source.size)
    descriptors = [member for member in members.values() if member.name.lower().endswith(".ovf")]
    if len(descriptors) != 1:
        raise refusal(
            path,
            f"it holds {len(descriptors) or 'no'} OVF descriptors"
            if descriptors
            else "it holds no OVF descriptor",
            next="make sure that it is an OVA",
        )
    if next(iter(members)) != descriptors[0].name:
        raise refusal(
            path,
            "its OVF descriptor is not its first file",
            "OVF requires that it comes first",
            "repack it, for instance with ovftool",
        )
    root, text = xml.parse(path, _content(source, stream, descriptors[0], ".ovf"))
    found = describe(path, root, members)
    for disk in found.disks:
        _streamed(source, disk, members)
    digests, signed = _vouched(source, stream, descriptors[0].name[:-4], members)
    return Ova(
        source=source,
        descriptor=text,
        product=found.product,
        properties=found.properties,
        networks=found.networks,
        disks=found.disks,
        hardware=found.hardware,
        options=found.options,
        eula=found.eula,
        files=found.files,
        manifest=digests,
        members=members,
        signature=signed,
    )


def _streamed(source: Source, disk: Disk, members: Mapping[str, Member]) -> None:
    """Raises Refusal if a disk's file is no VMDK that can be uploaded."""
    if not disk.href:
        return
    size = min(vmdk.HEADER, disk.size)
    with source.part(members[disk.href].offset, size) as part:
        what = vmdk.odd(part.read(size))
    if what:
        raise refusal(
            source.name,
            f"{disk.href} is {what}",
            "vSphere takes stream-optimised VMDKs only",
            "convert it: qemu-img convert -O vmdk -o subformat=streamOptimized",
        )


def _vouched(
    source: Source, stream: BinaryIO, stem: str, members: Mapping[str, Member]
) -> tuple[dict[str, tuple[str, str]], Signature | None]:
    """The manifest and its signature."""
    path, listed, signed = source.name, members.get(f"{stem}.mf"), members.get(f"{stem}.cert")
    for ending, wanted in ((".mf", listed), (".cert", signed)):
        if wanted is None and any(name.lower().endswith(ending) for name in members):
            what = "manifest" if ending == ".mf" else "certificate"
            raise refusal(
                path, f"its {what} is not called {shown(stem)}{ending}", "so vSphere would ignore it"
            )
    if listed is None:
        if signed is not None:
            raise refusal(path, "it holds a certificate and no manifest", "so nothing is signed")
        return {}, None
    names = [name for name in members if name not in (f"{stem}.mf", f"{stem}.cert")]
    content = _content(source, stream, listed, ".mf")
    digests = manifest.parse(path, content, names, own=(f"{stem}.mf", f"{stem}.cert"))
    if signed is None:
        return digests, None
    from bfinfra.backends.ova import signature  # noqa: PLC0415 - most OVAs bear none, and cryptography takes its time

    return digests, signature.check(path, _content(source, stream, signed, ".cert"), listed.name, content)


def _content(source: Source, stream: BinaryIO, member: Member, ending: str) -> bytes:
    if member.size > LARGEST[ending]:
        raise refusal(
            source.name,
            f"{member.name} has {member.size} bytes",
            f"more than {LARGEST[ending] >> 20} MiB are not read",
            "make sure that it is an OVA",
        )
    stream.seek(member.offset)
    return stream.read(member.size)


class _Steps(io.RawIOBase):
    """A seekable stream of a source, with one request for each buffer."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source, self._at = source, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        size = min(len(view), self._source.size - self._at)
        if size <= 0:
            return 0
        with self._source.part(self._at, size) as part:
            view[:size] = part.read(size)
        self._at += size
        return size
