"""validate: check a site without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    arguments.site(arguments.verb(verbs, "validate", about, run))


def run(args: argparse.Namespace) -> int:
    """Print the problems and warnings of a site's files; returns 1 if there are problems, else 0."""
    from bfinfra.cli.screen import Screen
    from bfinfra.model.errors import SiteError
    from bfinfra.render import data, problems
    from bfinfra.render.values import count

    screen = Screen.of(args)
    try:
        site, _ = context.load(args)
    except SiteError as error:
        if screen.output in ("json", "jsonl"):
            found = data.document(
                "validation",
                site="",
                valid=False,
                problems=[data.problem(p) for p in error.problems],
                warnings=[],
            )
            screen.show(lambda _: "", lambda: found)
        else:
            screen.error(error)
        return 1
    warned = [w.problem for w in site.warnings]
    found = data.document(
        "validation", site=site.name, valid=True, problems=[], warnings=[data.problem(p) for p in warned]
    )
    rest = f", {count(len(warned), 'warning')}" if warned else ""
    good = f"{site.name}: {count(len(site.resources), 'resource')}, no problems{rest}."
    screen.show(
        lambda style: "\n\n".join(filter(None, [problems.warnings(site.warnings, style), good])),
        lambda: found,
    )
    return 0
