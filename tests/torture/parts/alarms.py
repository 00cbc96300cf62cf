"""A site that was just applied never drifts.

Each site is applied once and then checked many times with `bfinfra drift`. Every difference that it reports
is a false alarm. Meanwhile the servers work as usual: controllers write, clocks advance, sessions start and
end. Kinds compare with what the servers made of each write, so a default that a server fills in is no drift.
"""

from __future__ import annotations

from collections.abc import Iterator

from kinds.lifecycle import drift
from torture.counting import Count, Effort, spread
from torture.parts.crash import undisturbed
from torture.worlds import PLACES, Place, sandbox_of

RUNS = 100


def counts(effort: Effort) -> Iterator[Count]:
    places = [
        place for place in effort.some(PLACES, 2) if effort.wants(f"`{place.name}`, checked after its apply")
    ]
    yield from spread(of_places, places, effort, processes=2, shares=len(places))


def of_places(places: list[Place], effort: Effort) -> list[Count]:
    return [checked(place, effort) for place in places]


def checked(place: Place, effort: Effort) -> Count:
    count = Count(f"`{place.name}`, checked after its apply")
    with count.uncounted(), sandbox_of(place, effort.folder, pace=0.01) as sandbox:
        undisturbed(place, sandbox)
        for number in range(effort.number(RUNS, 3)):
            with count.trial(f"check {number}"):
                found = drift(place.site, sandbox)
                assert not found.blind, (found.problems, found.unreadable)
                assert found.found == (), found.found
                count.add("resources looked at", found.agreed)
    return count
