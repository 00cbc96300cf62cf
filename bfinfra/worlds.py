"""The embedded sandbox of a site: its world file, the folder of its state, and how it is found or started."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.formats.shell import line
from bfinfra.formats.visible import visible
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.suggest import close

if TYPE_CHECKING:
    from bfinfra.sandbox import Running

ROUNDED = 1  # second, to which the start of a sandbox is known


def embedded(
    *sites: str | Path, world: str | Path = "", say: Callable[[str], None] = lambda _: None
) -> Running:
    """The running sandbox of the site, started if it isn't running. `world`: its file, by default the one
    beside the site; `say` is told if that was changed since the start. Raises BfinfraError.
    """
    file = world_of(*sites, world=world)
    from bfinfra.sandbox import running, start

    with spoken():
        if (found := running(state(file))) is None:
            return start(file, state(file))
    if file.stat().st_mtime > datetime.fromisoformat(found.started).timestamp() + ROUNDED:
        words = (("bfinfra", "sandbox", verb, "--world", file) for verb in ("stop", "reset"))
        then = " && ".join(map(line, words))
        say(f"{visible(file)} was changed since its sandbox started; to begin with the changed one: {then}")
    return found


@contextlib.contextmanager
def spoken() -> Iterator[None]:
    """The sandbox's error as a problem. The sandbox doesn't know bfinfra's classes."""
    from bfinfra.sandbox import SandboxError

    try:
        yield
    except SandboxError as error:
        what, missing, package = str(error).partition(": pip install ")
        then = f"pip install {package}" if missing else "bfinfra sandbox reset SITE sets it back"
        raise BfinfraError(Problem(what, next=then)) from None


def world_of(*sites: str | Path, world: str | Path = "") -> Path:
    """The world file: as given, else `worlds/<stem>.yaml` or `specs/worlds/<stem>.yaml` beside the site."""
    if world:
        return _there(Path(world), "--world")
    if not sites:
        raise BfinfraError(
            Problem("which sandbox?", next="name the SITE, or the sandbox's file with --world FILE")
        )
    first = Path(sites[0])
    beside = [beside_of(first), first.parent / "specs" / beside_of(Path(first.name))]
    if found := next((path for path in beside if path.is_file()), None):
        return found
    if not first.exists():
        raise BfinfraError(_missing(first))
    raise BfinfraError(
        Problem(
            f"the sandbox has no world for {first}",
            why=f"there is neither {beside[0]} nor {beside[1]}",
            next=f"write one with: {line(('bfinfra', 'init', '--world', first))}",
        )
    )


def beside_of(site: Path) -> Path:
    """The world file beside a site."""
    return site.parent / "worlds" / f"{site.stem or site.resolve().stem}.yaml"


def states() -> Path:
    """The folder that contains a folder for each sandbox."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "bfinfra" / "sandbox"


def state(file: Path) -> Path:
    """A sandbox's own folder, one for each world file."""
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]
    return states() / f"{file.stem}-{digest}"


def _there(path: Path, what: str) -> Path:
    if not path.is_file():
        raise BfinfraError(_missing(path, what))
    return path


def _missing(path: Path, where: str = "") -> Problem:
    beside = [each.name for each in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
    then = close(path.name, beside) or "check its name, and the current folder"
    return Problem(f"there is no file {path}", where, next=then)
