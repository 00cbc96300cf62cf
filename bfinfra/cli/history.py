"""history: show what was applied from this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    arguments.sites(arguments.verb(verbs, "history", about, run), "a site's files, or its name")


def run(args: argparse.Namespace) -> int:
    """List the runs, oldest first; returns 0."""
    from bfinfra.app.history import history
    from bfinfra.cli.screen import Screen
    from bfinfra.render import history as render

    name = context.named(args) or context.site(args).name
    lines = list(history(name))
    Screen.of(args).show(lambda style: render.history(lines, style), lambda: render.data(name, lines))
    return 0
