"""schema: print the language of sites, or of sandbox worlds, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, output

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "schema", about, run)
    parser.add_argument("--world", action="store_true", help="of the sandbox's world files instead of sites")
    parser.add_argument("--out", metavar="FILE", help="write it to this file instead of printing it")


def run(args: argparse.Namespace) -> int:
    """Print the schema, or write it to --out; returns 0."""
    from bfinfra.cli import context
    from bfinfra.cli.screen import Screen
    from bfinfra.model.files import write_named
    from bfinfra.render import data

    context.can_write(args, args.out)
    text = data.text(_of_worlds() if args.world else _of_sites())
    if not args.out:
        output.exact(text)
        return 0
    write_named(args.out, text + "\n")
    what = "world file" if args.world else "site"
    Screen.of(args).say(
        f"wrote {args.out}; a {what} uses it with the first line: # yaml-language-server: $schema={args.out}"
    )
    return 0


def _of_sites() -> Mapping[str, object]:
    from bfinfra.spec.schema import schema

    return schema()


def _of_worlds() -> Mapping[str, object]:
    from bfinfra.sandbox.world_schema import schema

    return schema()
