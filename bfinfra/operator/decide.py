"""What to do about a Site now. Pure: the same site, Jobs and time give the same answer, whoever leads and
however often it began anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bfinfra.model.records import dataclass
from bfinfra.operator.desired import FINALIZER, Desired
from bfinfra.operator.result import GOOD, Outcome, Result

SOON = {Outcome.WAITING: 60}
RETRY = 300  # seconds until the next look after one that did not end well
GRACE = 20  # seconds that a pod's last words may come after its Job ended


@dataclass(frozen=True)
class Look:
    """A Job of a Site. `key`: what it was made for; times in seconds since the epoch; `ended`: 0 while it
    runs; `why`: as the Job says it failed.
    """

    name: str
    key: str
    began: float
    generation: int = 0
    destroy: bool = False
    ended: float = 0
    why: str = ""
    result: Result | None = None

    def over(self, now: float) -> bool:
        """Whether all that it will ever say is here."""
        return self.ended > 0 and (self.result is not None or now >= self.ended + GRACE)

    @property
    def found(self) -> Result:
        """Its result; of one that left none, that it was lost."""
        return self.result or Result(Outcome.LOST, self.why or "the Job ended without a result")


@dataclass(frozen=True)
class Hold:
    """Put the finalizer on it, before anything is made for it."""


@dataclass(frozen=True)
class Release:
    """Let it go: nothing of it is left, or it shall be kept."""


@dataclass(frozen=True)
class Refuse:
    """Say why nothing is done for it."""

    why: str


@dataclass(frozen=True)
class Stamp:
    """Start a Job of this name. `due`: since when it could have been."""

    name: str
    due: float


@dataclass(frozen=True)
class Wait:
    """Nothing, until then: seconds since the epoch."""

    until: float


Decision = Hold | Release | Refuse | Stamp | Wait
NEVER = Wait(float("inf"))


def decide(
    wanted: Desired, looks: Sequence[Look], now: float, *, taken: str = "", unfit: str = ""
) -> Decision:
    """One thing at a time. `taken`: whose the site's name is already, so that what stands in the world is not
    this Site's; `unfit`: why no Job can carry it.
    """
    if wanted.deleting and (leaves := _leaving(wanted, looks, now, taken)):
        return leaves
    if wanted.suspend:
        return NEVER
    if taken or unfit:
        return Refuse(taken or unfit)
    return Hold() if FINALIZER not in wanted.finalizers else _paced(wanted, looks, now)


def _leaving(wanted: Desired, looks: Sequence[Look], now: float, taken: str) -> Decision | None:
    """Of a Site that was deleted: whether it may go now; None where something must be destroyed first."""
    if FINALIZER not in wanted.finalizers:
        return NEVER
    last = latest(looks)
    destroyed = last and last.destroy and last.over(now) and last.found.outcome in GOOD
    return Release() if not wanted.destroys or taken or destroyed else None


def _paced(wanted: Desired, looks: Sequence[Look], now: float) -> Decision:
    """The next look: at once where something is new, else with its span; never two at a time."""
    if running := [look for look in looks if not look.over(now)]:
        return Wait(min((look.ended + GRACE for look in running if look.ended), default=float("inf")))
    every = period(wanted, latest(looks))
    start = opened(wanted.uid, every, now)
    if any(look.key == wanted.key and look.began >= start for look in looks):
        return Wait(start + every)
    fresh = not any(look.key == wanted.key for look in looks)
    return Stamp(job_name(wanted, every, start), now if fresh else start)


def latest(looks: Sequence[Look]) -> Look | None:
    """The newest of them."""
    return max(looks, key=lambda look: (look.began, look.name), default=None)


def period(wanted: Desired, last: Look | None) -> int:
    """Seconds between two looks: what did not end well is looked at again sooner."""
    outcome = last.found.outcome if last else Outcome.AGREED
    if outcome in GOOD or outcome in (Outcome.APPROVAL, Outcome.INVALID):
        return wanted.interval
    return min(wanted.interval, SOON.get(outcome, RETRY))


def opened(uid: str, every: int, now: float) -> float:
    """When the span began that `now` is in. Each site's spans begin at a time of its own, so that a thousand
    sites don't start together.
    """
    offset = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4], "big") % every
    return (int(now) - offset) // every * every + offset


def job_name(wanted: Desired, every: int, start: float) -> str:
    """The same for everybody who decides the same: the API server lets only one of them make it."""
    mark = hashlib.sha256(f"{wanted.key} {every} {int(start)}".encode()).hexdigest()[:10]
    return f"{wanted.name[:40].rstrip('-.')}-{mark}".replace(".", "-")
