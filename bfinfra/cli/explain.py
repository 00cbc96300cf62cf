"""explain: describe a kind of resource, or one of its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, kinds

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "explain", about, run)
    parser.add_argument("what", metavar="KIND[.FIELD]", help="such as vm_class, or vm_class.memory")


def run(args: argparse.Namespace) -> int:
    """Print the description; returns 0."""
    from bfinfra.cli.screen import Screen
    from bfinfra.render import kinds as render

    name, _, field = args.what.replace("/", ".").partition(".")
    kind = kinds.known(name)
    if not field:
        args.kind = name
        return kinds.run(args)
    found = render.field_and_below(name, kind, field)
    Screen.of(args).show(
        lambda style: render.field_text(name, kind, found, style), lambda: render.field_data(name, found)
    )
    return 0
