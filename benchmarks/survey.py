"""How often planning asks each server, for 2 and for 200 resources, on the sandbox, and a check for drift of
200: .venv/bin/python benchmarks/survey.py [MANY]

Counted are the requests that leave bfinfra. Absent: nothing stands yet; standing: all was applied before
(that takes some minutes). Seconds are those of the sandbox too, which shares the processors.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import given

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # the worlds and sites are those of tests/test_reads.py

import grown  # noqa: E402 - found by the line above

import bfinfra  # noqa: E402 - as above
from bfinfra.sandbox import Running, start, stop  # noqa: E402 - as above

FEW = 2
HEAD = f"{'':<52}{'resources':>10}{'requests':>10}{'seconds':>9}{'processor':>11}  by server"
PARTS: dict[
    str, tuple[Callable[[Path, int], Path], int]
] = {  # how to make the site; resources that one of its units has
    "gpu_host and bitfusion_server": (grown.servers, 2),
    "namespace, token_secret, registry_credential, workload": (grown.in_a_cluster, 4),
    "supervisor_namespace": (grown.supervisor_namespaces, 1),
    "vks_cluster": (grown.vks_clusters, 1),
}


def row(name: str, site: Path, world: Running) -> str:
    began = clocks()
    plan, asked = grown.reads(site, world)
    assert not plan.problems, plan.problems
    return line(name, len(plan.items), asked, began)


def clocks() -> tuple[float, float]:
    """Seconds, and those that this process had a processor."""
    return time.perf_counter(), time.process_time()


def drift(site: Path, world: Running) -> str:
    asked: dict[str, Counter[str]] = {}
    loaded = bfinfra.load(site, sandbox=world)
    context = bfinfra.RunContext(sandbox=world, middleware=(grown.counting(asked),))
    began = clocks()
    found = bfinfra.drift(loaded, context=context)
    assert not found.found, found.found
    assert not found.unreadable, found.unreadable
    return line("drift", found.agreed, asked, began)


def line(name: str, resources: int, asked: Mapping[str, Counter[str]], began: tuple[float, float]) -> str:
    """One line of the table: the five servers that are asked most, and how many others there are."""
    seconds, processor = (now - then for now, then in zip(clocks(), began, strict=True))
    counts = sorted(((count.total(), server) for server, count in asked.items()), reverse=True)
    named = [f"{server} {count}" for count, server in counts[:5]]
    others = [f"{len(counts) - 5} more"] if len(counts) > 5 else []
    total = sum(count for count, _ in counts)
    figures = f"{resources:>10}{total:>10}{seconds:>9.2f}{processor:>11.2f}"
    return f"{name:<52}{figures}  {', '.join((*named, *others))}"


def apply(site: Path, world: Running) -> None:
    allow = bfinfra.Allow(every_disruption=True)
    outcome = bfinfra.apply(
        bfinfra.load(site, sandbox=world), approve=lambda _: allow, context=bfinfra.RunContext(sandbox=world)
    )
    assert outcome.ending == "done", [str(each.problem) for each in outcome.endings.values() if each.problem]


def main() -> None:
    many = given.numbers(__doc__, many=200).many
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["BFINFRA_STATE_HOME"] = str(folder / "home")
        world = start(grown.world(folder, many), folder / "state", pace=0)
        try:
            for title, (make, unit) in PARTS.items():
                world.reset()
                print(f"\n{title}\n{HEAD}")
                for count in (FEW, many // unit):
                    print(row("absent", make(folder, count), world))
                for count in (FEW, many // unit):
                    apply(make(folder, count), world)
                    print(row("standing", make(folder, count), world), flush=True)
                print(drift(make(folder, many // unit), world), flush=True)
        finally:
            stop(folder / "state")


if __name__ == "__main__":
    main()
