"""apply: run the plan of a site, or a saved plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """The verb and its arguments."""
    parser = arguments.verb(verbs, "apply", about, run)
    arguments.allowances(arguments.execution(parser, "a site's files or folders, or one saved plan"))


def run(args: argparse.Namespace) -> int:
    """3 where something still waits."""
    from bfinfra.cli.ask import must_be_able
    from bfinfra.cli.execute import execute
    from bfinfra.engine import saved
    from bfinfra.model.errors import BfinfraError, Problem

    must_be_able(args)
    if not any(saved.is_plan(Path(path)) for path in args.sites):
        return execute(args)
    if len(args.sites) > 1:
        raise BfinfraError(
            Problem("a saved plan stands alone", ", ".join(args.sites), next="bfinfra apply PLANFILE")
        )
    announced = saved.Saved.read(Path(args.sites[0]))
    args.sites = list(announced.files)
    return execute(args, saved=announced, destroy=announced.destroy)
