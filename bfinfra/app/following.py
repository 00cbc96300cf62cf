"""Follows the changes that a site's servers report: vCenter by a property collector, clusters by watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Thread
from typing import TYPE_CHECKING, Any

from bfinfra.model.errors import Forbidden, RemoteError
from bfinfra.model.pauses import pause
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.app.wiring import Backends
    from bfinfra.backends.kubernetes.changes import ObjectChanges
    from bfinfra.backends.kubernetes.cluster import ClusterClient, Selected
    from bfinfra.backends.vcenter.changes import Change, Changes

ROUND = 20  # seconds of each wait call of vCenter at most, well below the transport's read time-out
WATCH = 45  # seconds of each watch of a cluster at most, likewise: a cluster may have thousands of them
QUIET = 0.1  # seconds without a further change, after which a change is looked at
BUSY = 1.0  # seconds after which it is looked at in any case
LOOK = 1.0  # seconds between two looks at what is to be read now
LAST = 10.0  # seconds that the end waits for calls that are under way


@dataclass(frozen=True)
class Gap:
    """Changes of a kind of object in a cluster that were not followed, for so many seconds at most. `over`:
    whether they are followed again.
    """

    cluster: str
    kind: str
    why: str
    seconds: float
    over: bool


@dataclass(frozen=True)
class Arrivals:
    """The changes of one moment. `changes`: vCenter's; `keys`: resources whose objects in clusters changed;
    `clusters`: whether more may have changed there; `gaps`: those that began or ended; `refused`: why objects
    are read at the interval alone.
    """

    changes: tuple[Change, ...] = ()
    keys: frozenset[Key] = frozenset()
    clusters: bool = False
    gaps: tuple[Gap, ...] = ()
    refused: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.count)

    @property
    def count(self) -> int:
        """How many changes; those of the same object in a cluster count once."""
        return len(self.changes) + len(self.keys) + self.clusters


@dataclass
class Stream:
    """The reports of all servers, in the order of their arrival. After an error of vCenter, nothing more
    comes from it. `heard`: when it answered last, by the monotonic clock; 0 if it never did.
    """

    site: str
    heard: float = 0.0
    arrived: SimpleQueue[Arrivals | RemoteError] = field(default_factory=SimpleQueue)
    over: Flag = field(default_factory=Flag)

    def gathered(self) -> Arrivals:
        """Return the next reports, with those that follow at once. Raises RemoteError once vCenter can't be
        followed.
        """
        found: list[Arrivals] = []
        until = time.monotonic() + BUSY
        with suppress(Empty):
            while time.monotonic() < until:
                each = self.arrived.get(timeout=QUIET if found else LOOK)
                if isinstance(each, RemoteError):
                    raise each
                found.append(each)
        return Arrivals(
            tuple(change for each in found for change in each.changes),
            frozenset(key for each in found for key in each.keys),
            any(each.clusters for each in found),
            tuple(gap for each in found for gap in each.gaps),
            tuple(why for each in found for why in each.refused),
        )

    def wake(self) -> None:
        """Let `gathered` return."""
        self.arrived.put(Arrivals())

    def of_vcenter(self, changes: Changes) -> None:
        """Pass on what vCenter reports."""
        try:
            while not self.over.is_set():
                found = changes.wait(ROUND)
                self.heard = time.monotonic()
                if found:
                    self.arrived.put(Arrivals(changes=found))
        except RemoteError as error:
            self.arrived.put(error)

    def of_cluster(self, changes: ObjectChanges) -> None:
        """Pass on what a cluster reports of one kind of object, and what interrupts that."""
        KindOfObject(self, changes).follow()


class KindOfObject:
    """Follows one kind of object in a cluster. After the first failure it is tried again at once. After more
    in a row, a gap is told, which ends when the cluster answers again.
    """

    def __init__(self, stream: Stream, changes: ObjectChanges) -> None:
        self._stream, self._changes = stream, changes
        self._heard, self._begun = time.monotonic(), 0.0
        self._failures, self._why = 0, ""
        self._followed = self._anew = self._told = False

    def follow(self) -> None:
        """Until the stream is over, the cluster has no such objects, or the account may not watch them."""
        from bfinfra.backends.kubernetes.errors import NotServed

        while not self._stream.over.is_set():
            self._begun = 0.0
            try:
                if self._told or not self._changes.started:
                    self._changes.start()
                    self._anew = True
                self._changes.wait(WATCH, self._object, begun=self._answered)
                self._well()
            except NotServed:
                self._changes.leave()  # its type was deleted, and its objects with it
                self._more(over=self._told)
                return
            except RemoteError as error:
                self._why = str(error.problems[0])
                if isinstance(error, Forbidden) and not self._followed:  # an account that may only list
                    self._stream.arrived.put(Arrivals(refused=(self._why,)))
                    return
                if self._begun and time.monotonic() - self._begun > pause(self._failures):
                    self._well()  # until now
                self._failed()

    def _answered(self) -> None:
        """From now on it is followed; after a start, what was read before has to be read again."""
        self._begun = time.monotonic()
        if self._anew:
            self._more(over=self._failures > 0)
            self._heard, self._anew, self._told = self._begun, False, False

    def _well(self) -> None:
        self._heard, self._failures, self._followed = time.monotonic(), 0, True

    def _failed(self) -> None:
        self._failures += 1
        if self._failures > 1:
            if not self._told:
                self._told = True
                self._gap(over=False)
            self._stream.over.wait(pause(self._failures - 1))

    def _more(self, *, over: bool) -> None:
        """More may have changed. `over`: nothing was followed until now."""
        if over:
            self._gap(over=True)
        else:
            self._stream.arrived.put(Arrivals(clusters=True))

    def _gap(self, *, over: bool) -> None:
        of = self._changes
        gap = Gap(of.cluster, of.kind, self._why, time.monotonic() - self._heard, over)
        self._stream.arrived.put(Arrivals(clusters=True, gaps=(gap,)))

    def _object(self, found: dict[str, Any]) -> None:
        from bfinfra.backends.kubernetes.marks import mark_of

        mark = mark_of(found)
        if mark is not None and mark.site == self._stream.site:
            self._stream.arrived.put(Arrivals(keys=frozenset({Key.parse(mark.address)})))
        else:
            self._stream.arrived.put(Arrivals(clusters=True))


class Following:
    """Follows everything that was read of vCenter, and the site's objects in clusters."""

    def __init__(self, stream: Stream, backends: Backends) -> None:
        self._stream, self._backends = stream, backends
        self._vcenter: Changes | None = None
        self._clusters: dict[tuple[ClusterClient, Selected], ObjectChanges] = {}
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Follow what was read up to now. Raises RemoteError."""
        if self._backends.vcenter is not None:
            from bfinfra.backends.vcenter.changes import Changes

            changes = Changes(self._backends.vcenter.session)
            changes.start()
            self._vcenter = changes
            changes.wait(ROUND)  # every object once
            self._stream.heard = time.monotonic()
            self._go(self._stream.of_vcenter, changes)
        for each in self._new():
            with suppress(RemoteError):  # the next attempt is in its thread
                each.start()
            self._go(self._stream.of_cluster, each)

    def extend(self) -> bool:
        """Follow what was read since as well. Returns whether there is more in vCenter that has to be read
        again. Raises RemoteError if vCenter can't be followed.
        """
        for each in self._new():
            self._go(self._stream.of_cluster, each)
        return self._vcenter is not None and self._vcenter.extend()

    def end(self) -> None:
        """Wait until no call is under way any more, as connections are closed that they read."""
        self._stream.over.set()
        if self._vcenter:
            self._vcenter.cancel()
        for each in self._clusters.values():
            each.cancel()
        until = time.monotonic() + LAST
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _new(self) -> list[ObjectChanges]:
        """What is followed from now on in clusters."""
        from bfinfra.backends.kubernetes.changes import ObjectChanges

        self._clusters = {of: each for of, each in self._clusters.items() if not each.left}
        fresh = [each for each in self._backends.clusters.selections() if each not in self._clusters]
        self._clusters |= {each: ObjectChanges(*each) for each in fresh}
        return [self._clusters[each] for each in fresh]

    def _go(self, pass_on: Callable[[Any], None], changes: object) -> None:
        thread = Thread(target=pass_on, args=(changes,), name="changes", daemon=True)
        thread.start()
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]


@contextmanager
def following(stream: Stream, backends: Backends) -> Iterator[Following]:
    """Follow the servers until the block is left. Raises RemoteError."""
    made = Following(stream, backends)
    try:
        made.start()
        yield made
    finally:
        made.end()
