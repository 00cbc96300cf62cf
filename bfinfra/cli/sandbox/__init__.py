"""sandbox: the embedded sandbox that --sandbox uses."""

from __future__ import annotations

from bfinfra.cli import arguments
from bfinfra.cli.sandbox import faults, reset, start, status, stop


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its subcommands; each names a sandbox."""
    inner = arguments.inner(arguments.verb(verbs, "sandbox", about), "start|stop|reset|status|faults")
    for each in (start, stop, reset, status, faults):
        each.add(inner)
