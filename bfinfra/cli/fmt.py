"""fmt: a site's files in the canonical layout."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse

    from bfinfra.app.layout import Layout

DIFFERENT = 2


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "fmt", about, run)
    parser.add_argument(
        "sites",
        nargs="*",
        default=arguments.DEFAULT_SITES,
        metavar="FILE",
        help="files, or folders with YAML files in them; - formats standard input to standard output; "
        "default: site.yaml",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; end with 2 if a file would change"
    )
    parser.add_argument("--diff", action="store_true", help="write nothing; show what would change")


def run(args: argparse.Namespace) -> int:
    """Format the files and print the names of those that change. Writes none where one can't be read."""
    from bfinfra.app.layout import layouts
    from bfinfra.cli.screen import Screen
    from bfinfra.model.files import edit
    from bfinfra.render import data
    from bfinfra.spec.files import PIPED

    found = layouts([Path(each) for each in args.sites])
    changed = [each for each in found if each.after != each.before]
    shown = "".join(map(_diff, changed)) if args.diff else "".join(f"{each.file}\n" for each in changed)
    if not (args.check or args.diff):
        for each in changed:
            if each.file != PIPED:
                edit(each.file, each.after)
        if piped := next((each.after for each in found if each.file == PIPED), ""):
            shown = piped
    listed = data.document("fmt", changed=[str(each.file) for each in changed])
    if shown or args.output != "text":
        Screen.of(args).show(lambda _: shown.removesuffix("\n"), lambda: listed)
    return DIFFERENT if args.check and changed else 0


def _diff(found: Layout) -> str:
    names = (str(found.file), f"{found.file} (formatted)")
    lines = difflib.unified_diff(found.before.splitlines(), found.after.splitlines(), *names, lineterm="")
    return "".join(f"{line}\n" for line in lines)
