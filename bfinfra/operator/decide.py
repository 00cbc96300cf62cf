"""Decides what to do about a Site now. Pure: the same Site, Jobs and time give the same decision, whichever
replica leads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bfinfra.model.records import dataclass
from bfinfra.operator.desired import FINALIZER, Desired
from bfinfra.operator.result import GOOD, Outcome, Result

SOON = {Outcome.WAITING: 60}
RETRY = 300  # seconds until the next check after one that did not end well
BACKSTOP = 86400  # seconds between two checks of a Site that a watcher follows
SPACED = 60  # seconds between two checks that a watcher causes
GRACE = 20  # seconds to wait for a pod's termination message after its Job ended


@dataclass(frozen=True)
class Look:
    """A Job of a Site. `key`: what it was made for; times in seconds since the epoch; `ended`: 0 while it
    runs; `why`: the Job's reason of its failure; `trigger`: the watcher's report that it answers.
    """

    name: str
    key: str
    began: float
    generation: int = 0
    destroy: bool = False
    ended: float = 0
    why: str = ""
    result: Result | None = None
    trigger: str = ""

    def over(self, now: float) -> bool:
        """Return whether it has ended and its result is there, or won't come."""
        return self.ended > 0 and (self.result is not None or now >= self.ended + GRACE)

    @property
    def found(self) -> Result:
        """Its result; of a Job without one, that it was lost."""
        return self.result or Result(Outcome.LOST, self.why or "the Job ended without a result")


@dataclass(frozen=True)
class Hold:
    """Add the finalizer, before anything is made for the Site."""


@dataclass(frozen=True)
class Release:
    """Remove the finalizer: nothing of it is left, or its objects are to be kept."""


@dataclass(frozen=True)
class Refuse:
    """Report why nothing is done for it."""

    why: str


@dataclass(frozen=True)
class Stamp:
    """Start a Job of this name. `due`: when it could have started."""

    name: str
    due: float


@dataclass(frozen=True)
class Wait:
    """Do nothing until then, in seconds since the epoch."""

    until: float


Decision = Hold | Release | Refuse | Stamp | Wait
NEVER = Wait(float("inf"))


def decide(
    wanted: Desired, looks: Sequence[Look], now: float, *, taken: str = "", unfit: str = ""
) -> Decision:
    """The next action. `taken`: who has the site's name already, so that the existing objects aren't this
    Site's; `unfit`: why no Job can contain it.
    """
    if wanted.deleting and (leaves := _leaving(wanted, looks, now, taken)):
        return leaves
    if wanted.suspend:
        return NEVER
    if taken or unfit:
        return Refuse(taken or unfit)
    return Hold() if FINALIZER not in wanted.finalizers else _paced(wanted, looks, now)


def _leaving(wanted: Desired, looks: Sequence[Look], now: float, taken: str) -> Decision | None:
    """For a deleted Site: Release if it may go now; None if something must be destroyed first."""
    if FINALIZER not in wanted.finalizers:
        return NEVER
    last = latest(looks)
    destroyed = last and last.destroy and last.over(now) and last.found.outcome in GOOD
    return Release() if not wanted.destroys or taken or destroyed else None


def _paced(wanted: Desired, looks: Sequence[Look], now: float) -> Decision:
    """The next check: at once if something is new, else at its interval; never two at a time. What a watcher
    reports again and again is checked once a minute.
    """
    if running := [look for look in looks if not look.over(now)]:
        return Wait(min((look.ended + GRACE for look in running if look.ended), default=float("inf")))
    last = latest(looks)
    every, trigger = period(wanted, last), wanted.trigger
    start = opened(wanted.uid, every, now)
    if any(look.key == wanted.key and look.began >= start for look in looks):
        if last is None or not trigger or any(look.trigger == trigger for look in looks):
            return Wait(start + every)
        due = last.began + SPACED
        return Stamp(job_name(wanted, every, start), now) if now >= due else Wait(due)
    fresh = not any(look.key == wanted.key for look in looks)
    return Stamp(job_name(wanted, every, start), now if fresh else start)


def latest(looks: Sequence[Look]) -> Look | None:
    """The newest Job."""
    return max(looks, key=lambda look: (look.began, look.name), default=None)


def period(wanted: Desired, last: Look | None) -> int:
    """Seconds between two checks; shorter after one that did not end well."""
    outcome = last.found.outcome if last else Outcome.AGREED
    if outcome in GOOD or outcome in (Outcome.APPROVAL, Outcome.INVALID):
        return unhurried(wanted)
    return min(wanted.interval, SOON.get(outcome, RETRY))


def unhurried(wanted: Desired) -> int:
    """Seconds between two checks while all is well."""
    return max(wanted.interval, BACKSTOP) if wanted.watched else wanted.interval


def opened(uid: str, every: int, now: float) -> float:
    """Return when the interval of `now` started. Each site's intervals start at a time of its own, so that
    many sites don't start together.
    """
    offset = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4], "big") % every
    return (int(now) - offset) // every * every + offset


def job_name(wanted: Desired, every: int, start: float) -> str:
    """A name that every replica computes alike: the API server lets only one of them make the Job."""
    mark = hashlib.sha256(f"{wanted.key} {every} {int(start)}{wanted.trigger}".encode()).hexdigest()[:10]
    return f"{wanted.name[:40].rstrip('-.')}-{mark}".replace(".", "-")
