"""validate, plan, history, graph, kubeconfig: nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra import app
from bfinfra.cli import where
from bfinfra.cli.screen import Screen
from bfinfra.model.errors import SiteError

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.plan import Plan

DIFFERENT = 2


def validate(args: argparse.Namespace) -> int:
    """Everything that can be said without a network."""
    from bfinfra.render import data, problems
    from bfinfra.render.values import count

    screen = Screen.of(args)
    try:
        site, _ = where.site(args)
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
    good = f"{site.name}: {count(len(site.resources), 'resource')}, nothing wrong{rest}."
    screen.show(
        lambda style: "\n\n".join(filter(None, [problems.warnings(site.warnings, style), good])),
        lambda: found,
    )
    return 0


def plan(args: argparse.Namespace) -> int:
    """What apply would do."""
    site, setting = where.site(args)
    found = app.plan(site, destroy=args.destroy, context=setting)
    if args.out and not _blind(found):
        from bfinfra.engine import saved

        saved.write(Path(args.out), site, found, destroy=args.destroy)
    Screen.of(args).plan(found)
    return 1 if _blind(found) else DIFFERENT if args.detailed_exitcode and found.pending else 0


def history(args: argparse.Namespace) -> int:
    """What was applied from this machine."""
    from bfinfra.render import history as histories

    named = len(args.sites) == 1 and not Path(args.sites[0]).exists()
    name = args.sites[0] if named else app.load(*args.sites).name
    lines = list(app.history(name))
    Screen.of(args).show(lambda style: histories.history(lines, style), lambda: histories.data(name, lines))
    return 0


def graph(args: argparse.Namespace) -> int:
    """What waits for what."""
    from bfinfra.engine.graph import waits
    from bfinfra.render import graph as graphs

    site = app.load(*args.sites)
    before = waits(site.resources, {})
    Screen.of(args).show(
        lambda _: graphs.dot(before, site.name) if args.dot else graphs.tree(before),
        lambda: graphs.data(before, site.name),
    )
    return 0


def kubeconfig(args: argparse.Namespace) -> int:
    """A way into one of the site's clusters."""
    site, setting = where.site(args)
    found = app.kubeconfig(site, args.address, context=setting)
    if args.out:
        from bfinfra.model import private

        private.write(Path(args.out), found)
        Screen.of(args).say(f"export KUBECONFIG={args.out}")
    else:
        print(found, end="" if found.endswith("\n") else "\n")
    return 0


def _blind(found: Plan) -> bool:
    """What could not be decided is an error, never agreement."""
    return bool(found.problems or found.unreadable)
