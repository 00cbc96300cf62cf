"""One watcher: takes Sites of a namespace, follows them, and writes what it sees into their status. The other
replicas see by its Lease whether it lives.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from bfinfra.model.errors import BfinfraError, Conflict, Missing
from bfinfra.model.records import dataclass
from bfinfra.operator import lease as leases
from bfinfra.operator.crd import KIND
from bfinfra.operator.defects import contained
from bfinfra.operator.desired import Desired
from bfinfra.operator.lease import EVERY, Lease
from bfinfra.operator.manifest import API
from bfinfra.operator.replicas import SELECTOR, Replicas
from bfinfra.operator.watcher import memory
from bfinfra.operator.watcher.claims import Room, moves
from bfinfra.operator.watcher.figures import WatcherFigures
from bfinfra.operator.watcher.follower import Desk, Follower, Gap
from bfinfra.operator.watching import Watching, moment

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient
    from bfinfra.backends.kubernetes.cluster import Object

WRITERS = 8  # threads that call the API server
SOON = 600.0  # seconds: a replica that is lost earlier after it took a Site may have been brought down by it
TRIES = 5  # of a status, as others write it too
AGAIN = 2.0  # seconds after which a status that could not be written is written again
JOINED = 20.0  # seconds that the end waits for the followers
log = logging.getLogger("bfinfra.operator")


@dataclass
class Replica:
    """`limit`: how many Sites it follows at most; `sites`: those of the namespace, without their contents;
    `free`: uid → since when this process has seen nobody follow it.
    """

    api: ClusterClient
    namespace: str
    lease: Lease
    desk: Desk
    limit: int
    figures: WatcherFigures = field(default_factory=WatcherFigures)
    replicas: Replicas = field(default_factory=Replicas)
    part: Callable[[], float] = memory.used
    sites: dict[str, Desired] = field(default_factory=dict)
    followers: dict[str, Follower] = field(default_factory=dict)
    free: dict[str, float] = field(default_factory=dict)
    _busy: set[str] = field(default_factory=set)
    _dirty: dict[str, float] = field(default_factory=dict)
    _orders: dict[str, tuple[float, Callable[[], None]]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _wake: threading.Event = field(default_factory=threading.Event)

    @property
    def me(self) -> str:
        """This replica's name."""
        return self.lease.me

    def all(self, bodies: list[Object]) -> None:
        """The Sites that there are now; those that are not among them are gone."""
        there = {str(body["metadata"]["uid"]) for body in bodies}
        with self._lock:
            lost = [each for uid, each in self.sites.items() if uid not in there]
        for each in lost:
            self._gone(each.uid)
        for body in bodies:
            self.site(body)

    def gone(self, body: Object) -> None:
        """A Site was deleted."""
        self._gone(str(body["metadata"]["uid"]))

    def site(self, body: Object) -> None:
        """A Site was created or changed."""
        wanted = Desired.of(body)
        with self._lock:
            self.sites[wanted.uid] = replace(wanted, site={})
            follower = self.followers.get(wanted.uid)
            if follower and not wanted.watchable:
                self._orders[wanted.uid] = 0.0, partial(self._give, wanted.uid, "it is not to be watched")
            elif follower and wanted.watching.replica != self.me:
                self._orders[wanted.uid] = 0.0, partial(self._verify, wanted.uid)
        if follower and wanted.generation > follower.wanted.generation:
            follower.change(wanted, "the Site has changed")
        elif follower and wanted.existed and not follower.wanted.existed:
            follower.change(wanted, "a Job has applied the Site")  # to follow what it has made, too
        self._wake.set()

    def _gone(self, uid: str) -> None:
        with self._lock:
            self.sites.pop(uid, None)
            self.free.pop(uid, None)
        self._drop(uid)
        self._wake.set()

    def changed(self, uid: str) -> None:
        """A follower has something to report."""
        with self._lock:
            self._dirty.setdefault(uid, 0.0)
        self._wake.set()

    def run(self, stop: threading.Event) -> None:
        """Until `stop`; then gives every Site up, so that others take them at once."""
        beat = 0.0
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="watcher") as pool:
            while not stop.is_set():
                self._wake.clear()
                if time.monotonic() >= beat + EVERY:
                    beat = time.monotonic()
                    contained(self.renew, self.me)
                for uid, act in self.due():
                    pool.submit(self._act, uid, act)
                self._wake.wait(0.5)
            pool.shutdown(cancel_futures=True)  # what is under way may take another Site
        self._end()

    def renew(self) -> None:
        """Renew the Lease, and see who else lives."""
        self.lease.step()
        try:
            self.replicas.take(self.api.list(leases.API, leases.KIND, self.namespace, SELECTOR))
        except BfinfraError as error:
            log.warning("it is not known which watchers live: %s", error)
        self._wake.set()

    def due(self) -> list[tuple[str, Callable[[], None]]]:
        """What is to be done now, each with its Site's uid; these are busy from now on."""
        found: dict[str, Callable[[], None]] = {}
        with self._lock:
            now = time.monotonic()
            alive = frozenset(name for _, name in self.replicas.alive(self.namespace))
            self._note_free(alive, now)
            if self.lease.leading:
                room = Room(self.me, alive, self.room())
                free = {uid: now - since for uid, since in self.free.items()}
                made = moves(self.sites.values(), self.followers, room, free)
                found |= {uid: partial(self._take, uid) for uid in made.take}
                found |= {uid: partial(self._give, uid, "it went to another watcher") for uid in made.give}
            for uid, (since, act) in list(self._orders.items()):
                if uid not in self._busy and now >= since:
                    del self._orders[uid]
                    found[uid] = act
            for uid, since in list(self._dirty.items()):
                if uid not in self._busy and uid not in found and now >= since:
                    del self._dirty[uid]
                    found[uid] = partial(self._write, uid)
            for uid, follower in self.followers.items():
                if uid not in found and follower.stale:
                    found[uid] = follower.refresh
            found = {uid: act for uid, act in found.items() if uid not in self._busy}
            self._busy |= found.keys()
        return list(found.items())

    def room(self) -> int:
        """How many Sites it may have now."""
        return memory.room(self.limit, len(self.followers), self.part())

    def _note_free(self, alive: frozenset[str], now: float) -> None:
        others = alive - {self.me}
        for uid, each in self.sites.items():
            if each.watchable and uid not in self.followers and each.watching.replica not in others:
                self.free.setdefault(uid, now)
            else:
                self.free.pop(uid, None)

    def _act(self, uid: str, act: Callable[[], None]) -> None:
        contained(act, uid)
        with self._lock:
            self._busy.discard(uid)
        self._wake.set()

    def _take(self, uid: str) -> None:
        """Take a Site, unless another replica was faster."""
        with self._lock:
            known = self.sites.get(uid)
        if known is None:
            return
        before, now = known.watching, self.desk.clock()
        lost = bool(before.replica)
        gap = self._gap(before, now)
        soon = lost and now - _seconds(before.since, now) < SOON
        losses = before.losses + 1 if soon else int(lost)
        taken = replace(
            before, replica=self.me, since=moment(now), following=False, why=gap.why, losses=losses
        )
        try:
            body = self.api.patch_status_of(_seen(known), taken.status())
        except (Conflict, Missing):
            return
        except BfinfraError as error:
            log.warning("%s/%s can't be taken: %s", known.namespace, known.name, error)
            return
        self.figures.took(lost=lost)
        wanted = Desired.of(body)
        follower = Follower(
            wanted, self.desk, gap, self.figures.site(wanted.namespace, wanted.name), self.changed
        )
        with self._lock:
            self.followers[uid] = follower
            self.free.pop(uid, None)
            self._wrote(known, wanted)
        follower.start()

    def _gap(self, before: Watching, now: float) -> Gap:
        """The time in which nobody has followed the Site, at most."""
        since = now - _seconds(before.since, now)
        if not before.since:
            return Gap(0.0, "")
        if not before.replica:
            return Gap(max(0.0, since), before.why or "its watcher ended")
        silent = self.replicas.silent(self.namespace, before.replica)
        seconds = since if silent is None else silent + EVERY
        return Gap(max(0.0, seconds), f"its watcher {before.replica} was lost")

    def _give(self, uid: str, why: str) -> None:
        """Give a Site up. What can't be written is tried again."""
        with self._lock:
            follower = self.followers.get(uid)
        if follower is None:
            return
        follower.end()
        follower.join(JOINED)
        if self._patch(follower, partial(_given, why=why, now=moment(self.desk.clock()))):
            self._drop(uid)
        else:
            with self._lock:
                self._orders[uid] = time.monotonic() + AGAIN, partial(self._give, uid, why)

    def _verify(self, uid: str) -> None:
        """Stop following a Site that another replica has taken. An event may be older than this replica's own
        write.
        """
        with self._lock:
            follower = self.followers.get(uid)
        if follower and self._live(follower) is None:
            self._drop(uid)

    def _live(self, follower: Follower) -> Desired | None:
        """The Site as it is now; None if it isn't this replica's any more."""
        wanted = follower.wanted
        body = self.api.get(API, KIND, wanted.name, wanted.namespace)
        found = Desired.of(body) if body else None
        return found if found and found.uid == wanted.uid and found.watching.replica == self.me else None

    def _drop(self, uid: str) -> None:
        with self._lock:
            follower = self.followers.pop(uid, None)
            self._dirty.pop(uid, None)
        if follower:
            follower.end()

    def _write(self, uid: str) -> None:
        """Write what a follower reports."""
        with self._lock:
            follower = self.followers.get(uid)
        if follower and not self._patch(follower, lambda found: found):
            with self._lock:
                self._dirty[uid] = time.monotonic() + AGAIN

    def _patch(self, follower: Follower, made: Callable[[Watching], Watching]) -> bool:
        """Write the status, if the Site is still this replica's. Returns whether there is nothing left to
        write.
        """
        with self._lock:
            known = self.sites.get(follower.wanted.uid)
        try:
            for attempt in range(TRIES):
                if attempt or known is None or known.watching.replica != self.me:
                    known = self._live(follower)
                if known is None:
                    return True
                found = replace(made(follower.latest), losses=known.watching.losses)
                try:
                    body = self.api.patch_status_of(_seen(known), found.status())
                except Conflict:
                    continue
                with self._lock:
                    self._wrote(known, Desired.of(body))
                return True
        except Missing:
            return True
        except BfinfraError as error:
            log.warning("%s/%s: %s", follower.wanted.namespace, follower.wanted.name, error)
        return False

    def _wrote(self, known: Desired, now: Desired) -> None:
        """Note what this replica made of a Site; the event of it comes later. An event that was faster may be
        of a later change, which stays noted.
        """
        found = self.sites.get(now.uid)
        if found and found.version == known.version:
            self.sites[now.uid] = replace(now, site={})

    def _end(self) -> None:
        """Give every Site up."""
        with self._lock:
            mine = list(self.followers)
            for each in self.followers.values():
                each.end()
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="watcher") as pool:
            for uid in mine:
                pool.submit(self._act, uid, partial(self._give, uid, "its watcher ended"))


def _given(found: Watching, *, why: str, now: str) -> Watching:
    return replace(found, replica="", since=now, following=False, why=why)


def _seen(known: Desired) -> Object:
    """The Site's address and version."""
    meta = {"name": known.name, "namespace": known.namespace, "resourceVersion": known.version}
    return {"apiVersion": API, "kind": KIND, "metadata": meta}


def _seconds(text: str, default: float) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return default
