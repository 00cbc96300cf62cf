"""graph: show the order of the resources."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from bfinfra.cli import arguments, context

FORMS = ("dot", "mermaid", "svg", "html")


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
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
    """Print the order, as a tree or in another form; returns 0."""
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
