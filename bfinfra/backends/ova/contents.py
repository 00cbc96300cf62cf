"""What an OVA holds, as plain frozen data."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bfinfra.model.errors import Refusal

if TYPE_CHECKING:
    from typing_extensions import Buffer

AGAIN = "download it again, and compare its SHA-256 with the one on the download page"


def refusal(path: Path, what: str, why: str = "", next: str = AGAIN) -> Refusal:
    """A refusal of an OVA; names the file."""
    return Refusal(f"{path.name}: {what}", field="ova", why=why, next=next)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in the archive: where its bytes begin and how many they are."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Property:
    """A vApp property. `key` is what vSphere calls it: `[class.]id[.instance]`; `required`: somebody must
    give a value before the machine can start.

    `default` is "" where the descriptor gives none. `qualifiers`: as written, such as `MinLen(1) MaxLen(64)`.
    """

    key: str
    type: str = "string"
    required: bool = False
    user_configurable: bool = False
    password: bool = False
    default: str = ""
    label: str = ""
    description: str = ""
    category: str = ""
    qualifiers: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """What the descriptor calls itself."""

    name: str = ""
    vendor: str = ""
    version: str = ""
    full_version: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """A network that the appliance wants to be mapped."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk. `href`: its file, "" for an empty disk; `size`: bytes of that file; `capacity`: bytes that the guest sees."""

    id: str
    href: str
    size: int
    capacity: int
    format: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """A deployment option."""

    id: str
    label: str = ""
    default: bool = False


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the descriptor asks for. `memory` in bytes; `version` such as vmx-17; `adapters`: the network of each, in order."""

    cpus: int = 0
    memory: int = 0
    version: str = ""
    firmware: str = "bios"
    adapters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ova:
    """An OVA that was looked into. `manifest`: file name → (algorithm, hexadecimal digest), empty where there is none.

    `files`: the referenced files in the order of the descriptor, href → bytes. `signed`: it carries a certificate,
    which is not checked. `changed`: when the file was last written, ns since the epoch.
    """

    path: Path
    size: int
    changed: int
    descriptor: str = field(repr=False)
    product: Product
    properties: tuple[Property, ...] = field(repr=False)
    networks: tuple[Network, ...]
    disks: tuple[Disk, ...]
    hardware: Hardware
    options: tuple[Option, ...]
    eula: tuple[str, ...] = field(repr=False)
    files: Mapping[str, int]
    manifest: Mapping[str, tuple[str, str]] = field(repr=False)
    members: Mapping[str, Member] = field(repr=False)
    signed: bool = False

    def open(self, href: str) -> BinaryIO:
        """A stream of one file, for use from one thread. Refusal where the OVA was changed since it was read."""
        member = self.members[href]
        stream = self.opened()
        stream.seek(member.offset)
        return io.BufferedReader(Window(stream, member.size), 1 << 20)

    def opened(self) -> io.FileIO:
        """The whole file, unbuffered. Refusal where it was changed since it was read."""
        try:
            stream = io.FileIO(self.path)
        except OSError as error:
            raise refusal(self.path, "it can't be read any more", error.strerror or "") from None
        now = os.fstat(stream.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.size, self.changed):
            stream.close()
            raise refusal(self.path, "it was changed while bfinfra worked with it", next="run again")
        return stream


class Window(io.RawIOBase):
    """The next `size` bytes of a stream, which closes with it."""

    def __init__(self, stream: io.FileIO, size: int) -> None:
        super().__init__()
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """As the standard library has it."""
        view = memoryview(buffer)[: self._left]
        count = self._stream.readinto(view) or 0
        self._left -= count
        return count

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()
        super().close()
