"""completion: a completion script for a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse

SHELLS = ("bash", "zsh", "fish")


def add(verbs: arguments.Verbs) -> None:
    """The verb and its arguments."""
    parser = arguments.verb(verbs, "completion", "print a completion script for a shell", run)
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    """Print it; 0."""
    from bfinfra.cli.parser import build
    from bfinfra.cli.shells import script

    print(script(build(), args.shell))
    return 0
