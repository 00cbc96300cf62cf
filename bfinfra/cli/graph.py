"""graph: what waits for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """The verb and its arguments."""
    parser = arguments.sites(arguments.verb(verbs, "graph", about, run))
    parser.add_argument("--dot", action="store_true", help="for Graphviz")


def run(args: argparse.Namespace) -> int:
    """Show the order, as a tree or for Graphviz; 0."""
    from bfinfra.cli.screen import Screen
    from bfinfra.engine.graph import waits
    from bfinfra.render import graph as render

    site = context.site(args)
    before = waits(site.resources, {})
    Screen.of(args).show(
        lambda _: render.dot(before, site.name) if args.dot else render.tree(before),
        lambda: render.data(before, site.name),
    )
    return 0
