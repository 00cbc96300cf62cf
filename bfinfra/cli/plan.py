"""plan: show what apply would do; never writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse

DIFFERENT = 2


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.targets(arguments.site(arguments.verb(verbs, "plan", about, run)))
    parser.add_argument(
        "--out", metavar="FILE", help="save the plan; apply FILE then does exactly this, or nothing"
    )
    parser.add_argument("--html", metavar="FILE", help="also write it as one self-contained HTML page")
    parser.add_argument("--destroy", action="store_true", help="show what destroy would do")
    parser.add_argument("--detailed-exitcode", action="store_true", help="exit with 2 if there are changes")


def run(args: argparse.Namespace) -> int:
    """Returns 1 if something could not be read or decided; 2 for changes with --detailed-exitcode; else 0."""
    from bfinfra.app.plan import plan
    from bfinfra.cli.screen import Screen, all_of
    from bfinfra.model.errors import BfinfraError, Problem

    context.can_write(args, args.out, args.html)
    if args.out and "-" in args.sites:
        raise BfinfraError(
            Problem(
                "a plan of a site from standard input can't be saved",
                args.out,
                "apply reads the site again",
                "put the site into a file",
            )
        )
    site, run_context = context.load(args)
    found = plan(site, destroy=args.destroy, targets=context.targets(args), context=run_context)
    undecided = bool(found.problems or found.unreadable)
    screen = Screen.of(args)

    def save() -> None:
        from bfinfra.app import saved

        saved.save_plan(Path(args.out), site, found, destroy=args.destroy)

    def page() -> None:
        from bfinfra.render import plan_page

        screen.page(
            args.html, site, lambda before, style: plan_page.plan(found, site.resources, before, style)
        )

    with all_of() as attempt:
        if args.out and not undecided:
            attempt(save)
        screen.plan(found)
        if args.html:
            attempt(page)
    return 1 if undecided else DIFFERENT if args.detailed_exitcode and found.pending else 0
