"""The scheduled drift check."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli.references import variables
from bfinfra.formats import Unwritable
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.schedule import Schedule
from bfinfra.render.schedule import ScheduledCheck

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.site import Site


def check_of(args: argparse.Namespace, site: Site) -> ScheduledCheck:
    """The drift check of the site with these arguments."""
    return ScheduledCheck(
        site.name,
        _program(),
        tuple(str(Path(each).absolute()) for each in args.sites),
        Schedule.every(args.every, site.name),
        variables(site),
        options(site, lambda path: str(path.absolute())),
    )


@contextmanager
def written(what: str) -> Iterator[None]:
    """What can't be written as a line of it, as a problem. Raises BfinfraError."""
    try:
        yield
    except Unwritable as error:
        raise BfinfraError(
            Problem(
                f"this check can't be written as {what}",
                why=f"a word of its command, or --user, {error}",
                next="give the file, its folder or the account a plain name",
            )
        ) from None


def options(site: Site, written: Callable[[Path], str]) -> tuple[str, ...]:
    """The options that make the same variant of the site. `written`: turns a path into the one that the check
    uses.
    """
    variant = site.variant
    return (
        *(word for path in variant.overlays for word in ("--overlay", written(path))),
        *(word for path in variant.value_files for word in ("--values", written(path))),
        *(word for each in variant.given for word in ("--set", f"{each.name}={each.data}")),
    )


def _program() -> str:
    """The command line of the running bfinfra; `python -m bfinfra` if it was started so."""
    here = Path(sys.argv[0]).absolute()
    beside = Path(sys.executable).with_name("bfinfra")
    return str(here if here.name == "bfinfra" else beside)
