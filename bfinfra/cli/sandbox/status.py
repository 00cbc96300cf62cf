"""sandbox status: show where a sandbox's servers listen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    arguments.world(arguments.verb(inner, "status", "show where its servers listen", run))


def run(args: argparse.Namespace) -> int:
    """Show the running sandboxes; returns 0."""
    from bfinfra import sandbox
    from bfinfra.cli.sandbox.folders import named
    from bfinfra.cli.sandbox.shown import show

    show(args, {folder: found for folder in named(args) if (found := sandbox.running(folder))})
    return 0
