"""version: show the versions of bfinfra, Python and the libraries in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse

LIBRARIES = ("ansible-core", "kubernetes", "pydantic", "pyvmomi", "PyYAML", "tenacity")


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    arguments.verb(verbs, "version", about, run)


def run(args: argparse.Namespace) -> int:
    """Print the versions; returns 0."""
    import platform
    from importlib import metadata

    from bfinfra import __version__
    from bfinfra.cli.screen import Screen
    from bfinfra.render.data import document

    found = {"bfinfra": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    Screen.of(args).show(
        lambda _: "\n".join(f"{name} {version}" for name, version in found.items()),
        lambda: document("version", versions=found),
    )
    return 0
