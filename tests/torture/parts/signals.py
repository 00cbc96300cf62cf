"""A signal at any instant ends an apply within the step that runs

`bfinfra apply` runs as whole processes on the sandbox, a fifth of them with a fresh HOME, so that they start
the sandbox as well. SIGINT or SIGTERM comes at a random instant of the process, imports and exit included;
half of them after the first step began. The process must end with 130 or 143, or by the signal itself if
nothing was started, which a shell reports the same way. During Python's own start, before any code of bfinfra,
it may end with 1. No step may begin after the signal, and the sandbox must see no write after the last step's
end. "Exception ignored" must not be printed. The next apply must succeed, and the servers must be as after an
undisturbed apply.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from kinds.lifecycle import difference, world
from torture.command import Desk, desk, until
from torture.counting import Count, Effort, spread
from torture.worlds import CHAIN_PLACE

import bfinfra
from bfinfra import worlds
from bfinfra.sandbox import running, stop

TRIALS = {signal.SIGINT: 200, signal.SIGTERM: 100}
SHARE = 3
FRESH = 5  # every fifth begins with a fresh HOME
HEARD = 0.3  # seconds: until a machine that does other things too has delivered a signal
SLOW, SLOWER = 0.1, 0.6  # seconds that a write takes, and all of them side by side
CODE = f'File "{Path(bfinfra.__file__).parent}'
"""What a traceback names as soon as any code of bfinfra ran."""
NARROW = ("--yes", "--parallelism", "2")

Trial = tuple[signal.Signals, int]


def counts(effort: Effort) -> Iterator[Count]:
    trials = [
        (number, turn) for number, times in TRIALS.items() for turn in range(effort.number(times, SHARE))
    ]
    yield from spread(struck, trials, effort, processes=2)


def struck(trials: list[Trial], effort: Effort) -> list[Count]:
    """A share of the trials, on a desk of its own."""
    found = {number: Count(f"`{CHAIN_PLACE.name}`, {number.name} at a random instant") for number in TRIALS}
    with desk(CHAIN_PLACE, effort.folder) as at:
        began = time.monotonic()
        alone = at.run("apply", *NARROW)
        assert alone.end() == 0, alone.output()
        longest, whole = time.monotonic() - began, world(at.sandbox)
        lines = at.journal()
        writing = (
            lines[-1]["at"] - next(line["at"] for line in lines if line["event"] == "StepBegun") + SLOWER
        )
        for number, turn in trials:
            count, chance = found[number], effort.chance(f"{number} {turn}")
            fresh = turn % FRESH == 0
            amid = turn % 2 == 1
            after = chance.uniform(0.0, writing if amid else longest * (2 if fresh else 1))
            with count.trial(
                f"{after:.3f} s after {'its first step began' if amid else 'its start'}"
                f"{', with a fresh HOME' if fresh else ''}"
            ):
                one(at, number, after, count, fresh=fresh, amid=amid)
                finished(at, whole)
    return list(found.values())


def one(at: Desk, number: signal.Signals, after: float, count: Count, *, fresh: bool, amid: bool) -> None:
    """One signal; what it must leave."""
    state = worlds.state(at.place.world)
    if fresh:
        stop(state)
        seed = (state / "seed").read_bytes()  # the passwords of the world that was to be
        shutil.rmtree(state)
        state.mkdir(0o700)
        (state / "seed").write_bytes(seed)
    else:
        at.sandbox.reset()
        at.sandbox.faults({"api": "*", "writes": True, "do": {"delay": SLOW}})
    before = len(at.journal())
    run = at.start("apply", *NARROW)
    if amid:
        until(
            lambda: (
                run.process.poll() is not None
                or any(line["event"] == "StepBegun" for line in at.journal()[before:])
            ),
            "the first step",
        )
    time.sleep(after)
    at_signal = time.time()
    run.process.send_signal(number)
    ended = run.end()
    output = run.output()
    count.add(
        {0: "had ended before", 128 + number: "stopped"}.get(
            ended, "among its imports or in its last moment"
        ),
        1,
    )
    interrupted = "KeyboardInterrupt" in output and CODE not in output  # in Python's own start
    unborn = ended == -number or (ended == 1 and interrupted)
    assert unborn or ended in (0, 128 + number), f"exit {ended}: {output[-500:]}"
    assert "Exception ignored" not in output, output[-1000:]
    assert "Traceback" not in output or unborn, output[-1000:]
    lines = at.journal()[before:]
    started, done = (
        [line for line in lines if line["event"] == event] for event in ("StepBegun", "StepEnded")
    )
    assert len(started) == len(done), "a step that ran was not finished"
    assert ended == 0 or not [line for line in started if line["at"] > at_signal + HEARD], (
        "a step began after the signal"
    )
    if found := running(state):
        at.sandbox = found
        last = found.tally()["last"]
        assert not last or last <= max((line["at"] for line in done), default=0.0), (
            "a write came after the last step"
        )
        if ended == 128 + number:
            count.add("after its first write", bool(done))


def finished(at: Desk, whole: str) -> None:
    """The next apply ends well in the world that was to be, and no session stays open."""
    run = at.run("apply", *NARROW)
    assert run.end() == 0, run.out.read_text()[-1000:] + run.output()
    found = running(worlds.state(at.place.world))
    assert found is not None
    at.sandbox = found
    now = world(found)
    assert now == whole, difference(now, whole)
    assert found.sessions()["vcenter"] == []
