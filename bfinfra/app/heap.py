"""Memory that a survey took, given back to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Let the C library return what nobody uses. glibc keeps it: without this a watch of 10 servers had
    83 MiB, and 64 MiB with it. Other C libraries have no such call.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
