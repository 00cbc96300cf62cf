"""Keeps the Sites of a cluster in their desired state: knows all Sites, decides about each, and carries out
the decision. One replica leads at a time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from bfinfra.model.errors import BfinfraError, Exists, Missing
from bfinfra.model.pauses import pause
from bfinfra.model.records import dataclass
from bfinfra.operator import seen
from bfinfra.operator.crd import KIND
from bfinfra.operator.decide import Hold, Look, Refuse, Release, Stamp, Wait, decide, latest
from bfinfra.operator.defects import contained
from bfinfra.operator.desired import APPROVE, FINALIZER, Desired, taken
from bfinfra.operator.event import event, moment
from bfinfra.operator.figures import Figures, Row
from bfinfra.operator.held import Held
from bfinfra.operator.job import LABELS, Mould, manifest, unfit
from bfinfra.operator.looks import Looks
from bfinfra.operator.manifest import API
from bfinfra.operator.result import PASSING, Outcome, Result
from bfinfra.operator.status import Notice, Status, after, difference, notices
from bfinfra.operator.watchers import Watchers

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

WRITERS = 8  # threads that call the API server
AGAIN, LONGEST, REPORTED = 5.0, 320.0, 3
"""Seconds after which what the API server refused is tried again, at first and at most, and which refusal is
reported.
"""
LISTED = 10.0  # seconds between two looks at which watchers live
RENEWED = 300.0  # seconds between two complete lists
SETTLED = 60.0  # seconds for which a new Job may be missing in a list
TICK = 0.05  # seconds in which a burst of changes is collected
SELECTOR = ",".join(f"{name}={value}" for name, value in LABELS.items())
log = logging.getLogger("bfinfra.operator")


@dataclass
class Keeper:
    """Watches report to it from any thread; `run` does the rest. `limit`: Jobs at a time; `spaces`:
    namespaces, "" for all; `old`: names of checks that ended before this process started; `queue`: Sites
    whose Job waits for another's end, and since when; `names`: a site's name → uids of the Sites with it.
    """

    api: ClusterClient
    mould: Mould
    limit: int = 20
    spaces: tuple[str, ...] = ("",)
    clock: Callable[[], float] = time.time
    figures: Figures = field(default_factory=Figures)
    sites: dict[str, Held] = field(default_factory=dict)
    looks: Looks = field(default_factory=Looks)
    old: set[str] = field(default_factory=set)
    queue: dict[str, float] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _wake: threading.Event = field(default_factory=threading.Event)

    @cached_property
    def watchers(self) -> Watchers:
        """The watchers of the same namespaces."""
        return Watchers(self.api, self.spaces, self.clock)

    def site(self, body: Mapping[str, Any], *, gone: bool = False) -> None:
        """A Site was created, changed or deleted. Its status is the one that this process wrote last, even if
        an older event says otherwise.
        """
        wanted = Desired.of(body)
        with self._lock:
            if gone:
                self._gone(wanted)
            elif held := self.sites.get(wanted.uid):
                held.take(wanted)
                held.due = 0
            else:
                self.sites[wanted.uid] = Held(wanted)
                self.names.setdefault(wanted.called, set()).add(wanted.uid)
        self._wake.set()

    def _gone(self, wanted: Desired) -> None:
        """Forget the Site, and check those that waited for its name."""
        self.sites.pop(wanted.uid, None)
        self.queue.pop(wanted.uid, None)
        self.looks.forget(wanted.uid)
        rivals = self.names.get(wanted.called, set())
        rivals.discard(wanted.uid)
        for uid in rivals:
            self._due(uid)

    def job(self, body: Mapping[str, Any], *, gone: bool = False) -> None:
        """A Job of the operator changed."""
        uid, name = seen.uid(body), body["metadata"]["name"]
        with self._lock:
            if gone:
                self.looks.drop(uid, name)
            else:
                self.looks.put(uid, seen.look(body, self.looks.of(uid).get(name)))
            self._due(uid)
            self._admit()

    def pod(self, body: Mapping[str, Any]) -> None:
        """A pod of such a Job changed."""
        uid, name = seen.uid(body), seen.job_of(body)
        result, why = seen.reported(body)
        with self._lock:
            if result or why:
                look = self.looks.of(uid).get(name) or seen.early(body)
                self.looks.put(uid, replace(look, result=result or look.result, why=look.why or why))
                self._due(uid)

    def begin(self) -> None:
        """Read what exists already, so that nothing is checked twice. Raises RemoteError."""
        self.renew()
        self.watchers.renew()
        with self._lock:
            self.old = {look.name for _, look in self.looks if look.ended}

    def renew(self) -> None:
        """List all Jobs and pods again: an event lost with its watch would leave a Site waiting. Raises
        RemoteError.
        """
        began = self.clock()
        jobs = [body for space in self.spaces for body in self.api.list("batch/v1", "Job", space, SELECTOR)]
        there = {(seen.uid(body), body["metadata"]["name"]) for body in jobs}
        with self._lock:
            for uid, look in self.looks:
                if (uid, look.name) not in there and look.began < began - SETTLED:
                    self.looks.drop(uid, look.name)
                    self._due(uid)
        for body in jobs:
            self.job(body)
        for space in self.spaces:
            for body in self.api.list("v1", "Pod", space, SELECTOR):
                self.pod(body)
                self._stuck(body)

    def _stuck(self, pod: Mapping[str, Any]) -> None:
        """Report why a Site's check can't start, as long as it can't."""
        uid = seen.uid(pod)
        with self._lock:
            if (held := self.sites.get(uid)) and (why := seen.stuck(pod, self.clock())):
                held.stuck = why
                self._due(uid)

    def run(self, stop: threading.Event) -> None:
        """Until `stop`."""
        renewed = watchers = self.clock()
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="keeper") as pool:
            while not stop.is_set():
                self._wake.clear()
                for uid in self.ready():
                    pool.submit(self.tend, uid)
                if self.clock() > watchers + LISTED:
                    watchers = self.clock()
                    pool.submit(self._watchers)
                if self.clock() > renewed + RENEWED:
                    renewed = self.clock()
                    pool.submit(self._renewed)
                self._wake.wait(self._pause())
                stop.wait(TICK)

    def _renewed(self) -> None:
        try:
            self.renew()
        except BfinfraError as error:
            log.warning("what is there can't be read anew: %s", error)

    def _watchers(self) -> None:
        """See which watchers live, and look at the Sites that they follow."""
        with self._lock:
            watched = [uid for uid, held in self.sites.items() if held.wanted.watch]
        if watched:
            self.watchers.renew()
            with self._lock:
                for uid in watched:
                    self._due(uid)

    def ready(self) -> list[str]:
        """The Sites that are due, those that wait longest first; they are busy from now on."""
        with self._lock:
            now = self.clock()
            found = sorted(
                (held.due, uid) for uid, held in self.sites.items() if not held.busy and held.due <= now
            )
            for _, uid in found:
                self.sites[uid].busy = True
            return [uid for _, uid in found]

    def tend(self, uid: str) -> None:
        """Do everything that is to be done for one Site now."""
        try:
            if contained(partial(self._tend, uid), uid):
                self._later(uid, self.clock() + RENEWED)
        finally:
            with self._lock:
                if held := self.sites.get(uid):
                    held.busy = False
                self._admit()
            self._wake.set()

    def _tend(self, uid: str) -> None:
        try:
            while act := self._next(uid):
                act()
        except BfinfraError as error:
            self._refused(uid, error)
        else:
            self._refused(uid, None)

    def _next(self, uid: str) -> Callable[[], None] | None:
        with self._lock:
            if (held := self.sites.get(uid)) is None:
                return None
            now, looks = self.clock(), list(self.looks.of(uid).values())
            last = latest(looks)
            if last and last.over(now) and last.name != held.recorded:
                return partial(self._record, held, last)
            if (
                held.stuck
                and last
                and not last.ended
                and (act := self._says(held, Result(Outcome.LOST, held.stuck)))
            ):
                return act
            if all(look.over(now) for look in looks) and (new := self.watchers.reported(held)) is not None:
                return partial(self._put, held, new, Result(Outcome.AGREED))
            held.watched(self.watchers.follow(held))
            made = decide(held.wanted, looks, now, taken=self._taken(held.wanted), unfit=unfit(held.wanted))
            if isinstance(made, Stamp) and self.looks.running >= self.limit:
                self.queue.setdefault(uid, made.due)
                made = Wait(float("inf"))
            return self._act(held, made)

    def _admit(self) -> None:
        """As many of the waiting Sites as there is room for, in their order."""
        if not self.queue:
            return
        for uid in list(self.queue)[: max(0, self.limit - self.looks.running)]:
            self._due(uid)

    def _act(self, held: Held, made: object) -> Callable[[], None] | None:
        match made:
            case Wait(until):
                held.due = until
                return None
            case Stamp(name, due):
                self.figures.waited(max(0.0, self.clock() - self.queue.pop(held.wanted.uid, due)))
                self.looks.put(
                    held.wanted.uid,
                    Look(
                        name,
                        held.wanted.key,
                        self.clock(),
                        held.wanted.generation,
                        held.wanted.deleting,
                        trigger=held.wanted.trigger,
                    ),
                )
                return partial(self._stamp, held, name)
            case Refuse(why):
                held.due = float("inf")
                return self._says(held, Result(Outcome.INVALID, why))
            case Hold():
                return partial(self._finalizers, held, (*held.wanted.finalizers, FINALIZER))
            case Release():
                return partial(
                    self._finalizers,
                    held,
                    tuple(each for each in held.wanted.finalizers if each != FINALIZER),
                )
        raise AssertionError(made)

    def _says(self, held: Held, found: Result) -> Callable[[], None] | None:
        """The status with a problem that no check found; None if it is there already."""
        look = Look("", "", 0, held.wanted.generation, result=found)
        return (
            partial(self._write, held, look)
            if difference(held.wanted.status, after(held.wanted, look, ""))
            else None
        )

    def rows(self) -> list[Row]:
        """The rows for the metrics."""
        with self._lock:
            return [held.row for held in self.sites.values()]

    def _taken(self, wanted: Desired) -> str:
        others = (uid for uid in self.names.get(wanted.called, ()) if uid != wanted.uid)
        return taken(wanted, [self.sites[uid].wanted for uid in others])

    def _stamp(self, held: Held, name: str) -> None:
        try:
            self.api.create(manifest(held.wanted, name, self.mould))
        except Exists:  # the former leader made it
            return
        except BfinfraError:
            with self._lock:
                self.looks.drop(held.wanted.uid, name)
            raise

    def _record(self, held: Held, look: Look) -> None:
        """Write a check's result. A single transient failure is not reported after a success. A used approval
        is removed first, so that the next plan can't use it.
        """
        found = look.found
        if found.approved and held.wanted.approve == found.approved:
            self._patched(held, {"metadata": {"annotations": {APPROVE: None}}})
        misses = held.misses + 1 if found.outcome in PASSING else 0
        if not (misses == 1 and held.wanted.condition("Ready").get("status") == "True"):
            self._write(held, look)
        held.recorded, held.misses, held.stuck = look.name, misses, ""
        if look.result:
            held.result, held.looked = look.result, look.began
        if look.name not in self.old:
            self.figures.looked(found)

    def _write(self, held: Held, look: Look) -> None:
        new = after(held.wanted, look, moment(self.clock()))
        self._put(held, new, look.found, always=look.name not in self.old)

    def _put(self, held: Held, new: Status, found: Result, *, always: bool = False) -> None:
        """Write the status, and send Events for what is new in it. `always`: also if it is the same."""
        wanted, before = held.wanted, held.wanted.status
        changed = difference(before, new)
        version = wanted.version
        with contextlib.suppress(Missing):  # it was deleted meanwhile
            if changed:
                version = str(
                    self.api.patch_status(API, KIND, wanted.name, changed, wanted.namespace)["metadata"][
                        "resourceVersion"
                    ]
                )
            for each in notices(before, new, found) if changed or always else ():
                self._tell(wanted, each)
        with self._lock:
            held.wrote(wanted, new, version)

    def _tell(self, wanted: Desired, notice: Notice) -> None:
        """Send an Event, and log a line. A failing Event stops nothing."""
        log.info("%s/%s %s: %s", wanted.namespace, wanted.name, notice.reason, notice.message)
        with contextlib.suppress(BfinfraError):
            self.api.create(event(wanted, notice, self.clock()))

    def _finalizers(self, held: Held, finalizers: tuple[str, ...]) -> None:
        """Write only on the version that was read, so that nobody's finalizer is lost."""
        with contextlib.suppress(Missing):
            self._patched(
                held, {"metadata": {"finalizers": list(finalizers), "resourceVersion": held.wanted.version}}
            )

    def _patched(self, held: Held, body: Mapping[str, Any]) -> None:
        wanted = held.wanted
        now = Desired.of(self.api.patch(API, KIND, wanted.name, body, wanted.namespace))
        with self._lock:
            held.wanted = replace(now, status=held.wanted.status)

    def _due(self, uid: str) -> None:
        if held := self.sites.get(uid):
            held.due = 0
            self._wake.set()

    def _refused(self, uid: str, error: BfinfraError | None) -> None:
        """Try again, with growing pauses. What lasts is written to the status, if possible."""
        held = self.sites.get(uid)
        if held is None or error is None:
            if held:
                held.refusals = 0
            return
        log.warning("%s/%s: %s", held.wanted.namespace, held.wanted.name, error)
        held.refusals += 1
        self._later(uid, self.clock() + pause(held.refusals, AGAIN, LONGEST))
        if held.refusals == REPORTED:
            with contextlib.suppress(BfinfraError):
                self._write(
                    held, Look("", "", 0, held.wanted.generation, result=Result(Outcome.LOST, str(error)))
                )

    def _later(self, uid: str, at: float) -> None:
        with self._lock:
            if held := self.sites.get(uid):
                held.due = at

    def _pause(self) -> float:
        with self._lock:
            due = min((held.due for held in self.sites.values() if not held.busy), default=float("inf"))
        return max(0.0, min(due - self.clock(), 1.0))  # a second, so that a stop need not wait longer
