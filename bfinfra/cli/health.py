"""health: what FlexDirect's own checks say on each machine of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra import app
from bfinfra.cli import where
from bfinfra.cli.screen import Screen
from bfinfra.render import health as render

if TYPE_CHECKING:
    import argparse


def health(args: argparse.Namespace) -> int:
    """1 where a machine is worse than its site accepts."""
    site, setting = where.site(args)
    found = app.health(site, context=setting)
    Screen.of(args).show(lambda style: render.text(found, style), lambda: render.data(site.name, found))
    return 0 if all(each.good for each in found) else 1
