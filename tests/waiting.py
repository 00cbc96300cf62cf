"""Waiting for something, by looking."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(test: Callable[[], T], seconds: float = 60, *, pause: float = 0.01, why: str = "") -> T:
    """What `test` answers once it is true; fails where that takes too long. `pause`: seconds between two
    looks; `why`: what it then did not do.
    """
    end = time.monotonic() + seconds
    while not (found := test()):
        assert time.monotonic() < end, why or f"still {found!r} after {seconds} s"
        time.sleep(pause)
    return found
