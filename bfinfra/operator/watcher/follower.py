"""Follows one Site in a thread, and keeps what is to be reported of it."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bfinfra.app.listener import Listener, Listeners
from bfinfra.app.notifier import Notifier
from bfinfra.app.watch import WatchOptions, watch
from bfinfra.engine import checks, journal
from bfinfra.model.errors import BfinfraError
from bfinfra.model.pauses import pause
from bfinfra.model.records import dataclass
from bfinfra.model.redact import redact
from bfinfra.model.stop import Stop
from bfinfra.operator.declared import remove
from bfinfra.operator.defects import contained
from bfinfra.operator.desired import Desired
from bfinfra.operator.result import Moved
from bfinfra.operator.watcher import contents
from bfinfra.operator.watching import Watching, moment
from bfinfra.operator.work import recall, with_unapplied

if TYPE_CHECKING:
    from bfinfra.app.context import RunContext
    from bfinfra.app.sight import Sight
    from bfinfra.backends.kubernetes import ClusterClient
    from bfinfra.model.drift import Report
    from bfinfra.model.site import Site

REREAD = 60.0  # seconds between two reads of a Site's Secrets and ConfigMaps
log = logging.getLogger("bfinfra.operator")


@dataclass(frozen=True)
class Desk:
    """What the followers of a replica share. `folder`: of their files; `slots`: surveys at a time; `context`:
    the servers, and how to retry; `interval`: as for `watch`.
    """

    api: ClusterClient
    folder: Path
    slots: threading.Semaphore
    context: RunContext
    interval: float
    clock: Callable[[], float] = time.time


class Gap(NamedTuple):
    """For how many seconds nobody has followed a Site, and why; "" if nobody ever has."""

    seconds: float
    why: str


class Follower(Listener):
    """One Site, from `start` to `end`. `latest`: what its status is to say; `heard`: who else listens;
    `changed` gets the uid when there is something to report.
    """

    def __init__(
        self, wanted: Desired, desk: Desk, gap: Gap, heard: Listener, changed: Callable[[str], None]
    ) -> None:
        self.wanted, self.latest = wanted, replace(wanted.watching, generation=wanted.generation)
        self._desk, self._heard, self._changed = desk, heard, changed
        self._lost, self._why = time.monotonic() - gap.seconds, gap.why
        self._lock, self._stop, self._over = threading.Lock(), Stop(), threading.Event()
        self._digest, self._read = b"", 0.0
        self._surveying = False
        self._thread = threading.Thread(target=self._run, name=f"site {wanted.name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def change(self, wanted: Desired, why: str) -> None:
        """Survey anew: the Site, or what it refers to, has changed."""
        with self._lock:
            self.wanted, self._lost, self._why = wanted, self._lost or time.monotonic(), why
            self._stop.ask(0)

    def end(self) -> None:
        """Stop; `join` waits for it."""
        self._over.set()
        with self._lock:
            self._stop.ask(0)

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, for so long at most."""
        self._thread.join(seconds)

    @property
    def stale(self) -> bool:
        """Whether it is time to `refresh`."""
        return bool(self._digest) and time.monotonic() >= self._read + REREAD

    def refresh(self) -> None:
        """Read its Secrets and ConfigMaps again, and start anew if they have changed. What can't be read any
        more stays as it was.
        """
        self._read = time.monotonic()
        try:
            found = contents.read(self._desk.api, self.wanted)
        except BfinfraError as error:
            log.warning("%s/%s: %s", self.wanted.namespace, self.wanted.name, redact(str(error)))
        else:
            if found.digest != self._digest:
                self.change(self.wanted, "its Secrets or ConfigMaps have changed")

    def report(self, sight: Sight) -> None:
        """Note it."""
        self._surveyed()
        with self._lock:
            if self._lost and self._why:
                sight = replace(sight, blind=time.monotonic() - self._lost, why=self._why)
            self._lost, self._why = 0.0, ""
            sight = replace(sight, report=with_unapplied(sight.report))
            found = replace(self._differing(sight.report), following=not sight.lost)
            if sight.why:
                found = replace(found, blind=sight.blind, why=redact(sight.why))
            if sight.lost:
                found = replace(found, why=f"these are not followed: {', '.join(sight.lost)}")
            self._note(found)
        self._heard.report(sight)

    def interrupted(self, why: str, blind: float) -> None:
        """Note it."""
        self._surveyed()
        with self._lock:
            self._note(replace(self.latest, following=False, why=redact(why)))
        self._heard.interrupted(why, blind)

    def polled(self, why: str, interval: float) -> None:
        """Note which right to grant."""
        who = f"{self.wanted.namespace}/{self.wanted.name}"
        log.warning("%s: read each %g s, and not followed: %s", who, interval, redact(why))

    def turned(self, changes: int) -> None:
        """Pass it on."""
        self._heard.turned(changes)

    def _note(self, found: Watching) -> None:
        if found != self.latest:
            self.latest = found
            self._changed(self.wanted.uid)

    def _differing(self, report: Report) -> Watching:
        """The report of these differences, dated if they are others than before."""
        every = sorted(f"{each.identity} {each.now!r}" for each in report.found if not each.ignored)
        digest = hashlib.sha256("\n".join(every).encode()).hexdigest()[:16] if every else ""
        before, drifted = self.latest, report.alarming
        same = (digest, self.wanted.generation) == (before.digest, before.generation) and before.changed
        return replace(
            before,
            generation=self.wanted.generation,
            changed=before.changed if same else moment(self._desk.clock()),
            digest=digest,
            differences=len(every),
            drifted=len(drifted),
            found=tuple(Moved(str(each.key), each.field, str(each.cause), each.by) for each in drifted),
        )

    def _run(self) -> None:
        failures, name = 0, f"{self.wanted.namespace}/{self.wanted.name}"
        while not self._over.is_set():
            with self._lock:
                self._stop = Stop()
                self._stop.begin_writing()
            if defect := contained(self._tried, name):
                self._failed(defect)
            self._surveyed()
            if self._stop.flag.is_set():
                failures = 0
            else:
                failures += 1
                self._over.wait(pause(failures))
        remove(self._folder)
        self._heard.close()

    def _tried(self) -> None:
        try:
            self._follow(self._stop)
        except BfinfraError as error:
            self._failed(" ".join(str(error.problems[0]).split()))

    @property
    def _folder(self) -> Path:
        return self._desk.folder / self.wanted.uid

    def _failed(self, why: str) -> None:
        with self._lock:
            self._lost, self._why = self._lost or time.monotonic(), why
        self.interrupted(why, time.monotonic() - self._lost)

    def _follow(self, stop: Stop) -> None:
        """Until the Site changes, or its servers can't be followed. Raises BfinfraError."""
        wanted, desk = self.wanted, self._desk
        found = contents.read(desk.api, wanted)
        site = found.load(self._folder, desk.context.sandbox)
        if not self._digest:  # what this machine kept may be older than what another replica reported
            (journal.place(journal.scope(site)) / checks.FILE).unlink(missing_ok=True)
            known = dict.fromkeys((*wanted.known, *(_identity(each) for each in self.latest.found)))
            recall(site, known, existed=wanted.existed)
        self._digest, self._read = found.digest, time.monotonic()
        context = replace(desk.context, stop=stop, retry=replace(desk.context.retry, halt=stop.flag))
        while not desk.slots.acquire(timeout=1):
            if stop.flag.is_set():
                return
        self._surveying = True
        heard = self._listeners(site, context)
        try:
            watch(site, heard, options=WatchOptions(desk.interval), context=context)
        finally:
            heard.close()

    def _listeners(self, site: Site, context: RunContext) -> Listeners:
        """This one, and the site's webhook."""
        if site.drift.notify is None:
            return Listeners([self])
        return Listeners([self, Notifier(site, context=context, failed=log.warning)])

    def _surveyed(self) -> None:
        """The first survey is over, so another Site's may start."""
        if self._surveying:
            self._surveying = False
            self._desk.slots.release()


def _identity(found: Moved) -> str:
    return f"{found.address} {found.field} {found.cause}"
