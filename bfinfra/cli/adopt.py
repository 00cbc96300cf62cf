"""adopt: put the mark on an existing object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "adopt", about, run)
    arguments.execution(parser)
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        help="kind/name, such as supervisor_namespace/cnasg; all: every unmarked object of the site",
    )
    arguments.allowances(parser)


def run(args: argparse.Namespace) -> int:
    """Returns 0; 1 on errors; 3 if something is not ready yet."""
    from bfinfra.cli.execute import execute

    if args.address == "all":
        return execute(args, adopt_all=True)
    return execute(args, adopt=frozenset({context.address(args.address)}))
