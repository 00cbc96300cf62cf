"""Hostile input is refused in words.

Site files (after the site schema with wrong things in between, and `specs/` with bytes changed) and archives (OVAs and tokens: links, devices, sparse files, doubles, lying
sizes, traversal, entities, packed bombs) go through the command line. None may end in a traceback, take more than 5 s, bring the whole process over 500 MB, put
anything on the screen that acts on a terminal, or leave a file behind.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path

from bad_input import fuzz, hostile
from torture.counting import Count, Effort

FUZZED = (
    ("site files through validate, graph, plan, drift and history", hostile.sites, 20_000, 300),
    ("broken OVAs through `ova inspect`, one in three verified whole", hostile.ovas, 1_500, 100),
    ("broken token archives through `plan`", hostile.tokens, 1_000, 60),
)


def counts(effort: Effort) -> Iterator[Count]:
    for what, part, whole, share in FUZZED:
        yield fuzzed(what, part, effort.number(whole, share), effort)


def fuzzed(what: str, part: Callable[[int, int, Path], fuzz.Found], times: int, effort: Effort) -> Count:
    """In a process of its own, so that the memory is its own too."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(part, (times, effort.seed, effort.folder / part.__name__))
    return Count(what, found.tried, found.broken, {**found.tally, "slowest": f"{found.slowest:.2f} s", "memory at most": f"{found.peak >> 20} MiB"})
