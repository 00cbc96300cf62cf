"""Garbage collection: children go with their owners, before or after them, or stay as orphans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.controllers.loop import Item
from bfinfra.sandbox.kubernetes.objects import Object, name_of, namespace_of, uid_of
from bfinfra.sandbox.kubernetes.store import Change, Key

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Garbage:
    """Works on changes only: what is deleted, and what is marked for deletion with a finalizer of ours."""

    kinds: tuple[Key, ...] = ()

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._gone: dict[Item, set[str]] = {}

    def touched(self, change: Change) -> Iterable[Item]:
        """A deleted object, or one that is being deleted; and the owner that waits for a deleted one."""
        item = (change.key, namespace_of(change.after), name_of(change.after))
        if change.kind == "DELETED":
            self._gone.setdefault(item, set()).add(uid_of(change.after))
            yield item
            yield from self._waiting(change.after)
        elif change.after["metadata"].get("deletionTimestamp") and {FOREGROUND, ORPHAN} & set(
            change.after["metadata"].get("finalizers") or []
        ):
            yield item

    def look(self, item: Item, thing: Object | None) -> None:
        """Collect."""
        for uid in self._gone.pop(item, set()):
            for child in list(self._children(uid)):
                self._release(child, uid)
        if thing is None or not thing["metadata"].get("deletionTimestamp"):
            return
        finalizers = thing["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            for child in list(self._children(uid_of(thing))):
                self._disown(child, uid_of(thing))
            self._drop(thing, ORPHAN)
        elif FOREGROUND in finalizers:
            for child in self._blocking(uid_of(thing)):
                if not child["metadata"].get("deletionTimestamp"):
                    self._cluster.remove(child, "Foreground")
            if not self._blocking(uid_of(thing)):
                self._drop(thing, FOREGROUND)

    def _blocking(self, uid: str) -> list[Object]:
        """The children that an owner waits for; the others go after it."""
        return [
            child
            for child in self._children(uid)
            if any(
                each.get("uid") == uid and each.get("blockOwnerDeletion")
                for each in child["metadata"]["ownerReferences"]
            )
        ]

    def _children(self, uid: str) -> Iterator[Object]:
        for key in self._cluster.store.held():
            for thing in self._cluster.store.all(key):
                if any(each.get("uid") == uid for each in thing["metadata"].get("ownerReferences") or []):
                    yield thing

    def _release(self, child: Object, uid: str) -> None:
        others = [
            each
            for each in child["metadata"]["ownerReferences"]
            if each["uid"] != uid and self._exists(each["uid"])
        ]
        if others:
            self._disown(child, uid)
        else:
            self._cluster.remove(child)

    def _exists(self, uid: str) -> bool:
        store = self._cluster.store
        return any(uid_of(thing) == uid for key in store.held() for thing in store.all(key))

    def _disown(self, child: Object, uid: str) -> None:
        def without(live: Object) -> None:
            live["metadata"]["ownerReferences"] = [
                each for each in live["metadata"].get("ownerReferences") or [] if each["uid"] != uid
            ]

        self._cluster.change(child, without)

    def _drop(self, thing: Object, finalizer: str) -> None:
        def without(live: Object) -> None:
            live["metadata"]["finalizers"] = [
                each for each in live["metadata"].get("finalizers") or [] if each != finalizer
            ]

        self._cluster.change(thing, without)

    def _waiting(self, child: Object) -> Iterator[Item]:
        owners = {each.get("uid") for each in child["metadata"].get("ownerReferences") or []}
        for key in self._cluster.store.held() if owners else ():
            for thing in self._cluster.store.all(key):
                if uid_of(thing) in owners and FOREGROUND in (thing["metadata"].get("finalizers") or []):
                    yield (key, namespace_of(thing), name_of(thing))
