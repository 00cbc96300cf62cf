"""Collects what a site refers to outside of itself, to copy it into a cluster: files, secrets, and what is
left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path

from bfinfra.model.awaited import source
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile, LocalOutput
from bfinfra.render.schedule import LARGEST
from bfinfra.spec.leads import Spot, walk
from bfinfra.spec.load import used_settings
from bfinfra.spec.missing import references

AGAIN = "run this command again once it is"
NOTED = "a check uses the digest that was noted when the object was made"


@dataclass(frozen=True, slots=True)
class Bundle:
    """`files`: path below the site's folder → content; `secrets`: path → key in the Secret; `left`: what is
    left out, and why.
    """

    files: dict[str, bytes]
    secrets: dict[str, str]
    left: tuple[str, ...]

    def words(self) -> list[str]:
        """Return a sentence for each file that is left out."""
        return [f"left out: {each}" for each in self.left]


@dataclass(frozen=True, slots=True)
class _Load:
    """The files gathered so far. `optional`: those that a check does not need, as it may wait for them."""

    files: dict[Path, None] = field(default_factory=dict)
    optional: dict[Path, tuple[str, list[Path]]] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def bundle(site: Site, base: Path, own: Iterable[Path], *, applies: bool) -> Bundle:
    """The files for the ConfigMap, the secrets for the Secret, and what is left out: missing or unused files.

    `own`: the files that the site is read from; `applies`: whether the bundle is for applies too. Raises
    BfinfraError for a required file that is missing, elsewhere or too large.
    """
    load = _Load(dict.fromkeys(Path(file).absolute() for file in own))
    used = (*used_settings(site, site.resources), "drift")
    nowhere = {(each.key, each.field): each for each in references(site)}
    for at, value in walk(site):
        file = value.file if isinstance(value, Secret) else value
        if file is None or isinstance(file, LocalOutput):
            continue
        missing = nowhere.get(at)
        if at[0] is None and not at[1].startswith(used):
            load.left.setdefault(file.text, f"{_named(file, at)}: no resource of the site uses it")
            continue
        below(file.path, base)
        if missing and missing.awaited:
            load.left.setdefault(file.text, f"{_named(file, at)}: it is not there yet; {AGAIN}")
        elif missing:
            load.problems.append(missing.problem)
        elif isinstance(value, Secret):
            load.secrets.setdefault(str(below(file.path, base)), f"secret-{len(load.secrets)}")
        else:
            _take(load, site, at, file)
    if load.problems:
        raise BfinfraError(*load.problems)
    _fit(load, applies=applies)
    return Bundle(
        {str(below(path, base)): path.read_bytes() for path in load.files},
        load.secrets,
        tuple(load.left.values()),
    )


def _take(load: _Load, site: Site, at: Spot, file: LocalFile) -> None:
    key, path = at
    found = [file.path]
    if file.path.is_dir():
        found = sorted(each for each in file.path.rglob("*") if each.is_file())
    load.files.update(dict.fromkeys(found))
    kind = type(site.resources[key]) if key else None
    if kind and source(kind, path) and {path, path.partition(".")[0]}.isdisjoint(kind.unnoted):
        load.optional.setdefault(file.path, (_named(file, at), found))
    else:
        load.optional.pop(file.path, None)


def _fit(load: _Load, *, applies: bool) -> None:
    """Leave out the largest optional files until the rest fits. Raises BfinfraError if it never fits."""
    sizes = {path: path.stat().st_size for path in load.files}
    for named, paths in () if applies else _largest_first(load, sizes):
        if sum(sizes[path] for path in load.files) <= LARGEST:
            return
        load.left[named] = f"{named}: it is too large for a ConfigMap; {NOTED}"
        for path in paths:
            load.files.pop(path, None)
    large = sum(sizes[path] for path in load.files)
    if large > LARGEST:
        worst = max(load.files, key=lambda path: sizes[path])
        raise BfinfraError(
            Problem(
                "the site's files are too large for a ConfigMap",
                str(worst),
                f"{large} bytes in all, at most {LARGEST} fit",
                (
                    "serve an appliance from a URL (ova: {url: …}), or mount the site's folder from a "
                    "volume of your own"
                ),
            )
        )


def _largest_first(load: _Load, sizes: dict[Path, int]) -> Iterator[tuple[str, list[Path]]]:
    yield from sorted(load.optional.values(), key=lambda each: -sum(sizes[path] for path in each[1]))


def _named(file: LocalFile, at: Spot) -> str:
    key, path = at
    return f"{file.text} ({key}: {path})" if key else f"{file.text} ({path})"


def below(path: Path, base: Path) -> Path:
    """The path relative to the site's folder. Raises BfinfraError if it is not inside."""
    try:
        return Path(os.path.normpath(Path(path).absolute())).relative_to(base)
    except ValueError:
        raise BfinfraError(
            Problem(
                "it is outside of the site's folder",
                str(path),
                f"a CronJob mounts only files below {base}",
                "move it there",
            )
        ) from None
