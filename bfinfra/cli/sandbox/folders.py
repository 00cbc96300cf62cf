"""Finds the sandbox that the arguments name: the folder of its state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra import sandbox, worlds
from bfinfra.model.errors import BfinfraError, Problem

if TYPE_CHECKING:
    import argparse


def named(args: argparse.Namespace) -> list[Path]:
    """The sandbox that the arguments name, by its site, world file or own name; all sandboxes without a
    name.
    """
    if args.sites and not args.world and (named := worlds.states() / args.sites[0]).is_dir():
        return [named]
    if args.sites or args.world:
        return [worlds.state(worlds.world_of(*args.sites, world=args.world or ""))]
    return sorted(path for path in worlds.states().glob("*") if path.is_dir())


def the_one(args: argparse.Namespace) -> Path:
    """The one sandbox that is meant; of several, the running one. Raises BfinfraError if that isn't one."""
    found = [folder for folder in named(args) if sandbox.running(folder)] or named(args)
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found)
    raise BfinfraError(
        Problem(
            "which sandbox?" if found else "there is no sandbox",
            why=names,
            next="give its name, its SITE, or --world FILE",
        )
    )
