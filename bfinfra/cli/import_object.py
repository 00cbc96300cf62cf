"""import: describe one existing object in the site's file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.site(arguments.verb(verbs, "import", about, run))
    parser.add_argument("address", metavar="ADDRESS", help="kind/name, such as vm_class/gpu-small")


def run(args: argparse.Namespace) -> int:
    """Returns 0. Writes nothing if the object can't be described."""
    from bfinfra.app.import_object import import_object
    from bfinfra.app.load import load
    from bfinfra.cli.screen import Screen
    from bfinfra.kinds import kind
    from bfinfra.render import init as render

    key = context.address(args.address)
    site, run_context = context.load(args)
    running = run_context.sandbox
    file, text = import_object(
        site, key, lambda: load(*map(Path, args.sites), sandbox=running), context=run_context
    )
    Screen.of(args).show(
        lambda _: render.imported(key, file, text, managed=kind(key.kind).managed),
        lambda: render.imported_data(key, file),
    )
    return 0
