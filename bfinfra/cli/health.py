"""health: run FlexDirect's own checks on each machine of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    arguments.site(arguments.verb(verbs, "health", about, run))


def run(args: argparse.Namespace) -> int:
    """Returns 1 if a machine is worse than its site accepts, else 0."""
    from bfinfra.app.health import health
    from bfinfra.cli.screen import Screen
    from bfinfra.render import health as render

    site, run_context = context.load(args)
    found = health(site, context=run_context)
    Screen.of(args).show(lambda style: render.text(found, style), lambda: render.data(site.name, found))
    return 0 if all(each.good for each in found) else 1
