"""The common part of drift and watch, after their report is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bfinfra.app.context import RunContext
    from bfinfra.cli.screen import Screen
    from bfinfra.model.drift import Report
    from bfinfra.model.site import Site

DIFFERENT = 2


def exit_code(found: Report) -> int:
    """1 if something could not be read or decided, 2 on drift, else 0."""
    return 1 if found.blind else DIFFERENT if found.alarming else 0


def notify(site: Site, found: Report, run_context: RunContext, screen: Screen) -> bool:
    """Send the message to the webhook; whether nothing is left to send. The next check sends again what
    failed.
    """
    from bfinfra.app.drift import notify
    from bfinfra.model.errors import BfinfraError

    try:
        notify(site, found, context=run_context)
    except BfinfraError as error:
        screen.say(f"the webhook did not accept the message; the next check sends it again: {error}")
        return False
    return True
