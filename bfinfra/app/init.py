"""Makes a new site in a folder: with commented examples, or describing the objects of a vCenter."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.describe import describe, differing
from bfinfra.model.errors import BfinfraError, Denied, Problem
from bfinfra.model.files import create, make_folder, reported
from bfinfra.model.initial import Initial
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site, VCenterSettings
from bfinfra.model.sources import Sources

if TYPE_CHECKING:
    from bfinfra.sandbox import Running

SITE = "site.yaml"


def commented(name: str) -> Initial:
    """A site without resources, with commented examples."""
    from bfinfra.spec.site_text import commented as text

    return Initial(text(name))


def described(
    site: Site,
    settings: Mapping[str, object],
    *,
    only: frozenset[str] = frozenset(),
    context: RunContext = LIVE,
) -> Initial:
    """A site that describes the objects of the vCenter of an empty site. Only reads. Raises BfinfraError.

    `settings`: the vCenter's settings for the site; `only`: these kinds, with what they need.
    """
    from bfinfra.backends.vcenter.inventory import NoDatacenter
    from bfinfra.spec.site_text import describing

    found = describe(site, only=only, context=context)
    for error in found.unreadable.values():
        if isinstance(error, NoDatacenter) or (isinstance(error, Denied) and not found.resources):
            raise error
    if not found.resources and found.unreadable:
        raise BfinfraError(*_distinct(found.unreadable.values()))
    if not found.resources and not found.left_out:
        raise BfinfraError(
            Problem(
                f"nothing was found on {settings['server']} that a site describes",
                why=f"{', '.join(sorted(only))}: there are none" if only else "",
                next="write a commented site with: bfinfra init",
            )
        )
    specs = {key: each.spec for key, each in found.resources.items()}
    changed = differing(site, specs, context=context) if specs else {}
    left_out = {str(key): why for key, why in found.left_out} | _by_kind(found.unreadable)
    notes = [(f"{each} (adopting it would change this)", why) for each, why in sorted(changed.items())]
    written = {key: (each.spec.applied(), each.description.fill_in) for key, each in found.resources.items()}
    text = describing(site.name, settings, written, [*sorted(left_out.items()), *notes])
    return Initial(text, tuple(found.resources), left_out, changed)


def _by_kind(errors: Mapping[str, BfinfraError]) -> dict[str, str]:
    """Kinds → why they could not be read; those with one reason together."""
    kinds: dict[str, list[str]] = {}
    for kind in sorted(errors):
        kinds.setdefault(str(errors[kind]), []).append(kind)
    return {", ".join(names): why for why, names in kinds.items()}


def _distinct(errors: Iterable[BfinfraError]) -> list[Problem]:
    """Each problem once, what most errors have first."""
    return [
        problem for problem, _ in Counter(each for error in errors for each in error.problems).most_common()
    ]


def free(folder: Path, names: Iterable[str]) -> None:
    """Raises BfinfraError if one of these files exists."""
    if there := [folder / name for name in names if os.path.lexists(folder / name)]:
        raise BfinfraError(
            *(
                Problem(f"{each} exists already", why="no file is overwritten", next="choose another folder")
                for each in there
            )
        )


def put(folder: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    """Write new files into a folder, which is made if it is missing. Raises BfinfraError, before writing
    anything, if one of them exists.
    """
    free(folder, files)
    for name, text in files.items():
        with reported(folder / name):
            make_folder((folder / name).parent)
        create(folder / name, text)
    return tuple(folder / name for name in files)


def empty(
    name: str,
    settings: Mapping[str, object],
    folder: Path,
    *,
    password: str | None = None,
    sandbox: Running | None = None,
) -> Site:
    """A site without resources, in a folder. Raises BfinfraError for invalid settings.

    `password`: the typed value, if any; the file only gets the reference in `settings`.
    """
    env = {**os.environ, **(sandbox.env if sandbox else {})}
    sources = Sources(folder, env, Path(sandbox.files) if sandbox else None)
    try:
        read = VCenterSettings.model_validate(dict(settings), context={"sources": sources})
    except ValidationError as error:
        first = error.errors()[0]
        raise BfinfraError(
            Problem(first["msg"].removeprefix("Value error, "), f"vcenter.{'.'.join(map(str, first['loc']))}")
        ) from None
    if password is None:
        return Site(name, read, {})
    read = read.model_copy(update={"password": Secret("env", TYPED, Sources(env={**env, TYPED: password}))})
    return Site(name, read, {})


TYPED = "BFINFRA_TYPED_PASSWORD"
"""The environment variable of a typed password, in this process only."""
