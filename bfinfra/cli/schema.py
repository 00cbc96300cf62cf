"""schema: print the site language as JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "schema", about, run)
    parser.add_argument("--out", metavar="FILE", help="write it to this file instead of printing it")


def run(args: argparse.Namespace) -> int:
    """Print the schema, or write it to --out; returns 0."""
    from bfinfra.cli.screen import Screen
    from bfinfra.render import data
    from bfinfra.spec.schema import schema

    text = data.text(schema())
    if not args.out:
        print(text)
        return 0
    Path(args.out).write_text(text + "\n")
    Screen.of(args).say(
        f"wrote {args.out}; a site uses it with the first line: # yaml-language-server: $schema={args.out}"
    )
    return 0
