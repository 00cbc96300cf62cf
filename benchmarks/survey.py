"""How often planning asks each server, for 2 and for 200 resources, on the sandbox: .venv/bin/python
benchmarks/survey.py [MANY]

Counted are the requests that leave bfinfra. Absent: nothing stands yet; standing: all was applied before
(that takes a minute or two).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import given

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # the worlds and sites are those of tests/test_reads.py

import grown  # noqa: E402 - found by the line above

import bfinfra  # noqa: E402 - as above
from bfinfra.sandbox import Running, start, stop  # noqa: E402 - as above

FEW = 2
HEAD = f"{'':<52}{'resources':>10}{'requests':>10}{'seconds':>9}  by server"
PARTS: dict[
    str, tuple[Callable[[Path, int], Path], int]
] = {  # how to make the site; resources that one of its units has
    "gpu_host and bitfusion_server": (grown.servers, 2),
    "namespace, token_secret, registry_credential, workload": (grown.in_a_cluster, 4),
    "supervisor_namespace": (grown.supervisor_namespaces, 1),
}


def row(name: str, site: Path, world: Running) -> str:
    began = time.perf_counter()
    plan, asked = grown.reads(site, world)
    seconds = time.perf_counter() - began
    assert not plan.problems, plan.problems
    counts = {server: count.total() for server, count in sorted(asked.items())}
    return (
        f"{name:<52}{len(plan.items):>10}{sum(counts.values()):>10}{seconds:>9.2f}  "
        f"{', '.join(f'{server} {n}' for server, n in counts.items())}"
    )


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
        finally:
            stop(folder / "state")


if __name__ == "__main__":
    main()
