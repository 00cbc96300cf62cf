"""show: print a saved plan as `plan` did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "show", about, run)
    parser.add_argument("plan", metavar="PLAN", help="the file that bfinfra plan --out wrote")
    parser.add_argument("--html", metavar="FILE", help="also write it as one self-contained HTML page")


def run(args: argparse.Namespace) -> int:
    """Print the plan; returns 0."""
    from bfinfra.app.saved import SavedPlan
    from bfinfra.app.saved_plan import plan_of
    from bfinfra.cli.screen import Screen, unit
    from bfinfra.render.style import Style

    context.can_write(args, args.html)
    found, screen = plan_of(SavedPlan.read(Path(args.plan)).plan), Screen.of(args)
    screen.plan(found)
    if args.html:
        from bfinfra.render import plan_page

        screen.write(args.html, plan_page.saved(found, Style(units=unit)))
    return 0
