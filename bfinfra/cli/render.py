"""render: print the site with its overlays merged and its values filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    arguments.site(arguments.verb(verbs, "render", about, run))


def run(args: argparse.Namespace) -> int:
    """Print a valid site; returns 0."""
    from bfinfra.cli.screen import Screen
    from bfinfra.render import site as render
    from bfinfra.spec.resolve import merged

    found, _ = context.load(args)
    root = merged(found)
    Screen.of(args).show(
        lambda style: render.text(root, origins=style.verbose).rstrip("\n"),
        lambda: render.data(found.name, root),
    )
    return 0
