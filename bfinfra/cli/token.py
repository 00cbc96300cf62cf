"""token rotate: distribute the token that its source has now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    inner = arguments.inner(arguments.verb(verbs, "token", about), "rotate")
    about = (
        "distribute the token that its source has now: kube-system first, then every namespace with a copy"
    )
    parser = arguments.execution(
        arguments.verb(inner, "rotate", about, rotate),
        "a site's files or folders, then the token's name if it uses several",
    )
    parser.add_argument(
        "--restart", action="store_true", help="also restart workloads that hold the old token"
    )


def rotate(args: argparse.Namespace) -> int:
    """Returns 0; 1 on errors; 3 if something is not ready yet. The last word may be the token's name."""
    from bfinfra.app.rotation import Rotation
    from bfinfra.cli.execute import execute

    args.verb, args.allow_delete, args.allow_disruption = "rotate", [], []
    token = args.sites.pop() if len(args.sites) > 1 and not Path(args.sites[-1]).exists() else ""
    return execute(args, rotation=Rotation(token, args.restart))
