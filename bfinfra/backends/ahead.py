"""What is begun before it is needed, while other work goes on: waiting for a server costs nothing then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """`do`, begun early by `begin`: who takes first gets what came of it, its error included. Where nothing
    was begun, `take` does it.
    """

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


class Shared(Generic[T]):
    """What several want to know as a survey begins, done once: who begins joins what another began, and takes
    it once. Who begins again begins anew.
    """

    def __init__(self, do: Callable[[], T], name: str) -> None:
        self._do = do
        self._name = name
        self._latest: Future[T] | None = None
        self._begun: dict[str, Future[T]] = {}
        self._joined: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, who: str) -> None:
        """Begin, or join what was begun, under way or done; who joined it before begins anew."""
        with self._lock:
            begun = self._latest
            if begun is None or who in self._joined:
                thread = ThreadPoolExecutor(1, thread_name_prefix=self._name)
                self._latest = begun = thread.submit(self._do)
                thread.shutdown(wait=False)
                self._joined.clear()
            self._joined.add(who)
            self._begun[who] = begun

    def take(self, who: str) -> T:
        """What came of it; done anew where `who` has begun nothing, or has taken it before. Raises what `do`
        raises.
        """
        with self._lock:
            begun = self._begun.pop(who, None)
        return self._do() if begun is None else begun.result()
