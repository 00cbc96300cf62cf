"""When the reader of the output is gone."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


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
