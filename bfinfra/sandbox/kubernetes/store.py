"""The objects of a cluster, their common revision counter, and the history that watches read."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from bfinfra.sandbox.kubernetes.errors import expired
from bfinfra.sandbox.kubernetes.objects import Object, name_of, namespace_of

Key = tuple[str, str]  # group and plural
Home = tuple[str, str]  # namespace ("" for the whole cluster) and name
HISTORY = 4000


@dataclass(frozen=True)
class Change:
    """One event. `before` is the object before it, `after` the object now (for DELETED: its last state, with
    a new revision).
    """

    revision: int
    kind: Literal["ADDED", "MODIFIED", "DELETED"]
    key: Key
    after: Object
    before: Object | None


class Store:
    """Objects by resource, namespace and name. Stored objects are never changed in place: writers put new
    ones.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.revision = 1
        self.closed = False
        self.listeners: list[Callable[[Change], None]] = []
        self.dumped: dict[int, Any] = {}
        """The last dump of each object, by the object's id()."""
        self._objects: dict[Key, dict[Home, Object]] = {}
        self._history: deque[Change] = deque(maxlen=HISTORY)
        self._forgotten = 0  # the revision of the last event that the history lost

    def get(self, key: Key, namespace: str, name: str) -> Object | None:
        """One object, or None."""
        with self.lock:
            return self._objects.get(key, {}).get((namespace, name))

    def all(self, key: Key, namespace: str = "") -> list[Object]:
        """All objects of a resource, or those of one namespace, sorted by namespace and name."""
        with self.lock:
            return [
                thing
                for home, thing in sorted(self._objects.get(key, {}).items())
                if not namespace or home[0] == namespace
            ]

    def held(self) -> list[Key]:
        """The resources that have objects, sorted."""
        with self.lock:
            return sorted(key for key, objects in self._objects.items() if objects)

    def put(self, key: Key, thing: Object) -> Object:
        """Store a new state of an object under the next revision, and return it."""
        with self.lock:
            home = (namespace_of(thing), name_of(thing))
            before = self._objects.get(key, {}).get(home)
            stored = self._numbered(thing)
            self._objects.setdefault(key, {})[home] = stored
            self._tell(Change(self.revision, "MODIFIED" if before else "ADDED", key, stored, before))
            return stored

    def remove(self, key: Key, namespace: str, name: str) -> Object:
        """Remove an object, and return its last state with a new revision."""
        with self.lock:
            before = self._objects[key].pop((namespace, name))
            last = self._numbered(before)
            self._tell(Change(self.revision, "DELETED", key, last, before))
            return last

    def since(self, revision: int) -> list[Change]:
        """The events after a revision. Raises Refused (410) if the history does not reach back that
        far.
        """
        with self.lock:
            if revision < self._forgotten:
                raise expired(revision, self._forgotten)
            return list(self._backwards(revision))[::-1]

    def wait(self, revision: int, seconds: float) -> None:
        """Wait until there is an event after the revision, the time is over, or the store is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.revision > revision, seconds)

    def close(self) -> None:
        """End every watch."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def save(self) -> dict[str, Any]:
        """All objects and the revision, as JSON values."""
        with self.lock:
            return {
                "revision": self.revision,
                "objects": [[*key, thing] for key in self.held() for thing in self.all(key)],
            }

    def restore(self, data: dict[str, Any]) -> None:
        """Load what `save` returned; older watches end as too old."""
        with self.changed:
            self._objects = {}
            for group, plural, thing in data["objects"]:
                self._objects.setdefault((group, plural), {})[(namespace_of(thing), name_of(thing))] = thing
            self._history.clear()
            self.revision = self._forgotten = int(data["revision"]) + 1
            self.changed.notify_all()

    def _numbered(self, thing: Object) -> Object:
        self.revision += 1
        return {**thing, "metadata": {**thing["metadata"], "resourceVersion": str(self.revision)}}

    def _tell(self, change: Change) -> None:
        if len(self._history) == HISTORY:
            self._forgotten = self._history[0].revision
        self._history.append(change)
        self.changed.notify_all()
        for listener in self.listeners:
            listener(change)

    def _backwards(self, revision: int) -> Iterator[Change]:
        for change in reversed(self._history):
            if change.revision <= revision:
                return
            yield change
