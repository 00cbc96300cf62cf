"""Hostile input is refused in words.

The inputs are site files (from the schema with errors inserted, and `specs/` with bytes changed) and archives
(OVAs and tokens with links, devices, sparse files, duplicates, wrong sizes, path traversal, entities,
compression bombs). They go through the command line. During plans and drifts, servers also answer with other
types, shapes, statuses, encodings and sizes. No input may cause a traceback, take more than 5 s of processor
time, bring the process over 500 MB, print anything that controls a terminal, or leave a file behind.
"""

from __future__ import annotations

import multiprocessing
import resource
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from bad_input import fuzz, hostile, lies
from kinds.lifecycle import EXAMPLES, by_ansible
from torture.counting import Count, Effort

from bfinfra import sandbox

SILENT = {"client_image", "container_image", "bitfusion_token", "linux_host", *filter(by_ansible, EXAMPLES)}
"""Kinds without a server that could lie over HTTP."""
FUZZED = (
    ("site files through validate, graph, plan, drift and history", hostile.sites, 20_000, 300),
    ("broken OVAs through `ova inspect`, one in three verified whole", hostile.ovas, 1_500, 100),
    ("broken token archives through `plan`", hostile.tokens, 1_000, 60),
    ("changed kubeconfigs, manifests, certificates and saved plans", hostile.files_of_others, 2_000, 60),
    ("broken archives of charts through their reader", hostile.charts, 1_500, 60),
    ("broken archives of images through their reader", hostile.images, 1_000, 60),
    ("broken zips of vCenter's authorities through their reader", hostile.certificates, 1_000, 60),
    ("packed bodies of HTTP answers through the transport", hostile.packed_answers, 2_000, 60),
)


LIE = "lies of servers during a plan or drift of `{}`"
RECORDING = threading.Lock()  # the examples are sites of one name, and one machine applies one at a time
LIES, LIES_SHARE = 250, 20  # of each kind's example
BATCH = 1_000
Outcome = tuple[str, fuzz.Found]


def counts(effort: Effort) -> Iterator[Count]:
    with ThreadPoolExecutor(2) as both:  # each trial is in a process of its own
        lines = [
            fuzzed(both, what, part, effort.number(whole, share), effort)
            for what, part, whole, share in FUZZED
            if effort.wants(what)
        ]
        kinds = effort.some(sorted(set(EXAMPLES) - SILENT), 2)
        lied = [both.submit(lied_to, kind, effort) for kind in kinds if effort.wants(LIE.format(kind))]
        yield from (together(each) for each in (*lines, *([each] for each in lied)))


def lied_to(kind: str, effort: Effort) -> Outcome:
    """Plans and drifts of one kind's example, while one to three answers of its servers are not what they
    should be.
    """
    folder = effort.folder / kind
    running = sandbox.start(sandbox.SMALL_WORLD, folder / "sandbox", pace=0)
    try:
        with RECORDING:
            talk = lies.recorded(EXAMPLES[kind], running, folder / "site")
    finally:
        sandbox.stop(folder / "sandbox")
    return _apart(LIE.format(kind), lies.lied_to, talk, effort.number(LIES, LIES_SHARE), effort.seed)


def fuzzed(
    pool: ThreadPoolExecutor,
    what: str,
    part: Callable[[int, int, Path], fuzz.Found],
    times: int,
    effort: Effort,
) -> list[Future[Outcome]]:
    """In batches, each with a seed of its own: what the fuzzer remembers of its inputs grows with them."""
    sizes = [min(BATCH, times - at) for at in range(0, times, BATCH)]
    return [
        pool.submit(
            _apart, what, part, size, effort.seed + number, effort.folder / f"{part.__name__}-{number}"
        )
        for number, size in enumerate(sizes)
    ]


def _apart(what: str, part: Callable[..., fuzz.Found], *given: object) -> Outcome:
    """In a process of its own, so that the memory is its own too, and bounded."""
    with multiprocessing.get_context("spawn").Pool(1, _bounded) as pool:
        return what, pool.apply(part, given)


def _bounded() -> None:
    """What would take the machine along fails instead, which is a find."""
    resource.setrlimit(resource.RLIMIT_DATA, (2 * fuzz.MOST, 2 * fuzz.MOST))


def together(batches: Sequence[Future[Outcome]]) -> Count:
    """All batches of a line."""
    outcomes = [each.result() for each in batches]
    count, found = Count(outcomes[0][0]), [each for _, each in outcomes]
    for each in found:
        count.take(Count(count.what, each.tried, each.broken, dict(each.tally)))
    count.figures |= {
        "slowest": f"{max(each.slowest for each in found):.2f} s",
        "memory taken at most": f"{max(each.peak for each in found) >> 20} MiB",
    }
    return count
