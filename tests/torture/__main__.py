"""Runs parts, prints their figures, writes their sections; exit 1 where anything did not hold.

A part is a file in parts/: its docstring heads its section of docs/explanation/reliability.md, its `counts(effort)`
yields a Count a line.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from torture import page, parts
from torture.counting import Effort

PARTS = sorted(each.name for each in pkgutil.iter_modules(parts.__path__))


def run(part: str, *, share: bool, seed: int, only: str = "", lasts: int = 0) -> page.Ran:
    """One part, its lines printed as they come."""
    module = importlib.import_module(f"torture.parts.{part}")
    began, counts = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix=f"torture-{part}-") as folder:
        os.environ["BFINFRA_STATE_HOME"] = str(Path(folder) / "state")
        for count in module.counts(Effort(share, seed, Path(folder), only, lasts)):
            counts.append(count)
            figures = f"  ({text})" if (text := page.figures(count)) else ""
            print(
                f"{count.tried - len(count.broken):>6} of {count.tried:<6} {count.what}{figures}", flush=True
            )
            for each in count.broken:
                print(f"       BROKEN {each}", flush=True)
    took = time.monotonic() - began
    return page.Ran(part, module.__doc__ or part, seed, took, counts, share, only, lasts)


def main(argv: Sequence[str] | None = None) -> int:
    """One command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="script/torture", description="What an apply survives, tried and counted."
    )
    parser.add_argument(
        "part", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named"
    )
    parser.add_argument(
        "--share",
        action="store_true",
        help="a bounded share, as CI runs it; docs/explanation/reliability.md stays as it is",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="with --share or --only: these figures go into docs/explanation/reliability.md all the same",
    )
    parser.add_argument("--seed", type=int, default=None, help="of everything left to chance; printed")
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help="only the lines that hold this text; docs/explanation/reliability.md stays as it is",
    )
    parser.add_argument(
        "--seconds", type=int, default=0, metavar="N", help="how long what lasts is tried: a watch of an hour"
    )
    args = parser.parse_args(argv)
    if unknown := sorted({*args.part} - {*PARTS}):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    seed = args.seed if args.seed is not None else secrets.randbelow(1 << 32)
    broken = 0
    for part in args.part or PARTS:
        print(f"{part} (seed {seed})", flush=True)
        ran = run(part, share=args.share, seed=seed, only=args.only, lasts=args.seconds)
        broken += ran.broken
        print(f"{'':>6} {ran.seconds:.0f} s, {ran.broken} broken", flush=True)
        if args.write or not (args.share or args.only or args.seconds):
            page.write(ran, PARTS)
    return 1 if broken else 0


if __name__ == "__main__":  # a process that this one starts imports it again
    sys.exit(main())
