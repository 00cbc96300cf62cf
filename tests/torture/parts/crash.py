"""Killed at any instant, the next apply finishes the job.

SIGKILL stops `bfinfra` before and after every write that the server counts, and at random instants with
parallelism 10. Each time the next apply must succeed, the servers must be as after an undisturbed apply
(nothing twice, nothing left over), and the plan must be empty. A destroy is killed after every write, and the
next destroy must leave the servers as they were at the start. The same holds for a destroy after a killed
apply; where Ansible runs, only some of its writes are tried. Steps run in parallel, so a run may end one or
two writes earlier than the counted run. Such trials are counted apart.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from kinds.lifecycle import KILLED, apply, difference, endings, kill_at, made, plan, start_child, world
from torture.counting import Count, Effort, spread
from torture.worlds import DEMO, PLACES, Place, sandbox_of

from bfinfra.sandbox import Running

INSTANTS, CUTS = 200, 8
ALL = -1
APPLY, DESTROY = "killed before and after each write", "its destroy killed after each write"
UNDO = "killed after a write, then destroyed"
LINES = (APPLY, DESTROY, UNDO)
TODAYS = ("specs/vks-gpu.yaml", "specs/dlvm.yaml")
"""Sites of which every share tries some writes."""


def counts(effort: Effort) -> Iterator[Count]:
    places = [
        place for place in PLACES if not (effort.share and by_ansible(place))
    ]  # minutes each: tests/kinds/test_by_ansible.py has their share
    places.sort(key=lambda place: not by_ansible(place))  # the longest first
    drawn = effort.some([place for place in places if place.name not in TODAYS], 2)
    places = [
        place
        for place in places
        if (place in drawn or place.name in TODAYS) and any(effort.wants(line(place, what)) for what in LINES)
    ]
    cuts = [
        (place, cut) for place in places for cut in (range(CUTS) if by_ansible(place) else [ALL])
    ]  # what takes an hour, by parts: each says what it found
    yield from spread(struck, cuts, effort, processes=2, shares=len(cuts))
    if effort.wants("killed at a random instant"):
        yield at_random_instants(DEMO, effort)


def line(place: Place, what: str) -> str:
    return f"`{place.name}`, {what}"


def by_ansible(place: Place) -> bool:
    return "linux_host:" in place.site.read_text()


def struck(cuts: list[tuple[Place, int]], effort: Effort) -> list[Count]:
    found = [count for place, cut in cuts for count in at_every_write(place, effort, cut)]
    return [count for count in found if count.tried]  # what writes to no server can't be struck at a write


def at_every_write(place: Place, effort: Effort, cut: int) -> tuple[Count, Count, Count]:
    """What a struck apply and the next one made is what a struck destroy and the next one take away. `cut`:
    of CUTS, or ALL.
    """
    applies, destroys, undone = (Count(line(place, what)) for what in LINES)
    with applies.uncounted(), sandbox_of(place, effort.folder) as sandbox:
        before, whole = world(sandbox), undisturbed(place, sandbox)
        writes = sandbox.tally()["written"]
        apply(place.site, sandbox, destroy=True)
        if cut in (0, ALL):
            applies.figures["writes"], destroys.figures["writes"] = (
                writes,
                sandbox.tally()["written"] - writes,
            )
        strikes = effort.some(
            [(nth, when) for nth in range(1, writes + 1) for when in ("before", "after")], 6
        )
        ends = effort.some(range(1, sandbox.tally()["written"] - writes + 1), 2)
        middles = effort.some(range(1, writes + 1), 2)
        if cut != ALL:
            strikes, ends, middles = strikes[cut::CUTS], ends[cut::CUTS], middles[cut::CUTS][::CUTS]
        strikes, ends, middles = (
            each if effort.wants(count.what) else []
            for count, each in ((applies, strikes), (destroys, ends), (undone, middles))
        )
        for strike, end in zip_longest(strikes, ends):
            sandbox.reset()
            if strike:
                with applies.trial("{1} write {0}".format(*strike)):
                    strike_at(*strike, place, sandbox, effort, applies)
                    finished(place.site, sandbox, whole)
            if end:
                with destroys.trial(f"after write {end}"):
                    apply(place.site, sandbox)  # nothing to do, but where that trial did not hold
                    strike_at(end, "after", place, sandbox, effort, destroys, destroy=True)
                    left_nothing(place.site, sandbox, before)
        for middle in middles:
            sandbox.reset()
            with undone.trial(f"after write {middle}"):
                strike_at(middle, "after", place, sandbox, effort, undone)
                left_nothing(place.site, sandbox, before)
    return applies, destroys, undone


def strike_at(
    nth: int,
    when: str,
    place: Place,
    sandbox: Running,
    effort: Effort,
    count: Count,
    *,
    destroy: bool = False,
) -> None:
    before = sandbox.tally()["written"]
    state = effort.folder / "state"  # of this machine: another one would miss what that run deleted
    code = kill_at(place.site, sandbox, nth, when, state, destroy=destroy)
    if code == 0 and sandbox.tally()["written"] - before < nth:
        count.add("had ended before", 1)
    else:
        assert code == KILLED, f"it ended with {code}"


def at_random_instants(place: Place, effort: Effort) -> Count:
    count = Count(f"`{place.name}`, parallelism 10, killed at a random instant")
    chance = effort.chance("instants")
    with count.uncounted(), sandbox_of(place, effort.folder) as sandbox:
        whole = undisturbed(place, sandbox)
        longest = undisturbed_seconds(place.site, sandbox, effort.folder)
        for _ in range(effort.number(INSTANTS, 8)):
            sandbox.reset()
            after = chance.uniform(0, longest)
            with count.trial(f"after {after:.3f} s"):
                code = kill_after(place.site, sandbox, after, effort.folder / "killed")
                count.add("killed while it ran", code == KILLED)
                finished(place.site, sandbox, whole)
    return count


def undisturbed(place: Place, sandbox: Running) -> str:
    """The world as an apply makes it that nobody disturbs."""
    first = apply(place.site, sandbox)
    assert made(first), endings(first)
    return world(sandbox)


def undisturbed_seconds(site: Path, sandbox: Running, folder: Path) -> float:
    sandbox.reset()
    child, go = start_child(site, sandbox, folder / "timed")
    began = time.monotonic()
    go.set()
    child.join(60)
    return time.monotonic() - began


def kill_after(site: Path, sandbox: Running, seconds: float, state: Path) -> int:
    """Apply in a process of its own that is killed after so many seconds; its exit code."""
    child, go = start_child(site, sandbox, state)
    timer = threading.Timer(seconds, os.kill, (child.pid, signal.SIGKILL))
    go.set()
    timer.start()
    child.join(60)
    timer.cancel()
    assert child.exitcode is not None
    return child.exitcode


def finished(site: Path, sandbox: Running, whole: str) -> None:
    """The next apply ends well, in the world that was to be, and leaves nothing to plan."""
    outcome = apply(site, sandbox)
    assert made(outcome), endings(outcome)
    now = world(sandbox)
    assert now == whole, difference(now, whole)
    assert plan(site, sandbox).pending == ()


def left_nothing(site: Path, sandbox: Running, before: str) -> None:
    """The next destroy ends well, in the world that was before anything was made."""
    outcome = apply(site, sandbox, destroy=True)
    assert made(outcome), endings(outcome)
    now = world(sandbox)
    assert now == before, difference(now, before)
