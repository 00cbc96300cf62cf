"""Handles standard streams that are closed, or that were never open."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO


@contextlib.contextmanager
def unread() -> Iterator[None]:
    """A context in which a closed output is no error: the exit code is that of the work."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        hush()


def hush() -> None:
    """Discard what is still buffered, so that the interpreter's last flush raises nothing."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def closed(flags: int) -> TextIO:
    """A replacement for a closed standard stream: empty to read; what is written is lost."""
    return os.fdopen(os.open(os.devnull, flags), "r" if flags == os.O_RDONLY else "w")


class Unheard(io.TextIOWrapper):
    """A closed standard output. The next flush after a write raises BrokenPipeError, once."""

    def __init__(self) -> None:
        super().__init__(os.fdopen(os.open(os.devnull, os.O_WRONLY), "wb"), encoding="utf-8")
        self._lost = False

    def write(self, text: str) -> int:
        """Discard the text."""
        self._lost = self._lost or bool(text)
        return super().write(text)

    def flush(self) -> None:
        """Raises BrokenPipeError if text was lost since the last flush."""
        super().flush()
        lost, self._lost = self._lost, False
        if lost:
            raise BrokenPipeError(errno.EBADF, "standard output is closed")
