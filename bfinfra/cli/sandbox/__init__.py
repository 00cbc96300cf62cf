"""sandbox: the embedded world that --sandbox uses."""

from __future__ import annotations

from bfinfra.cli import arguments
from bfinfra.cli.sandbox import faults, reset, start, status, stop


def add(verbs: arguments.Verbs, about: str) -> None:
    """The verb, and those that follow it; each names a sandbox."""
    inner = arguments.inner(arguments.verb(verbs, "sandbox", about), "start|stop|reset|status|faults")
    for each in (start, stop, reset, status, faults):
        each.add(inner)
