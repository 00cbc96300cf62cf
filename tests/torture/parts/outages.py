"""An outage of half a minute is outlived

`bfinfra apply` runs in a network namespace of its own; the sandbox is at the other end of a virtual cable. At
a random instant of the apply the network fails for a while: the interface is down, or connections are reset
and new ones refused, or packets vanish in both directions. The apply must succeed by itself, and the servers
must be as after an undisturbed apply. An outage before the first answer of a server is different: `plan` says
within seconds that the server can't be reached.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

from kinds.lifecycle import difference, world
from torture.counting import Count, Effort, spread
from torture.far import Cable, cable
from torture.worlds import CHAIN_PLACE

from bfinfra.sandbox import Running, start, stop

HOWS = ("interfaces down", "reset", "black hole")
SECONDS = (5, 20, 30)
TRIALS, SHARE = 20, 1
SIDE_BY_SIDE = 6
LONGEST = 240  # seconds for an apply

Trial = tuple[str, int, int]


def counts(effort: Effort) -> Iterator[Count]:
    if (
        shutil.which("ip") is None
        or subprocess.run(["ip", "netns", "add", "bfo-try"], capture_output=True, check=False).returncode
    ):
        sys.stderr.write("outages: not tried: network namespaces take root and iproute2\n")
        return
    subprocess.run(["ip", "netns", "del", "bfo-try"], check=True)
    seconds = SECONDS[:1] if effort.share else SECONDS
    trials = [
        (how, length, turn)
        for turn in range(effort.number(TRIALS, SHARE))
        for how, length in itertools.product(HOWS, seconds)
        if effort.wants(line(how, length))
    ]
    yield from spread(outages, trials, effort, processes=SIDE_BY_SIDE)


def line(how: str, length: int) -> str:
    return f"`{CHAIN_PLACE.name}`, {how} for {length} s"


def outages(trials: list[Trial], effort: Effort) -> list[Count]:
    """A share of the trials, with a sandbox and a cable of its own."""
    counted: dict[str, Count] = {}
    state = effort.folder / "sandbox"
    sandbox = start(CHAIN_PLACE.world, state)
    try:
        with cable(int(effort.folder.name.rpartition("-")[2]) + 1, state) as line_to:
            began = time.monotonic()
            struck(line_to, sandbox, effort, "", 0, 0)
            longest, whole = time.monotonic() - began, world(sandbox)
            for how, length, turn in trials:
                count = counted.setdefault(line(how, length), Count(line(how, length)))
                after = effort.chance(f"{how} {length} {turn}").uniform(
                    0.0, longest / 2
                )  # the other half is its start and its look
                with count.trial(f"after {after:.2f} s, number {turn}"):
                    sandbox.reset()
                    struck(line_to, sandbox, effort, how, length, after)
                    now = world(sandbox)
                    assert now == whole, difference(now, whole)
    finally:
        stop(state)
    return list(counted.values())


def struck(line_to: Cable, sandbox: Running, effort: Effort, how: str, length: int, after: float) -> None:
    """One apply, with an outage so long after its plan was approved; none without `how`."""
    marker, out = effort.folder / "approved", effort.folder / "out"
    marker.unlink(missing_ok=True)
    run = line_to.apply(CHAIN_PLACE.site, sandbox.state, marker, out)
    while how and not marker.exists() and run.poll() is None:
        time.sleep(0.01)
    if how:
        time.sleep(after)
        line_to.cut(how)
        try:
            time.sleep(length)
        finally:
            line_to.mend(how)
    code = run.wait(LONGEST)
    assert code == 0, out.read_text()[-1500:]
