"""The controllers' engine: what changed is looked at soon, in the clock's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.errors import Refused
from bfinfra.sandbox.kubernetes.objects import Object, name_of, namespace_of
from bfinfra.sandbox.kubernetes.store import Change, Key

EVENTS: Key = ("", "events")
Item = tuple[Key, str, str]  # resource, namespace, name


class Controller(Protocol):
    """`look` gets an object's present state, or None if it no longer exists. It may be called at any time and
    any number of times.
    """

    @property
    def kinds(self) -> tuple[Key, ...]:
        """The resources whose objects it looks at."""

    def look(self, item: Item, thing: Object | None) -> None:
        """Do the next step for this object."""

    def touched(self, change: Change) -> Iterable[Item]:
        """Other objects of this controller that a change concerns."""


class Loop:
    """Runs controllers over one cluster. `durations`: seconds by what takes them."""

    def __init__(self, cluster: Cluster, durations: Mapping[str, float]) -> None:
        self.cluster, self.durations = cluster, durations
        self._controllers: list[Controller] = []
        self._due: set[tuple[int, Item]] = set()
        self._marks: set[tuple[str, ...]] = set()
        self._refused: set[Item] = set()  # owners of pods that were refused
        self._lock = threading.Lock()
        cluster.store.listeners.append(self._changed)

    def add(self, *controllers: Controller) -> None:
        """Let these run."""
        self._controllers += controllers

    def look_at_all(self) -> None:
        """Look at every object (after a start)."""
        store = self.cluster.store
        for key in store.held():
            for thing in store.all(key):
                self._changed(Change(store.revision, "MODIFIED", key, thing, thing))

    def look_again(self, controller: Controller) -> None:
        """Look at all objects of one controller."""
        every = [(key, thing) for key in controller.kinds for thing in self.cluster.store.all(key)]
        self.soon(controller, [(key, namespace_of(thing), name_of(thing)) for key, thing in every])

    def soon(self, controller: Controller, items: Iterable[Item]) -> None:
        """Look at these objects of one controller."""
        position = self._controllers.index(controller)
        for item in items:
            self._soon(position, item)

    def forget(self) -> None:
        """Nothing waits any more: what the clock forgot must be able to come again."""
        with self._lock:
            self._due.clear()
            self._marks.clear()
            self._refused.clear()

    def made(self, owner: Object, pod: Object) -> Object | None:
        """A controller's new pod. None where it is refused: an event at the owner contains the reason, and
        the owner is reconciled again when something changes.
        """
        try:
            return self.cluster.create(pod)
        except Refused as refused:
            self.cluster.event("FailedCreate", f"Error creating: {refused.message}", owner)
            resource = self.cluster.registry.of_kind(owner["apiVersion"], owner["kind"])
            if resource:
                self._refused.add((resource.key, namespace_of(owner), name_of(owner)))
            return None

    def once(self, mark: tuple[str, ...], what: str, then: Callable[[], None]) -> None:
        """Run `then` after the duration called `what`, unless the same mark waits already."""
        with self._lock:
            if mark in self._marks:
                return
            self._marks.add(mark)

        def run() -> None:
            with self._lock:
                self._marks.discard(mark)
            self._tried(then)

        self.cluster.clock.after(self.durations.get(what, 0.0), run)

    def _changed(self, change: Change) -> None:
        item = (change.key, namespace_of(change.after), name_of(change.after))
        for position, controller in enumerate(self._controllers):
            if change.key in controller.kinds:
                self._soon(position, item)
            for other in controller.touched(change):
                self._soon(position, other)
            if self._refused and change.key != EVENTS:
                self._again(position, controller, item)

    def _again(self, position: int, controller: Controller, changed: Item) -> None:
        for item in [each for each in self._refused if each[0] in controller.kinds and each != changed]:
            self._refused.discard(item)
            self._soon(position, item)

    def _soon(self, position: int, item: Item) -> None:
        with self._lock:
            if (position, item) in self._due:
                return
            self._due.add((position, item))
        self.cluster.clock.after(0, lambda: self._look(position, item))

    def _look(self, position: int, item: Item) -> None:
        with self._lock:
            self._due.discard((position, item))
        key, namespace, name = item
        with self.cluster.store.lock:
            if not self.cluster.store.closed:
                self._tried(
                    lambda: self._controllers[position].look(
                        item, self.cluster.store.get(key, namespace, name)
                    )
                )

    def _tried(self, what: Callable[[], None]) -> None:
        try:
            with self.cluster.store.lock:
                what()
        except Refused as refused:
            self.cluster.event("FailedReconcile", refused.message)
