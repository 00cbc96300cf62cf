"""kinds: list the kinds of resources, or the fields of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse
    from typing import Any

    from bfinfra.model.kind import Kind


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "kinds", about, run)
    parser.add_argument("kind", nargs="?", metavar="KIND")


def run(args: argparse.Namespace) -> int:
    """List the kinds, or describe the named one; returns 0."""
    from bfinfra import kinds as registry
    from bfinfra.cli.screen import Screen
    from bfinfra.render import kinds as render

    names = [args.kind] if args.kind else registry.names()
    found = {name: known(name) for name in names}
    Screen.of(args).show(
        lambda style: (
            render.one(args.kind, found[args.kind], style) if args.kind else render.table(found, style)
        ),
        lambda: render.data(found),
    )
    return 0


def known(name: str) -> type[Kind[Any, Any]]:
    """The kind of this name. Raises BfinfraError, which suggests the most similar name."""
    from bfinfra import kinds as registry
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.suggest import close

    if name not in registry.names():
        near = close(name, registry.names())
        raise BfinfraError(Problem(f"there is no kind {name}", next=near or "bfinfra kinds lists them"))
    return registry.kind(name)
