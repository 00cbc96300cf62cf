"""trust: show the certificates of servers, and the lines that would trust them. Writes nothing and trusts
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse

    from bfinfra.app.context import RunContext
    from bfinfra.backends.ansible.hostkeys import Shown as HostKeys
    from bfinfra.backends.certificate import Shown
    from bfinfra.cli.screen import Screen
    from bfinfra.model.site import Site
    from bfinfra.render.style import Style


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    arguments.site(
        arguments.verb(verbs, "trust", about, run),
        "a site's files or folders, or one server as host or host:port",
    )


def run(args: argparse.Namespace) -> int:
    """Returns 1 if a server is not trusted, else 0."""
    from bfinfra.cli.screen import Screen
    from bfinfra.render import certificate as render
    from bfinfra.render import host_keys

    found, machines = _of_server(args) if context.named(args) else _of_site(args)

    def text(style: Style) -> str:
        return (
            "\n\n".join(filter(None, (render.text(found, style), host_keys.text(machines, style))))
            or "the site names no server"
        )

    Screen.of(args).show(text, lambda: {**render.data(found), "machines": host_keys.data(machines)})
    return 1 if any(each.objection for each in found) or any(each.objection for each in machines) else 0


def _of_server(args: argparse.Namespace) -> tuple[list[Shown], list[HostKeys]]:
    from bfinfra.app.context import RunContext
    from bfinfra.app.trust import certificate

    run_context = RunContext(sandbox=context.sandbox(args) if args.world else None, stop=args.stop)
    return [certificate(args.sites[0], context=run_context)], []


def _of_site(args: argparse.Namespace) -> tuple[list[Shown], list[HostKeys]]:
    from bfinfra.app.trust import certificates, host_keys
    from bfinfra.cli.screen import Screen

    site, run_context = context.load(args)
    found, machines = certificates(site, context=run_context), host_keys(site, context=run_context)
    return [*found, *_inside(site, run_context, Screen.of(args))], machines


def _inside(site: Site, run_context: RunContext, screen: Screen) -> list[Shown]:
    """The servers whose addresses only vCenter has. If vCenter doesn't answer, a message reports it, and the
    others are shown.
    """
    from bfinfra.app.trust import certificates_inside
    from bfinfra.model.errors import BfinfraError

    try:
        return certificates_inside(site, context=run_context)
    except BfinfraError as error:
        screen.say(f"supervisors and their clusters are not shown: {error.problems[0]}")
        return []
