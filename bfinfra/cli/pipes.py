"""When nobody reads the output, or it was never open."""

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
    """What is printed within may stay unread: what was done counts, and its exit code is told."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        hush()


def hush() -> None:
    """What is still buffered goes nowhere, and the interpreter's last flush does not complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def closed(flags: int) -> TextIO:
    """In the place of a standard stream that was closed: empty to read, and what is written goes nowhere."""
    return os.fdopen(os.open(os.devnull, flags), "r" if flags == os.O_RDONLY else "w")


class Unheard(io.TextIOWrapper):
    """A closed standard output: that something was written is an error, told once, by the flush after it."""

    def __init__(self) -> None:
        super().__init__(os.fdopen(os.open(os.devnull, os.O_WRONLY), "wb"), encoding="utf-8")
        self._lost = False

    def write(self, text: str) -> int:
        """Lost."""
        self._lost = self._lost or bool(text)
        return super().write(text)

    def flush(self) -> None:
        """BrokenPipeError where anything was lost since the last time."""
        super().flush()
        lost, self._lost = self._lost, False
        if lost:
            raise BrokenPipeError(errno.EBADF, "standard output is closed")
