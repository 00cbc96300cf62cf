"""ova inspect: show an OVA's product, signature, properties, networks and disks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    inner = arguments.inner(arguments.verb(verbs, "ova", about), "inspect")
    about = "show its product, signature, properties, networks and disks"
    parser = arguments.verb(inner, "inspect", about, inspect)
    parser.add_argument("file", metavar="FILE|URL")
    parser.add_argument("--verify", action="store_true", help="read all of it and check every digest")


def inspect(args: argparse.Namespace) -> int:
    """Print an OVA's product, properties, networks and disks; returns 0."""
    from bfinfra.backends import ova
    from bfinfra.backends.transport import Transport
    from bfinfra.cli.screen import Screen
    from bfinfra.model.trust import Trust
    from bfinfra.render import data
    from bfinfra.render import ova as render

    transport = Transport(read_only=True)
    try:
        far = args.file.startswith(("https://", "http://"))
        archive = (
            ova.read_from(ova.RemoteSource.of(args.file, Trust(), transport))
            if far
            else ova.read(Path(args.file))
        )
        if args.verify:
            ova.verify(archive, lambda _: None)
    finally:
        transport.close()
    found = ova.inspect(archive, verified=args.verify)
    Screen.of(args).show(lambda style: render.text(found, style), lambda: data.document("ova", **found))
    return 0
