"""Foreign text made safe to print: what could move a cursor, hide or reverse letters becomes visible instead."""

from __future__ import annotations

import unicodedata

from bfinfra.model.redact import redact

HIDDEN = ("C", "Zl", "Zp")  # control, format (also the bidirectional overrides), surrogates, private, unassigned; line and paragraph ends
LONGEST = 4000  # characters of one remote text; more is a page, not a message


def safe(text: object, limit: int = LONGEST) -> str:
    """One line: nothing in it acts on a terminal; longer than `limit` characters is cut with `…`."""
    full = redact(str(text))
    shown = "".join(map(_visible, full[:limit]))
    return shown + "…" if len(full) > limit else shown


def safe_lines(text: object, limit: int = LONGEST) -> list[str]:
    """The same for text of several lines: its line ends divide it, everything else hidden becomes visible."""
    return [safe(line) for line in redact(str(text))[:limit].splitlines()]


def width(text: str) -> int:
    """Columns that already safe text takes on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _visible(char: str) -> str:
    if char == "\t":
        return " "
    if unicodedata.category(char).startswith(HIDDEN):
        return char.encode("unicode_escape", "surrogatepass").decode()
    return char
