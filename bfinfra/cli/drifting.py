"""drift: what no longer agrees with the site; the world is only read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra import app
from bfinfra.cli import where
from bfinfra.cli.screen import Screen, unit
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.render.style import Style

if TYPE_CHECKING:
    import argparse

    from bfinfra.app import RunContext
    from bfinfra.model.drift import Report
    from bfinfra.model.site import Site

DIFFERENT = 2


def drift(args: argparse.Namespace) -> int:
    """What no longer agrees, who moved it, and since when."""
    from bfinfra.render import drift as render

    site, setting = where.site(args)
    found = app.drift(site, context=setting)
    screen = Screen.of(args)
    if not args.changes_only or found.blind or found.new or found.ended:
        screen.show(
            lambda style: (
                render.changes(found, style)
                if args.changes_only and not found.blind
                else render.text(found, style)
            ),
            lambda: render.data(found),
            markdown=lambda style: render.markdown(found, style),
            lines=lambda: render.lines(found),
        )
    _files(args, site, found, screen)
    told = _told(site, found, setting, screen)
    if not args.forget:
        _remember(found, screen, told=told)
    return 1 if found.blind else DIFFERENT if found.alarming else 0


def _told(site: Site, found: Report, setting: RunContext, screen: Screen) -> bool:
    """Whether nothing is left to tell. What a webhook did not take, the next check tells again."""
    try:
        app.notify(site, found, context=setting)
    except BfinfraError as error:
        screen.say(f"the webhook was not told, the next check tells it: {error}")
        return False
    return True


def _files(args: argparse.Namespace, site: Site, found: Report, screen: Screen) -> None:
    if args.junit:
        from bfinfra.render.junit import junit

        _write(args.junit, junit(found), screen)
    if args.html:
        from bfinfra.engine.graph import waits
        from bfinfra.render.page import page

        _write(args.html, page(found, site.resources, waits(site.resources, {}), Style(units=unit)), screen)


def _write(name: str, text: str, screen: Screen) -> None:
    try:
        Path(name).write_text(text)
    except OSError as error:
        raise BfinfraError(Problem("the report can't be written", name, error.strerror or "")) from None
    screen.say(f"wrote {name}")


def _remember(found: Report, screen: Screen, *, told: bool) -> None:
    """A check that can't keep what it saw is a check all the same: the next one takes everything for new."""
    try:
        app.remember(found, told=told)
    except (BfinfraError, OSError) as error:
        screen.say(f"what was seen is not kept for the next check: {error}")
