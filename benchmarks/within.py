"""The survey of a drift alone, inside its process: python benchmarks/within.py SITE    prints its seconds,
from the first byte asked to all states ready

What the process does meanwhile, such as importing kinds, is in it; what it does before (start, the site's
files) and after (deciding, saying) is not.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import bfinfra
from bfinfra.app import wiring

FROM, TO = "asked", "seen"


def noting(times: dict[str, float]) -> Any:
    """A filling that notes when the first request leaves."""

    class Noting:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            times.setdefault(FROM, time.perf_counter())
            return self._inner.handle_request(request)

        def close(self) -> None:
            self._inner.close()

    return Noting


def main(site: str) -> None:
    times: dict[str, float] = {}
    seen = wiring.observe

    def surveyed(*given: Any) -> Any:
        world = seen(*given)
        times[TO] = time.perf_counter()
        return world

    wiring.observe = surveyed
    found = bfinfra.drift(bfinfra.load(site), context=bfinfra.RunContext(middleware=(noting(times),)))
    assert not found.blind, found.problems
    print(times[TO] - times[FROM])


if __name__ == "__main__":
    main(sys.argv[1])
