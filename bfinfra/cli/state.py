"""state list, state show: what of a site exists; there is no state file, so servers are asked. state forget:
what this machine knows to be gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the commands and their arguments."""
    inner = arguments.inner(arguments.verb(verbs, "state", about), "list|show|forget")
    arguments.site(arguments.verb(inner, "list", "print the address of each resource that exists", run))
    shown = arguments.verb(inner, "show", "print what the server reports of a resource, as YAML", run)
    shown.add_argument("address", metavar="ADDRESS", help="kind/name")
    arguments.site(shown)
    gone = arguments.verb(
        inner, "forget", "note on this machine that a resource that isn't found any more is gone", forget
    )
    gone.add_argument("address", metavar="ADDRESS", help="kind/name; all: every one that isn't found")
    arguments.site(gone)


def forget(args: argparse.Namespace) -> int:
    """Note that a resource is gone, so that destroy and plan no longer name it; returns 0."""
    from bfinfra.app.forget import forget as note
    from bfinfra.cli.screen import Screen

    site, run_context = context.load(args)
    only = None if args.address == "all" else context.address(args.address)
    for key in note(site, only, context=run_context):
        Screen.of(args).say(f"{key}: forgotten")
    return 0


def run(args: argparse.Namespace) -> int:
    """Returns 1 if something can't be read, else 0."""
    from bfinfra.app.get import UNREADABLE, get
    from bfinfra.cli.screen import Screen
    from bfinfra.render import observed as render

    site, run_context = context.load(args)
    only = (args.address,) if args.what == "show" else ()
    everything = get(site, only, context=run_context)
    found = everything if only else [each for each in everything if each.state is not None]
    screen = Screen.of(args)
    if found or args.output != "text":
        screen.show(
            lambda _: render.as_yaml(site.name, found) if only else render.names(found),
            lambda: render.data(site.name, found),
        )
    unreadable = [each for each in everything if each.status == UNREADABLE]
    for each in unreadable:
        screen.say(f"{each.key} can't be read: {each.why}")
    return 1 if unreadable else 0
