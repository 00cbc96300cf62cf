"""Colours, and how much to print."""

from __future__ import annotations

from collections.abc import Callable

from bfinfra.model.events import Ending
from bfinfra.model.plan import Action
from bfinfra.model.records import dataclass
from bfinfra.model.step import Disruption

CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
SYMBOLS = {
    Action.CREATE: ("+", "green"),
    Action.UPDATE: ("~", "yellow"),
    Action.REPLACE: ("±", "magenta"),
    Action.DELETE: ("-", "red"),
    Action.KEEP: ("=", "dim"),
    Action.READ: ("?", "dim"),
}
ENDINGS = {
    Ending.DONE: ("✓", "green"),
    Ending.UNCHANGED: ("=", "dim"),
    Ending.FAILED: ("✗", "red"),
    Ending.WAITING: ("…", "yellow"),
    Ending.BLOCKED: ("!", "yellow"),
    Ending.STOPPED: ("■", "yellow"),
}
DISRUPTIONS = {
    Disruption.RESTART: "restarts what runs on it",
    Disruption.REBOOT: "reboots",
    Disruption.POWER_CYCLE: "powers it off and on",
    Disruption.REPLACE: "destroys and recreates it",
}

Units = Callable[[str, str], str]
"""Kind and dotted field → the unit of a number there: bytes, MHz, seconds, or ""."""


def no_units(_kind: str, _field: str) -> str:
    """No field has a unit."""
    return ""


@dataclass(frozen=True)
class Style:
    """The style of the output: colours, whether to print everything, and the units of numbers."""

    colour: bool = False
    verbose: bool = False
    units: Units = no_units

    def paint(self, text: str, *names: str) -> str:
        """`text` in these colours, if colours are on."""
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(CODES[name] for name in names)}m{text}\x1b[0m"


PLAIN = Style()
