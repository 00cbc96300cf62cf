"""show: print a saved plan as `plan` did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    arguments.verb(verbs, "show", about, run).add_argument(
        "plan", metavar="PLAN", help="the file that bfinfra plan --out wrote"
    )


def run(args: argparse.Namespace) -> int:
    """Print the plan; returns 0."""
    from bfinfra.app.saved import Saved
    from bfinfra.app.saved_plan import plan_of
    from bfinfra.cli.screen import Screen

    Screen.of(args).plan(plan_of(Saved.read(Path(args.plan)).plan))
    return 0
