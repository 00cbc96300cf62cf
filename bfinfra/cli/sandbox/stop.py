"""sandbox stop: stop a sandbox; its state is kept for the next start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    arguments.world(arguments.verb(inner, "stop", "stop it; its state is kept", run))


def run(args: argparse.Namespace) -> int:
    """Stop the running sandboxes; returns 0."""
    from bfinfra import sandbox, worlds
    from bfinfra.cli.sandbox.folders import named
    from bfinfra.cli.screen import Screen

    folders = [folder for folder in named(args) if sandbox.running(folder)]
    with worlds.spoken():
        for folder in folders:
            sandbox.stop(folder)
    Screen.of(args).say(
        f"stopped {', '.join(f.name for f in folders)}" if folders else "no sandbox is running"
    )
    return 0
