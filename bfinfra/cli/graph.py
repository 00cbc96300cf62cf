"""graph: what waits for what."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from bfinfra.cli import arguments, context

FORMS = ("dot", "mermaid", "svg", "html")


def add(verbs: arguments.Verbs, about: str) -> None:
    """The verb and its arguments."""
    parser = arguments.verb(verbs, "graph", about, run, forms=FORMS)
    arguments.sites(parser)
    parser.add_argument(
        "--dot",
        dest="output",
        action="store_const",
        const="dot",
        default=argparse.SUPPRESS,
        help="the same as --output dot, for Graphviz",
    )


def run(args: argparse.Namespace) -> int:
    """Show the order, as a tree or in another form; 0."""
    from bfinfra.cli.screen import Screen
    from bfinfra.engine.graph import waits
    from bfinfra.render import graph as render

    site = context.site(args)
    before = waits(site.resources, {})
    forms: dict[str, Callable[[], str]] = {
        "dot": lambda: render.dot(before, site.name),
        "mermaid": lambda: render.mermaid(before),
        "svg": lambda: render.svg(before, site.resources),
        "html": lambda: render.page(before, site.resources, site.name),
    }
    Screen.of(args).show(
        lambda _: forms.get(args.output, lambda: render.tree(before))(),
        lambda: render.data(before, site.name),
    )
    return 0
