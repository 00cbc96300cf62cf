"""Two applies of one site at once end with one world.

On one machine, a lock refuses the second apply. It names its holder and ends with it. From two machines (two
state folders, two sessions, started within half a second of each other), both must succeed. Then the servers
must be as after a single apply, and a third apply must find nothing to do. Whole processes run on the
sandbox.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from kinds.lifecycle import difference, world
from torture.command import Command, Desk, Stuck, desk, stuck, until
from torture.counting import Count, Effort
from torture.worlds import CHAIN_PLACE, DEMO, Place

ROUNDS, LOCKED = 20, 5
PACE = 0.02  # of real time: fast, but a reboot is not over between two requests
YES = ("--yes",)


def counts(effort: Effort) -> Iterator[Count]:
    for place in (DEMO, CHAIN_PLACE)[: effort.number(2, 1)]:
        folder = effort.folder / place.site.stem
        folder.mkdir()
        with desk(place, folder, PACE) as at:
            alone = at.run("apply", *YES)
            assert alone.end() == 0, alone.output()
            yield from on(place, at, world(at.sandbox), effort)


def on(place: Place, at: Desk, whole: str, effort: Effort) -> Iterator[Count]:
    refused = Count(f"`{place.name}`, a second apply on the same machine is refused, and says by whom")
    dies = Count(f"`{place.name}`, the first is killed: the lock is free for the next")
    both = Count(f"`{place.name}`, from two machines at once")
    for number in range(effort.number(ROUNDS, 1)):
        if effort.wants(refused.what) and number < LOCKED:
            at.sandbox.reset()
            with refused.trial(f"round {number}"):
                same_machine(at, whole)
        if effort.wants(dies.what) and number < LOCKED:
            at.sandbox.reset()
            with dies.trial(f"round {number}"):
                killed(at, whole)
        if effort.wants(both.what):
            at.sandbox.reset()
            with both.trial(f"round {number}"):
                two_machines(at, whole, both, effort.chance(f"{place.name} {number}").uniform(0, 0.5))
    yield from (count for count in (refused, dies, both) if count.tried)


def same_machine(at: Desk, whole: str) -> None:
    first = held(at)
    second = at.run("apply", *YES)
    output = second.out.read_text() + second.output()
    assert second.end() == 1, output
    assert f"process {first.process.pid}" in output, output
    assert "another apply of" in output, output
    assert first.end() == 0, first.output()
    one_world(at, whole)


def killed(at: Desk, whole: str) -> None:
    first = held(at)
    first.process.kill()
    first.end()
    second = at.run("apply", *YES)
    assert second.end() == 0, second.out.read_text() + second.output()
    one_world(at, whole)


def two_machines(at: Desk, whole: str, count: Count, apart: float) -> None:
    first = at.start("apply", *YES, machine="a")
    time.sleep(apart)
    second = at.start("apply", *YES, machine="b")
    for each in (first, second):
        try:
            code = each.end()
        except Stuck as error:
            raise stuck(at, {"a": first, "b": second}) from error
        count.add("ended well" if code == 0 else "ended with an error", 1)
        assert code == 0, wrong(each)
    one_world(at, whole)


def wrong(each: Command) -> str:
    """What did not go well."""
    found = each.outcome()
    bad = [r for r in found.get("resources", []) if r.get("problem")] or found.get("problems")
    return json.dumps(bad) if bad else each.out.read_text() + each.output()


def held(at: Desk) -> Command:
    """An apply that holds the lock."""
    made = at.start("apply", *YES)
    until(
        lambda: at.lock().exists() and at.lock().read_text() == str(made.process.pid),
        "the first apply's lock",
    )
    return made


def one_world(at: Desk, whole: str) -> None:
    now = world(at.sandbox)
    assert now == whole, difference(now, whole)
    third = at.run("plan", "--detailed-exitcode")
    assert third.end() == 0, third.out.read_text()[:1000]
