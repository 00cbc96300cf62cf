"""drift: show what differs from the site; only reads servers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    from bfinfra.cli.screen import Attempt, Screen
    from bfinfra.model.drift import Report
    from bfinfra.model.site import Site


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.targets(arguments.site(arguments.verb(verbs, "drift", about, run)))
    parser.add_argument(
        "--changes-only",
        action="store_true",
        help="report only drift that started or ended since the last check on this machine",
    )
    parser.add_argument("--news", dest="changes_only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--forget", action="store_true", help="don't store the result for the next check")
    parser.add_argument(
        "--junit", metavar="FILE", help="also write a JUnit report with one test case per resource"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="also write one self-contained HTML page with a picture of the site"
    )


def run(args: argparse.Namespace) -> int:
    """Show what differs, who changed it, and since when; returns the exit code."""
    from bfinfra.app.drift import drift
    from bfinfra.cli.findings import exit_code, notify
    from bfinfra.cli.screen import Screen, all_of
    from bfinfra.render import drift as render

    context.can_write(args, args.junit, args.html)
    site, run_context = context.load(args)
    found = drift(site, targets=context.targets(args), context=run_context)
    screen = Screen.of(args)
    if not args.changes_only or found.partial or found.blind or found.new or found.ended:
        screen.show(
            lambda style: (
                render.changes(found, style)
                if args.changes_only and not (found.blind or found.partial)
                else render.text(found, style)
            ),
            lambda: render.data(found),
            markdown=lambda style: render.markdown(found, style),
            lines=lambda: render.lines(found),
        )
    with all_of() as attempt:
        _write_reports(args, site, found, screen, attempt)
        reported = notify(site, found, run_context, screen)
        if not args.forget:
            _remember(found, screen, reported=reported)
    return exit_code(found)


def _write_reports(
    args: argparse.Namespace, site: Site, found: Report, screen: Screen, attempt: Attempt
) -> None:
    if args.junit:
        from bfinfra.render.junit import junit

        attempt(lambda: screen.write(args.junit, junit(found)))
    if args.html:
        from bfinfra.render.page import page

        attempt(
            lambda: screen.page(
                args.html, site, lambda before, style: page(found, site.resources, before, style)
            )
        )


def _remember(found: Report, screen: Screen, *, reported: bool) -> None:
    """Keep what the check saw. A check that can't is still a check: the next one reports everything as
    new.
    """
    from bfinfra.app.drift import remember
    from bfinfra.model.errors import BfinfraError

    try:
        remember(found, reported=reported)
    except (BfinfraError, OSError) as error:
        screen.say(f"the result can't be kept for the next check: {error}")
