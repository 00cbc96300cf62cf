"""Stopped at once or out of time, it leaves nothing open, and the next apply goes on.

`bfinfra apply` runs as whole processes on the sandbox. A second SIGINT or SIGTERM, at a random instant, stops
it at once (the part `signals` tries the first). A deadline that is too short ends as "still waiting" with
exit code 3, and the next apply waits on. The server counts sessions after many runs, a third of them killed.
The next run ends the SOAP sessions that killed runs left; their REST sessions time out
(docs/explanation/flaws.md).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

from kinds.lifecycle import KILLED, apply, difference, endings, kill_at, made, world
from torture.command import Desk, desk, until
from torture.counting import Count, Effort
from torture.worlds import CHAIN_PLACE, DEMO, sandbox_of

ROUNDS, RUNS = 12, 100
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}
SLOW = 4.0  # seconds that each write takes where a second signal comes
AT_ONCE = 2.0  # seconds
PACE = 0.2  # of real time: fast, but things do take their time


def counts(effort: Effort) -> Iterator[Count]:
    with desk(DEMO, effort.folder) as at:
        began = time.monotonic()
        alone = at.run("apply", "--yes")
        assert alone.end() == 0, alone.output()
        longest, whole = time.monotonic() - began, world(at.sandbox)
        for number, code in SIGNALS.items():
            count = Count(f"`{DEMO.name}`, the second {number.name} at a random instant")
            for turn in range(effort.number(ROUNDS, 1) if effort.wants(count.what) else 0):
                at.sandbox.reset()
                after = effort.chance(f"the second {number} {turn}").uniform(0.2, longest)
                with count.trial(f"after {after:.2f} s"):
                    at_once(at, number, after, count, code)
                    finished(at, whole)
            if count.tried:
                yield count
    for count, try_ in (
        (Count(f"`{CHAIN_PLACE.name}`, a deadline of a second until all is done"), deadlines),
        (Count("sessions left"), sessions),
    ):
        if effort.wants(count.what):
            yield try_(count, effort)


def at_once(at: Desk, number: int, after: float, count: Count, code: int) -> None:
    """Two signals, the second as soon as the first was heard; it ends at once."""
    at.sandbox.faults({"api": "*", "writes": True, "do": {"delay": SLOW}})
    run = at.start("apply", "--yes")
    time.sleep(after)
    run.process.send_signal(number)
    until(
        lambda: run.process.poll() is not None or "once more stops now" in run.output(),
        "the first signal's message",
    )
    began = time.monotonic()
    if run.process.poll() is None:
        run.process.send_signal(number)
        count.add("struck twice", 1)
    ended = run.end()
    assert ended in (0, code, -number), f"exit {ended}: {run.output()[-500:]}"
    assert time.monotonic() - began < AT_ONCE, f"took {time.monotonic() - began:.1f} s"
    at.sandbox.clear_faults()


def finished(at: Desk, whole: str) -> None:
    """The next apply ends well in the world that was to be, and no session stays open."""
    run = at.run("apply", "--yes")
    assert run.end() == 0, run.out.read_text()[-1000:] + run.output()
    now = world(at.sandbox)
    assert now == whole, difference(now, whole)
    assert at.sandbox.sessions()["vcenter"] == []


def deadlines(count: Count, effort: Effort) -> Count:
    folder = effort.folder / "deadlines"
    folder.mkdir()
    with desk(CHAIN_PLACE, folder, PACE) as at:
        alone = at.run("apply", "--yes")
        assert alone.end() == 0, alone.output()
        whole, writes = world(at.sandbox), at.sandbox.tally()["written"]
        for turn in range(effort.number(3, 1)):
            at.sandbox.reset()
            with count.trial(f"round {turn}"):
                codes = [3]
                while codes[-1] == 3 and len(codes) < 60:
                    codes.append(at.run("apply", "--yes", "--deadline", "1s").end())
                count.add("still waiting", codes.count(3) - 1)
                assert codes[-1] == 0, codes
                assert at.sandbox.tally()["written"] == writes, "something was written twice"
                assert world(at.sandbox) == whole
    return count


def sessions(count: Count, effort: Effort) -> Count:
    runs, chance, killed = effort.number(RUNS, 4), effort.chance("sessions"), 0
    with sandbox_of(DEMO, effort.folder) as sandbox:
        for number in range(runs):
            undo = number % 2 == 1
            if number % 3 == 0:
                killed += (
                    kill_at(
                        DEMO.site,
                        sandbox,
                        chance.randint(1, 12),
                        chance.choice(["before", "after"]),
                        effort.folder / "killed",
                        destroy=undo,
                    )
                    == KILLED
                )
            else:
                outcome = apply(DEMO.site, sandbox, destroy=undo)
                assert made(outcome), endings(outcome)
        count.what = (
            f"`{DEMO.name}`, applied and destroyed in turn, {runs} runs, {killed} of them killed: sessions "
            "left"
        )
        before = sandbox.sessions()
        with count.trial("after the next run"):
            outcome = apply(DEMO.site, sandbox)
            assert made(outcome), endings(outcome)
            after = sandbox.sessions()
            count.figures |= {
                "SOAP, before the next run": len(before["vcenter"]),
                "SOAP, after it": len(after["vcenter"]),
                "REST, left to time out": len(after["rest"]),
            }
            assert after["vcenter"] == []
            assert len(after["rest"]) <= killed
    return count
