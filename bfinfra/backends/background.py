"""Starts work before its result is needed, so that waiting for a server costs nothing while other work goes
on.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def start(do: Callable[[], T], name: str) -> Future[T]:
    """The future result of `do`, which runs in its own thread."""
    thread = ThreadPoolExecutor(1, thread_name_prefix=name)
    started = thread.submit(do)
    thread.shutdown(wait=False)
    return started
