"""Decides which Sites a replica takes and gives up. Pure: the replicas agree by the status of the Sites."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping

from bfinfra.model.pauses import pause
from bfinfra.model.records import dataclass
from bfinfra.operator.desired import Desired

LATE = 15.0  # seconds after which a Site that nobody took is taken beyond a replica's share
FIRST, LONGEST = (
    30.0,
    3600.0,
)  # seconds until a Site is taken again after two replicas were lost soon with it, doubled each time
GIVES = 2  # Sites that a replica gives up at a time, so that few are between two replicas


@dataclass(frozen=True)
class Moves:
    """Uids of Sites, in the order in which they are taken and given up."""

    take: tuple[str, ...] = ()
    give: tuple[str, ...] = ()


@dataclass(frozen=True)
class Room:
    """`me`: this replica; `alive`: all that live; `limit`: how many Sites it may have now."""

    me: str
    alive: frozenset[str]
    limit: int

    def share(self, sites: int) -> int:
        """A replica's fair part of so many Sites."""
        return math.ceil(sites / len(self.alive | {self.me}))


def moves(sites: Iterable[Desired], mine: Collection[str], room: Room, free: Mapping[str, float]) -> Moves:
    """What this replica does now. `mine`: uids of the Sites that it follows; `free`: uid → for how many
    seconds this process has seen nobody follow it.
    """
    every = [each for each in sites if each.watchable]
    share = room.share(len(every))
    gone = [
        each for each in every if each.uid not in mine and each.watching.replica not in room.alive - {room.me}
    ]
    order = sorted(gone, key=lambda each: _rank(each.uid, room.me))
    ready = [each for each in order if free.get(each.uid, 0.0) >= _patience(each)]
    late = [each for each in ready if free.get(each.uid, 0.0) >= LATE + _patience(each)]
    take = ready[: max(0, min(room.limit, share) - len(mine))]
    take += [each for each in late if each not in take][: max(0, room.limit - len(mine) - len(take))]
    return Moves(tuple(each.uid for each in take), _given(every, mine, room, share))


def _given(every: list[Desired], mine: Collection[str], room: Room, share: int) -> tuple[str, ...]:
    """Sites beyond what it may have, or beyond its share while another replica has room for them."""
    counts = dict.fromkeys(room.alive - {room.me}, 0)
    for each in every:
        if each.watching.replica in counts:
            counts[each.watching.replica] += 1
    over = len(mine) - room.limit
    if any(count < share - max(1, share // 4) for count in counts.values()):
        over = max(over, len(mine) - share)
    if over <= 0:
        return ()
    order = sorted((uid for uid in mine), key=lambda uid: _rank(uid, room.me), reverse=True)
    return tuple(order[: min(over, GIVES)])


def _rank(uid: str, me: str) -> bytes:
    """An order of the Sites that each replica has for itself, so that two seldom want the same first."""
    return hashlib.sha256(f"{uid} {me}".encode()).digest()


def _patience(wanted: Desired) -> float:
    """Seconds until it may be taken: a Site that brings its replicas down must not take one after another."""
    losses = wanted.watching.losses
    return pause(losses - 1, FIRST, LONGEST) if losses > 1 else 0.0
