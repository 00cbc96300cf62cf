"""Unpacks gzip, bzip2, xz and HTTP's encodings as a stream: never more than a piece at a time, whatever the
packed bytes claim.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO, Protocol

from bfinfra.backends.archives.bounds import BadArchive, Budget, shown

if TYPE_CHECKING:
    from typing_extensions import Buffer

PIECE = 1 << 18  # unpacked bytes that are held at once
BLOCK = 1 << 16  # packed bytes that are read at once
STREAMS = 1_000  # packed streams, one after the other: each begins anew
MEMORY = 64 << 20  # bytes that xz may take for its window
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
BROKEN = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)


class _Stream(Protocol):
    """One packed stream, as the standard library unpacks it."""

    @property
    def needs_input(self) -> bool: ...

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Zlib:
    """zlib with the interface of the other two. `bits`: as zlib has them."""

    def __init__(self, bits: int) -> None:
        self._stream, self._full = zlib.decompressobj(bits), False

    def decompress(self, data: bytes, most: int, /) -> bytes:
        """At most so many bytes; what is left of `data` is kept."""
        found = self._stream.decompress(self._stream.unconsumed_tail + data, most)
        self._full = len(found) == most
        return found

    @property
    def needs_input(self) -> bool:
        return not (self._full or self._stream.unconsumed_tail)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data


MAKERS: dict[str, Callable[[], _Stream]] = {
    "gzip": lambda: _Zlib(zlib.MAX_WBITS | 16),
    "deflate": lambda: _Zlib(zlib.MAX_WBITS),
    "raw deflate": lambda: _Zlib(-zlib.MAX_WBITS),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=MEMORY),
}


def unpacked(blocks: Iterable[bytes], form: str) -> Iterator[bytes]:
    """The content of packed `blocks` in pieces of at most PIECE bytes. `form`: gzip, deflate, raw deflate,
    bzip2 or xz; several streams may follow each other. Raises BadArchive for what is no such stream, or ends
    in something else.
    """
    stream, streams = MAKERS[form](), 1
    for block in blocks:
        left = block
        while left or not (stream.needs_input or stream.eof):
            if stream.eof:
                if not left.strip(b"\0"):  # tar pads what it writes to tapes
                    break
                streams += 1
                if streams > STREAMS:
                    raise BadArchive(f"it consists of more than {STREAMS:,} packed streams")
                stream = MAKERS[form]()
            try:
                piece = stream.decompress(left, PIECE)
            except BROKEN as error:
                raise BadArchive(f"it is damaged, or no {form}", shown(str(error))) from None
            left = stream.unused_data if stream.eof else b""
            if piece:
                yield piece
    if not stream.eof:
        raise BadArchive("it is cut short", f"its {form} stream has no end")


def opened(stream: BinaryIO, budget: Budget) -> BinaryIO:
    """The unpacked content, as a stream to be read once; a file that isn't packed as it is. What is read of
    both counts in `budget`. Reading raises BadArchive.
    """
    head = stream.read(max(map(len, MAGIC)))
    form = next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")
    blocks = _blocks(head, stream, budget)
    return io.BufferedReader(_Counted(unpacked(blocks, form) if form else blocks, budget), PIECE)


def _blocks(head: bytes, stream: BinaryIO, budget: Budget) -> Iterator[bytes]:
    block = head
    while block:
        budget.took(len(block))
        yield block
        block = stream.read(BLOCK)


class _Counted(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes], budget: Budget) -> None:
        super().__init__()
        self._pieces, self._budget, self._left = pieces, budget, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
            self._budget.gave(len(self._left))
        count = min(len(view), len(self._left))
        view[:count], self._left = self._left[:count], self._left[count:]
        return count
