"""A request's body as a stream: by length or by chunks."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

LINE = 1024  # bytes of a chunk's header


class Malformed(Exception):
    """The body isn't framed as HTTP/1.1 requires, or ended too early."""


class Body(io.RawIOBase):
    """Reads exactly the body from the connection and nothing behind it."""

    def __init__(self, stream: io.BufferedIOBase, headers: Mapping[str, str]) -> None:
        self._stream = stream
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length", "0")
        if not length.isdigit():
            raise Malformed("Content-Length is no number")
        self._left = 0 if self._chunked else int(length)
        self._ended = not self._chunked and self._left == 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what comes next; 0 at the end. Raises Malformed if the connection ends before
        the body does.
        """
        if not self._left and not self._ended and self._chunked:
            self._next_chunk()
        if self._ended:
            return 0
        data = self._stream.read1(min(len(buffer), self._left))
        if not data:
            raise Malformed("the body ended too early")
        buffer[: len(data)] = data
        self._left -= len(data)
        if not self._left:
            self._finish()
        return len(data)

    def drain(self, limit: int) -> bool:
        """Read what is left; whether that was at most `limit` bytes."""
        total, buffer = 0, bytearray(1 << 16)
        while count := self.readinto(buffer):
            total += count
            if total > limit:
                return False
        return True

    def _next_chunk(self) -> None:
        header = self._stream.readline(LINE)
        try:
            self._left = int(header.split(b";")[0].strip(), 16)
        except ValueError:
            raise Malformed("a chunk without its size") from None
        if self._left == 0:
            while self._stream.readline(LINE).strip():  # trailers
                pass
            self._ended = True

    def _finish(self) -> None:
        if self._chunked:
            self._stream.readline(LINE)
        else:
            self._ended = True
