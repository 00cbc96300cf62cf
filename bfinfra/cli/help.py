"""help: of bfinfra, or of one command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "help", about, run)
    parser.add_argument("words", nargs="*", metavar="COMMAND")


def run(args: argparse.Namespace) -> int:
    """Print the same as --help; returns 0."""
    from bfinfra.cli.main import main

    return main([*args.words, "--help"])
