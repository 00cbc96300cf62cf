"""doctor: find whatever would stop an apply; never writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    arguments.site(arguments.verb(verbs, "doctor", about, run))


def run(args: argparse.Namespace) -> int:
    """Returns 1 if anything is bad, else 0."""
    from bfinfra.app.diagnose import diagnose
    from bfinfra.cli.screen import Screen
    from bfinfra.model.finding import Health
    from bfinfra.render import findings

    site, run_context = context.load(args)
    found = diagnose(site, context=run_context)
    Screen.of(args).show(lambda style: findings.text(found, style), lambda: findings.data(site.name, found))
    return 1 if any(each.health is Health.BAD for each in found) else 0
