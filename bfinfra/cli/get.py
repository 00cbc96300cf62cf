"""get: the resources of a site as they are on the servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse

FORMS = ("table", "yaml", "name")


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "get", about, run, forms=FORMS)
    arguments.site(
        parser, "kinds or addresses (default: all of them), and a site's files (default: site.yaml)"
    )


def run(args: argparse.Namespace) -> int:
    """Returns 1 if something can't be read, else 0."""
    from bfinfra.app.get import UNREADABLE, get
    from bfinfra.cli.screen import Screen
    from bfinfra.render import observed as render

    only, args.sites = _split(args.sites)
    site, run_context = context.load(args)
    found = get(site, only, context=run_context)
    forms: dict[str, Callable[[], str]] = {
        "name": lambda: render.names(found),
        "yaml": lambda: render.as_yaml(site.name, found),
    }
    Screen.of(args).show(
        lambda _: forms.get(args.output, lambda: render.table(found))(), lambda: render.data(site.name, found)
    )
    return 1 if any(each.status == UNREADABLE for each in found) else 0


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Kinds and addresses, and files. Raises BfinfraError."""
    from bfinfra import kinds as registry
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.suggest import nearest

    files = [word for word in words if word == "-" or Path(word).exists() or word.endswith((".yaml", ".yml"))]
    left = {*files, *arguments.DEFAULT_SITES, "all"}
    only = [word for word in words if word not in left]
    if wrong := next((word for word in only if word.partition("/")[0] not in registry.names()), None):
        kind = wrong.partition("/")[0]
        raise BfinfraError(Problem(f"there is no kind {kind}", next=nearest(kind, registry.names())))
    return only, files or list(arguments.DEFAULT_SITES)
