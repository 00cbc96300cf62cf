"""schedule cron: a line of a crontab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context, output

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> arguments.Parser:
    """Add the command and its own arguments."""
    return arguments.verb(
        inner, "cron", "a line for a crontab; cron mails the drift that started or ended", run
    )


def run(args: argparse.Namespace) -> int:
    """Print the line; returns 0."""
    from bfinfra.cli.references import no_keyring
    from bfinfra.cli.schedule.check import check_of, written
    from bfinfra.render.schedule import cron

    site, _ = context.load(args)
    no_keyring(site)
    with written("a crontab"):
        output.exact(cron(check_of(args, site)))
    return 0
