"""The source of an OVA's bytes: a local file, which is checked for changes at each read. Remote ones are in
`remote`.
"""

from __future__ import annotations

import io
import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from typing_extensions import Buffer

AGAIN = "download it again, and compare its SHA-256 with the one on the download page"
BUFFER = 1 << 20  # bytes


def refusal(path: PurePath, what: str, why: str = "", next: str = AGAIN) -> Refusal:
    """A refusal of an OVA; names the file."""
    return Refusal(f"{path.name}: {what}", field="ova", why=why, next=next)


class Source(Protocol):
    """A whole OVA."""

    @property
    def name(self) -> PurePath:
        """The file's name, for messages."""

    @property
    def where(self) -> str:
        """Its path or address, for people."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def state(self) -> object:
        """A value that changes when the bytes do."""

    @property
    def far(self) -> bool:
        """True if it is remote, so that later answers may differ."""

    def part(self, offset: int, size: int) -> BinaryIO:
        """A stream of these bytes, for one thread. Raises Refusal if they have changed."""


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A file on this machine. `state`: its last modification, ns since the epoch."""

    name: Path
    size: int
    state: int
    far: bool = False

    @property
    def where(self) -> str:
        """Its path."""
        return str(self.name)

    @classmethod
    def of(cls, path: Path) -> LocalSource:
        """The file as it is now. Raises OSError."""
        info = path.stat()
        return cls(path, info.st_size, info.st_mtime_ns)

    def part(self, offset: int, size: int) -> BinaryIO:
        """A stream of a part. Raises Refusal if the file has changed."""
        try:
            stream = io.FileIO(self.name)
        except OSError as error:
            raise refusal(self.name, "it can't be read any more", error.strerror or "") from None
        now = os.fstat(stream.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.size, self.state):
            stream.close()
            raise refusal(self.name, "it was changed while bfinfra worked with it", next="run again")
        stream.seek(offset)
        return io.BufferedReader(Window(stream, size), BUFFER)


class Window(io.RawIOBase):
    """The next `size` bytes of a stream, which is closed with it."""

    def __init__(self, stream: io.FileIO, size: int) -> None:
        super().__init__()
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """As in the standard library."""
        view = memoryview(buffer)[: self._left]
        count = self._stream.readinto(view) or 0
        self._left -= count
        return count

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()
        super().close()


class Checked(io.RawIOBase):
    """A stream of a remote part that was read before: it ends with an error if its bytes have another
    digest.
    """

    def __init__(self, name: PurePath, stream: BinaryIO, digest: Any, wanted: str) -> None:
        super().__init__()
        self._name, self._stream, self._digest, self._wanted = name, stream, digest, wanted

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """As in the standard library. Raises Refusal at the end."""
        view = memoryview(buffer)
        block = self._stream.read(len(view))
        self._digest.update(block)
        if not block and self._digest.hexdigest() != self._wanted:
            raise refusal(
                self._name,
                "its server answers other bytes than before",
                next="run again; if it happens again, download it and give the file",
            )
        view[: len(block)] = block
        return len(block)

    def close(self) -> None:
        """Closes its source."""
        self._stream.close()
        super().close()
