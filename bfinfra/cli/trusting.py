"""trust: the certificates that servers show, and the lines that would trust them. Nothing is written, nothing
is trusted by asking.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra import app
from bfinfra.cli import where
from bfinfra.cli.screen import Screen
from bfinfra.model.errors import BfinfraError
from bfinfra.render import certificate as render
from bfinfra.render import host_keys
from bfinfra.render.style import Style

if TYPE_CHECKING:
    import argparse

    from bfinfra.backends.certificate import Shown
    from bfinfra.model.site import Site


def trust(args: argparse.Namespace) -> int:
    """1 where a server is not trusted."""
    named = len(args.sites) == 1 and not Path(args.sites[0]).exists()
    if named:
        found, machines = (
            [
                app.certificate(
                    args.sites[0],
                    context=app.RunContext(
                        sandbox=where.sandbox(args) if args.world else None, stop=args.stop
                    ),
                )
            ],
            [],
        )
    else:
        site, setting = where.site(args)
        found, machines = app.certificates(site, context=setting), app.host_keys(site, context=setting)
        found += _inside(site, setting, Screen.of(args))

    def text(style: Style) -> str:
        return (
            "\n\n".join(filter(None, (render.text(found, style), host_keys.text(machines, style))))
            or "the site names no server"
        )

    Screen.of(args).show(text, lambda: {**render.data(found), "machines": host_keys.data(machines)})
    return 1 if any(each.objection for each in found) or any(each.objection for each in machines) else 0


def _inside(site: Site, setting: app.RunContext, screen: Screen) -> list[Shown]:
    """What only vCenter can tell the addresses of; where it doesn't, that is said, and no reason to show
    nothing.
    """
    try:
        return app.certificates_inside(site, context=setting)
    except BfinfraError as error:
        screen.say(f"supervisors and their clusters are not shown: {error.problems[0]}")
        return []
