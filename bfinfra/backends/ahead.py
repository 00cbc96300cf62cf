"""What is begun before it is needed, while other work goes on: waiting for a server costs nothing then."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """`do`, begun early by `begin`: who takes first gets what came of it, its error included. Where nothing was begun, `take` does it."""

    def __init__(self, do: Callable[[], T], name: str) -> None:
        self._do = do
        self._name = name
        self._begun: list[Future[T]] = []

    def begin(self) -> None:
        """Begin now, in a thread of its own."""
        thread = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        self._begun.append(thread.submit(self._do))
        thread.shutdown(wait=False)

    def take(self) -> T:
        """What came of it; a second `take` does it anew. Raises what `do` raises."""
        if not self._begun:
            return self._do()
        try:
            return self._begun[0].result()
        finally:
            if self._begun[0].done():  # else who waited was interrupted
                self._begun.clear()

    def left(self) -> T | None:
        """What was begun and nobody took, once it is done; None where it failed, too."""
        made = self._begun.pop() if self._begun else None
        return None if made is None or made.exception() else made.result()
