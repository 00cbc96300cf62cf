"""schedule: print or write the configuration of scheduled drift checks; installs nothing."""

from __future__ import annotations

from bfinfra.cli import arguments
from bfinfra.cli.schedule import cron, kubernetes, systemd


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its subcommands."""
    inner = arguments.inner(arguments.verb(verbs, "schedule", about), "systemd|cron|kubernetes")
    for each in (systemd, cron, kubernetes):
        parser = each.add(inner)
        parser.add_argument("--every", metavar="TIME", default="1h", help="15m, 1h, 6h, 1d, … (default 1h)")
        arguments.site(parser)
