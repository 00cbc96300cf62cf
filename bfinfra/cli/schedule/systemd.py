"""schedule systemd: a service and its timer, or the service of a watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context, output

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> arguments.Parser:
    """Add the command and its own arguments."""
    about = "a service and its timer; a check that finds drift fails the service"
    parser = arguments.verb(inner, "systemd", about, run)
    parser.add_argument(
        "--user", metavar="NAME", help="the user that runs it; default: a temporary user (DynamicUser)"
    )
    parser.add_argument(
        "--watch", action="store_true", help="a service that keeps running and follows the site, not a timer"
    )
    parser.add_argument(
        "--out", metavar="FOLDER", help="write the units to this folder, such as /etc/systemd/system"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the units, or write them to --out; returns 0."""
    from bfinfra.cli.references import no_keyring
    from bfinfra.cli.schedule.check import check_of, written
    from bfinfra.cli.screen import Screen
    from bfinfra.formats.shell import line
    from bfinfra.formats.systemd import comment
    from bfinfra.formats.visible import visible
    from bfinfra.model.files import write_whole
    from bfinfra.render import systemd

    context.can_write(args, args.out and f"{args.out}/bfinfra.service")
    site, _ = context.load(args)
    no_keyring(site)
    with written("a unit of systemd"):
        units = (systemd.watching if args.watch else systemd.timed)(check_of(args, site), args.user or "")
    if args.out:
        folder = Path(args.out)
        context.can_write(args, *(str(folder / name) for name in units))
        for name, text in units.items():
            write_whole(folder / name, text)
        Screen.of(args).say(
            f"wrote {', '.join(visible(folder / name) for name in units)}",
            f"next: systemctl daemon-reload && {line(('systemctl', 'enable', '--now', list(units)[-1]))}",
        )
    else:
        output.exact("\n".join(f"{comment(name)}\n{text}" for name, text in units.items()), end="")
    return 0
