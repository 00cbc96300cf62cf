"""destroy: delete what the site made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "destroy", about, run)
    arguments.targets(arguments.allowances(arguments.execution(parser)))


def run(args: argparse.Namespace) -> int:
    """Returns 0; 1 on errors; 3 if something is not ready yet."""
    from bfinfra.cli.execute import execute

    return execute(args, destroy=True, targets=context.targets(args))
