"""What a run has read: bulk reads, by type and property paths, and which objects are a resource's. Nothing
else remembers what servers said.
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
    """Which objects are a resource's, as the run last saw, made or deleted them: a look at few resources asks
    for these alone. Each resource is looked at and changed by one thread at a time.
    """

    def __init__(self) -> None:
        self._of: dict[Hashable, dict[Id, Version]] = {}
        self._answers: dict[Id, Answer] = {}
        self.own: frozenset[Id] = frozenset()
        """Objects that this run made."""
        self.gone: frozenset[Id] = frozenset()
        """Objects that are there no more, where ids are never given again."""

        self.beside: set[Id] = set()
        """Objects that bear a resource's mark beside the one that is meant by it."""

    def of(self, owners: Iterable[Hashable]) -> frozenset[Id] | None:
        """The ids of these resources' objects; None where they must be looked for."""
        known = [self._of.get(owner) for owner in owners]
        return None if None in known else frozenset().union(*(ids for ids in known if ids))

    def version(self, owner: Hashable, of: Id) -> Version:
        """What was noted of an object; empty where it wasn't seen."""
        return self._of.get(owner, {}).get(of, NONE)

    def saw(self, owner: Hashable, objects: Iterable[Id] | Mapping[Id, Version]) -> None:
        """These objects are the resource's, and no others; a mapping tells their versions."""
        self._of[owner] = dict(objects) if isinstance(objects, Mapping) else dict.fromkeys(objects, NONE)

    def forget(self, owner: Hashable) -> None:
        """What a resource's objects are may change now, and nobody may hear of it."""
        self._of.pop(owner, None)

    def made(self, owner: Hashable, of: Id) -> None:
        """The resource's object was made just now."""
        self._of[owner] = {of: NONE}
        self.own |= {of}

    def ended(self, owner: Hashable, of: Id) -> None:
        """An object of the resource was deleted just now."""
        self._of.get(owner, {}).pop(of, None)
        self.gone |= {of}

    def missed(self, ids: Iterable[Id]) -> None:
        """These are there no more, whoever removed them."""
        self.gone |= frozenset(ids)

    def wrote(self, of: Id, answer: Answer) -> None:
        """What a write answered: as good as a look."""
        self._answers[of] = answer

    def answer(self, of: Id) -> tuple[Answer, ...]:
        """What a write answered since the last look, once; empty where there was none."""
        return (self._answers.pop(of),) if of in self._answers else ()


class SurveyCache:
    """One for a run. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[Reading[object], Future[object]] = {}
        self._readers: dict[Reading[object], set[str]] = {}
        self._waiting: dict[tuple[str, Reading[object]], Future[object]] = {}
        self._last: dict[Reading[object], object] = {}
        self._shared: dict[Hashable, object] = {}
        self._over = False
        self._turns: dict[Hashable, threading.Lock] = {}
        self._known: dict[str, KnownObjects[Hashable, object]] = {}

    def objects(self, kind: str) -> KnownObjects[Id, Answer]:
        """Which objects are the resources' of a kind."""
        with self._lock:
            known = self._known.setdefault(kind, KnownObjects())
        return cast("KnownObjects[Id, Answer]", known)

    def prefetch(self, reading: Reading[T], reader: str, ask: Callable[[], T]) -> None:
        """Ask now, in the background. Another kind's equal reading of this survey is joined; the same reader
        never gets one twice.
        """
        with self._lock:
            if reading not in self._started or reader in self._readers[reading]:
                self._started[reading] = start(ask, reading.type)
                self._readers[reading] = set()
            self._readers[reading].add(reader)
            self._waiting[reader, reading] = self._started[reading]

    def read(self, reading: Reading[T], reader: str, ask: Callable[[], T]) -> T:
        """What was prefetched for this reader, once; else, and whenever it reads again, it asks. Raises what
        `ask` raises.
        """
        with self._lock:
            waiting = self._waiting.pop((reader, reading), None)
        found = ask() if waiting is None else cast("T", waiting.result())
        self._last[reading] = found
        return found

    def last(self, reading: Reading[T], default: T) -> T:
        """What was read last, which may have changed since."""
        return cast("T", self._last.get(reading, default))

    def shared(self, what: Hashable, ask: Callable[[], T]) -> T:
        """What `ask` says, asked once in a survey, whichever kinds want it; after it, each time. Raises what
        `ask` raises; who comes after that asks again.
        """
        if self._over:
            return ask()
        with self._lock:
            turn = self._turns.setdefault(what, threading.Lock())
        with turn:
            if what not in self._shared:
                self._shared[what] = ask()
            return cast("T", self._shared[what])

    def end_survey(self) -> None:
        """All kinds have answered: what was prefetched and nobody read is old from now on."""
        with self._lock:
            self._started.clear()
            self._readers.clear()
            self._waiting.clear()
            self._shared.clear()
            self._over = True
