"""sandbox start: start a sandbox, or find it running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    arguments.world(arguments.verb(inner, "start", "start it, or find it running", run))


def run(args: argparse.Namespace) -> int:
    """Start the sandbox, and show where it listens; returns 0."""
    from bfinfra import sandbox, worlds
    from bfinfra.cli.sandbox.shown import show

    file = worlds.world_of(*args.sites, world=args.world or "")
    with worlds.spoken():
        found = sandbox.running(worlds.state(file)) or sandbox.start(file, worlds.state(file))
    show(args, {worlds.state(file): found})
    return 0
