"""The answers that a run has read: bulk reads by type and property paths, and the objects of each resource.
No other module keeps servers' answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from typing import Generic, TypeVar, cast

from bfinfra.backends.background import start
from bfinfra.model.reading import Reading

T = TypeVar("T")
Id = TypeVar("Id", bound=Hashable)
Answer = TypeVar("Answer")
Version = Mapping[str, str]
NONE: Version = {}


class KnownObjects(Generic[Id, Answer]):
    """The objects of each resource, as the run last read, made or deleted them, so that only these are read
    again. Each resource is read and changed by one thread at a time.
    """

    def __init__(self) -> None:
        self._of: dict[Hashable, dict[Id, Version]] = {}
        self._answers: dict[Id, Answer] = {}
        self.own: frozenset[Id] = frozenset()
        """Objects that this run made."""
        self.gone: frozenset[Id] = frozenset()
        """Objects that were deleted. Their ids are never used again."""

        self.beside: set[Id] = set()
        """Objects with a resource's mark that are not the resource's own object."""

    def of(self, owners: Iterable[Hashable]) -> frozenset[Id] | None:
        """The ids of these resources' objects; None if they must be searched."""
        known = [self._of.get(owner) for owner in owners]
        return None if None in known else frozenset().union(*(ids for ids in known if ids))

    def noted(self, owners: Iterable[Hashable]) -> list[Id]:
        """The ids of these resources' objects, as far as they are known."""
        return [of for owner in owners if owner in self._of for of in self._of[owner]]

    def version(self, owner: Hashable, of: Id) -> Version:
        """The noted version of an object; "" if it wasn't read."""
        return self._of.get(owner, {}).get(of, NONE)

    def saw(self, owner: Hashable, objects: Iterable[Id] | Mapping[Id, Version]) -> None:
        """These are exactly the resource's objects; a mapping also has their versions."""
        self._of[owner] = dict(objects) if isinstance(objects, Mapping) else dict.fromkeys(objects, NONE)

    def forget(self, owner: Hashable) -> None:
        """A resource's objects may change now, without notice."""
        self._of.pop(owner, None)

    def made(self, owner: Hashable, of: Id) -> None:
        """The resource's object was just made."""
        self._of[owner] = {of: NONE}
        self.own |= {of}

    def ended(self, owner: Hashable, of: Id) -> None:
        """An object of the resource was just deleted."""
        self._of.get(owner, {}).pop(of, None)
        self.gone |= {of}

    def missed(self, ids: Iterable[Id]) -> None:
        """These objects no longer exist."""
        self.gone |= frozenset(ids)

    def wrote(self, of: Id, answer: Answer) -> None:
        """Keep the answer to a write, which is as good as a read."""
        self._answers[of] = answer

    def answer(self, of: Id) -> tuple[Answer, ...]:
        """The answer to a write since the last read, once; else ""."""
        return (self._answers.pop(of),) if of in self._answers else ()


class SurveyCache:
    """The cache of one run. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[Reading[object], Future[object]] = {}
        self._readers: dict[Reading[object], set[str]] = {}
        self._waiting: dict[tuple[str, Reading[object]], Future[object]] = {}
        self._shared: dict[Hashable, object] = {}
        self._over = False
        self._turns: dict[Hashable, threading.Lock] = {}
        self._known: dict[Hashable, KnownObjects[Hashable, object]] = {}

    def objects(self, whose: Hashable) -> KnownObjects[Id, Answer]:
        """The known objects of a kind, or of a kind in one place."""
        with self._lock:
            known = self._known.setdefault(whose, KnownObjects())
        return cast("KnownObjects[Id, Answer]", known)

    def prefetch(self, reading: Reading[T], reader: str, ask: Callable[[], T]) -> None:
        """Read now, in the background. Equal readings of other kinds in this survey share the request; a
        reader never gets the same result twice.
        """
        with self._lock:
            if reading not in self._started or reader in self._readers[reading]:
                self._started[reading] = start(ask, reading.type)
                self._readers[reading] = set()
            self._readers[reading].add(reader)
            self._waiting[reader, reading] = self._started[reading]

    def read(self, reading: Reading[T], reader: str, ask: Callable[[], T]) -> T:
        """The prefetched result, once; otherwise, and whenever it reads again, it calls `ask`. Raises what
        `ask` raises.
        """
        with self._lock:
            waiting = self._waiting.pop((reader, reading), None)
        return ask() if waiting is None else cast("T", waiting.result())

    def shared(self, what: Hashable, ask: Callable[[], T]) -> T:
        """The result of `ask`, called once in a survey for all kinds; after it, each time. Raises what `ask`
        raises; the next caller calls it again.
        """
        if self._over:
            return ask()
        with self._lock:
            lock = self._turns.setdefault(what, threading.Lock())
        with lock:
            if what not in self._shared:
                self._shared[what] = ask()
            return cast("T", self._shared[what])

    def end_survey(self) -> None:
        """The survey is over: prefetched results that were not read are outdated now."""
        with self._lock:
            self._started.clear()
            self._readers.clear()
            self._waiting.clear()
            self._shared.clear()
            self._over = True
