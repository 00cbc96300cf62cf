"""sandbox reset: reset a sandbox to its first state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    arguments.world(arguments.verb(inner, "reset", "reset it to its first state", run))


def run(args: argparse.Namespace) -> int:
    """Reset the sandbox, running or not; returns 0."""
    from bfinfra import sandbox, worlds
    from bfinfra.cli.sandbox.folders import the_one
    from bfinfra.cli.screen import Screen

    folder = the_one(args)
    with worlds.spoken():
        sandbox.reset(folder)
    Screen.of(args).say(f"{folder.name} is in its first state again")
    return 0
