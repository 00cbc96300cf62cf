"""The contents of an OVA, as plain frozen data."""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Mapping
from dataclasses import field
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO

from bfinfra.backends.archives.tar import Member
from bfinfra.backends.ova.source import BUFFER, Checked, Source
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.ova.signature import Signature


@dataclass(frozen=True, slots=True)
class Property:
    """A vApp property. `key` as vSphere names it: `[class.]id[.instance]`; `required`: the machine needs a
    value to start.

    `default`: "" if the descriptor has none. `qualifiers`: as written, such as `MinLen(1) MaxLen(64)`.
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
    """The product's names in the descriptor."""

    name: str = ""
    vendor: str = ""
    version: str = ""
    full_version: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """A network of the appliance, to be mapped."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Disk:
    """`href`: its file's name in the archive, "" for an empty disk; `size`: bytes of that file; `capacity`:
    bytes that the guest sees; `populated`: bytes of them that are written, 0 where it isn't said.
    """

    id: str
    href: str
    size: int
    capacity: int
    format: str = ""
    populated: int = 0


@dataclass(frozen=True, slots=True)
class Option:
    """A deployment option."""

    id: str
    label: str = ""
    default: bool = False


@dataclass(frozen=True, slots=True)
class Hardware:
    """The hardware in the descriptor. `memory` in bytes; `version` such as vmx-17; `adapters`: the network of
    each, in order.
    """

    cpus: int = 0
    memory: int = 0
    version: str = ""
    firmware: str = "bios"
    adapters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ova:
    """An OVA's contents. `manifest`: file name → (algorithm, hexadecimal digest), {} if there is none.

    `disks`: those that the machine has, in its order. `files`: name → bytes, in the descriptor's order.
    `signature`: the manifest's valid signature, or None.
    """

    source: Source
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
    signature: Signature | None = None

    @functools.cached_property
    def declared(self) -> Mapping[str, Property]:
        """The properties by key."""
        return {each.key: each for each in self.properties}

    @functools.cached_property
    def configurable(self) -> tuple[tuple[str, str], ...]:
        """Keys and labels of the properties that may be set."""
        return tuple((each.key, each.label) for each in self.properties if each.user_configurable)

    @property
    def path(self) -> PurePath:
        """The file's name, for messages."""
        return self.source.name

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.source.size

    @property
    def least(self) -> int:
        """Bytes that its disks take on a datastore at least: what is populated, where the descriptor says so;
        else their files, which are compressed.
        """
        disks = {disk.href: disk.populated for disk in self.disks}
        return sum(max(size, disks.get(name, 0)) for name, size in self.files.items())

    def open(self, href: str) -> BinaryIO:
        """A stream of one file, for one thread. Raises Refusal if the OVA was changed since it was read."""
        member = self.members[href]
        stream = self.source.part(member.offset, member.size)
        algorithm, wanted = self.manifest.get(href, ("", ""))
        if not (self.source.far and algorithm):
            return stream
        return io.BufferedReader(
            Checked(self.path, stream, hashlib.new(algorithm.lower(), usedforsecurity=False), wanted), BUFFER
        )
