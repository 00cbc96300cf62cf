"""Whatever a server answers to a write, the next apply finds the world as it should be.

The sandbox executes each write of each kind's example and of the demo site, but sends a wrong answer:
nothing, 1 GiB, another type, markup, a redirect, terminal escapes, or a body that the fuzzer uses for reads
(drawn by the seed). The apply must succeed, or end with errors in words that say what to do next, without a
traceback, without anything that controls a terminal, and with less than 500 MB of memory. The next apply must
succeed, the servers must be as after an undisturbed apply, and the plan must be empty.
"""

from __future__ import annotations

from collections.abc import Iterator

from bad_input.nonsense import ANSWERS, answered, answers, finished
from torture.counting import Count, Effort, spread
from torture.parts.crash import undisturbed
from torture.worlds import DEMO, PLACES, SITES, Place, sandbox_of

ALWAYS = ("nothing", "1 GiB", "another type", "302 elsewhere", "500 with escapes")
DRAWN = 2  # others for each write
Trial = tuple[Place, int, str]


def counts(effort: Effort) -> Iterator[Count]:
    trials: list[Trial] = []
    places = [
        place
        for place in PLACES
        if (place == DEMO or place not in SITES)
        and effort.wants(f"`{place.name}`, nonsense for an answer to each write")
    ]
    for place in effort.some(places, 4):
        with sandbox_of(place, effort.folder) as sandbox:
            many = answers(place.site, sandbox)
        others = sorted(ANSWERS.keys() - {*ALWAYS})
        for nth in range(1, many + 1):
            trials += [
                (place, nth, name)
                for name in (*ALWAYS, *effort.chance(f"{place.name} {nth}").sample(others, DRAWN))
            ]
    yield from spread(tried, effort.some(trials, 12), effort, processes=2)


def tried(trials: list[Trial], effort: Effort) -> list[Count]:
    """Trials of the same place share its sandbox."""
    found: dict[str, Count] = {}
    for place in dict.fromkeys(place for place, _, _ in trials):
        count = found.setdefault(place.name, Count(f"`{place.name}`, nonsense for an answer to each write"))
        with sandbox_of(place, effort.folder) as sandbox:
            whole = undisturbed(place, sandbox)
            for nth, name in [(nth, name) for where, nth, name in trials if where == place]:
                sandbox.reset()
                with count.trial(f"{name} to write {nth}"):
                    count.add(answered(place.site, sandbox, nth, ANSWERS[name]), 1)
                    finished(place.site, sandbox, whole)
    return list(found.values())
