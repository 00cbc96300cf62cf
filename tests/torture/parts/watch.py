"""A watch misses nothing

`bfinfra watch` follows a site with a resource of every kind that servers report, and of several kinds that it
reads at intervals. Somebody changes the servers by hand: a field, a name, a mark; objects go, are copied and
are made again by `bfinfra apply`. After some changes, the last report of the watch must become exactly what
a fresh `bfinfra drift` says: the same fields with the same values, the same resources that can't be read, and
no others. What is reported by servers must be known without a read at an interval, which is an hour there.
Then the same while sessions end, connections are reset, answers break off, watches get 410, the collector
goes, answers come in pages of a few objects, and the servers restart. In the quiet line nobody changes
anything, while controllers work, tokens and sessions end, and hosts' clocks advance: any drift is a false
alarm.

On vcsim, behind a proxy of the trial's own, the changes are those that vcsim reports; sessions are ended, the
collector is destroyed, connections are reset, answers break off, nobody is let in for a while, answers have
one to three objects, and an empty vcsim takes the place of the first. On a kube-apiserver of the trial's own,
it is killed and etcd compacted while nobody is let in. Nothing is read at an interval there.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from kinds.lifecycle import apply, endings, made
from torture import hands, real
from torture.counting import Count, Effort, spread
from torture.parts.crash import undisturbed
from torture.watching import agree, checked, interruption, watching
from torture.worlds import DEMO, sandbox_of

import bfinfra
from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

SITE = Path(__file__).parents[1] / "watched.yaml"
NEVER, OFTEN = 3600.0, 0.5  # seconds of an interval
ROUND, ROUNDS = 20, 10  # changes until a comparison; comparisons until the site is made anew
REPORTED = "changes that servers report, on the sandbox"
ANY = "changes of any kind, on the sandbox"
INTERRUPTED = "changes of any kind, with interruptions, on the sandbox"
QUIET = f"`{DEMO.name}`, which nobody changes, watched"
CHANGES = {INTERRUPTED: 4000, REPORTED: 3000, ANY: 3000}
SHARE = 20
TURNS = 10  # on real servers, of ten rounds each


def counts(effort: Effort) -> Iterator[Count]:
    trials = [
        (line, turn)
        for line, changes in [*CHANGES.items()][: effort.number(len(CHANGES), 1)]
        for turn in range(effort.number(changes // (ROUND * ROUNDS) or 1, 1))
        if effort.wants(line)
    ]
    yield from spread(changed, trials, effort, processes=2, shares=len(trials)) if trials else ()
    yield from on_peers(effort)
    if effort.wants(QUIET):
        yield quiet(effort)


def on_peers(effort: Effort) -> Iterator[Count]:
    """The lines of real servers, where they are up."""
    lines = [each for each in (real.ON_VCSIM, real.ON_CLUSTER) if effort.wants(each)]
    if lines and effort.peers is None:
        sys.stderr.write("       vcsim and kube-apiserver are not up; script/peers up starts them\n")
        lines = []
    trials = [(line, turn) for turn in range(effort.number(TURNS, 1)) for line in lines]
    yield from spread(on_real, trials, effort, processes=2, shares=len(trials)) if trials else ()


def on_real(trials: list[tuple[str, int]], effort: Effort) -> list[Count]:
    """Each trial on a server of its own."""
    counted = []
    for line, turn in trials:
        count = Count(line)
        with count.uncounted():
            work = real.on_vcsim_ if line == real.ON_VCSIM else real.on_cluster_
            work(count, effort, turn)
        counted.append(count)
    return counted


def changed(trials: list[tuple[str, int]], effort: Effort) -> list[Count]:
    """Each trial on a sandbox of its own."""
    counted = []
    for line, turn in trials:
        count = Count(line)
        folder = effort.folder / f"{len(counted)}"
        folder.mkdir(parents=True)
        with count.uncounted():
            followed(count, line, turn, folder, effort)
        counted.append(count)
    return counted


def followed(count: Count, line: str, turn: int, folder: Path, effort: Effort) -> None:
    """Rounds of changes while one watch follows them."""
    chance = effort.chance(f"{line} {turn}")
    some = hands.FOLLOWED if line == REPORTED else hands.FOLLOWED + hands.READ_AT_INTERVALS
    interval = NEVER if line == REPORTED else OFTEN
    page = chance.choice((0, 1, 3)) if line == INTERRUPTED else 0
    state = folder / "sandbox"
    sandbox = start(SMALL_WORLD, state, pace=0)
    try:
        everything(sandbox)
        rounds = list(range(effort.number(ROUNDS, SHARE // ROUND)))
        while rounds:
            with watching(SITE, sandbox, interval, page) as heard:
                while rounds:
                    number = rounds.pop(0)
                    with count.trial(f"seed {effort.seed}, {turn}, round {number}"):
                        if line == INTERRUPTED and chance.random() < 0.2:
                            sandbox = restarted(state)
                            count.add("restarts", 1)
                        change(count, line, some, sandbox, chance)
                        agree(heard, checked(SITE, sandbox, folder))
                    if number % 2 and not everything(sandbox):
                        break
                count.add("reports", len(heard.sights))
                count.add("interruptions", len(heard.interruptions))
                count.add("seconds not followed", round(heard.blind, 1))
    finally:
        stop(state)


def change(count: Count, line: str, some: hands.Changes, sandbox: Running, chance: random.Random) -> None:
    """One round of changes; afterwards nothing fails any more."""
    with hands.hands(sandbox, chance) as by_hand:
        for _ in range(ROUND):
            by_hand.change(some)
            if line == INTERRUPTED and chance.random() < 0.1:
                count.add(interruption(sandbox, by_hand.si, chance), 1)
        count.add("changes", sum(by_hand.done.values()))
        count.add("refused", sum(by_hand.refused.values()))
    sandbox.clear_faults()


def everything(sandbox: Running) -> bool:
    """The site is applied, in a new world where people's objects have its names; False then, as what is read at
    intervals may be known from before the apply.
    """
    try:
        assert made(outcome := apply(SITE, sandbox)), endings(outcome)
    except (bfinfra.BfinfraError, AssertionError):
        sandbox.reset()
        assert made(outcome := apply(SITE, sandbox)), endings(outcome)
        return False
    return True


def restarted(state: Path) -> Running:
    stop(state)
    return start(SMALL_WORLD, state, pace=0)


def quiet(effort: Effort) -> Count:
    """Each second is a trial."""
    count = Count(QUIET)
    with count.uncounted(), sandbox_of(DEMO, effort.folder, pace=0.01) as sandbox:
        undisturbed(DEMO, sandbox)
        with watching(DEMO.site, sandbox, OFTEN) as heard:
            for second in range(effort.seconds(3600, 3)):
                with count.trial(f"second {second}"):
                    if second % 30 == 29:
                        sandbox.expire()
                    time.sleep(1)
                    assert not heard.alarms, heard.alarms
                    heard.alarms.clear()
            count.add("reports", len(heard.sights))
            count.add("interruptions", len(heard.interruptions))
    return count
