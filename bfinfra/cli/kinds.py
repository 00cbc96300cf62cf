"""kinds: the kinds of resources, or the fields of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs) -> None:
    """The verb and its arguments."""
    parser = arguments.verb(verbs, "kinds", "list the kinds of resources, or the fields of one", run)
    parser.add_argument("kind", nargs="?", metavar="KIND")


def run(args: argparse.Namespace) -> int:
    """List them, or describe the one that is named; 0."""
    import difflib

    from bfinfra import kinds as registry
    from bfinfra.cli.screen import Screen
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.render import kinds as render

    if args.kind and args.kind not in registry.names():
        near = difflib.get_close_matches(args.kind, registry.names(), 1)
        raise BfinfraError(
            Problem(
                f"there is no kind {args.kind}",
                next=f"did you mean {near[0]}?" if near else "bfinfra kinds lists them",
            )
        )
    found = {name: registry.kind(name) for name in ([args.kind] if args.kind else registry.names())}
    Screen.of(args).show(
        lambda style: (
            render.one(args.kind, found[args.kind], style) if args.kind else render.table(found, style)
        ),
        lambda: render.data(found),
    )
    return 0
