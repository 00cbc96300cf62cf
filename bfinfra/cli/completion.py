"""completion: a completion script for a shell."""

from __future__ import annotations

import argparse
from pathlib import Path

from bfinfra.cli import arguments, output

SHELLS = ("bash", "zsh", "fish")


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "completion", about, run)
    parser.add_argument("shell", choices=SHELLS)
    parser.add_argument("--addresses", nargs=argparse.REMAINDER, metavar="WORD", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print the script; returns 0. With --addresses, which the scripts use, print the addresses of the site
    named in the words.
    """
    if args.addresses is not None:
        return _addresses(args.addresses)
    from bfinfra.cli.parser import build
    from bfinfra.cli.shells import script

    output.exact(script(build(), args.shell))
    return 0


def _addresses(words: list[str]) -> int:
    """One address a line; nothing for a site with problems, which a completing shell can't show."""
    from bfinfra.app.load import load
    from bfinfra.model.errors import BfinfraError

    files = [word for word in words if word.endswith((".yaml", ".yml")) and Path(word).is_file()]
    try:
        output.exact("\n".join(map(str, load(*(files or arguments.DEFAULT_SITES)).resources)))
    except BfinfraError:
        return 1
    return 0
