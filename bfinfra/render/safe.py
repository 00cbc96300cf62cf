"""Foreign text made safe to print: what could move a cursor, hide or reverse letters becomes visible
instead.
"""

from __future__ import annotations

import unicodedata

from bfinfra.model.redact import redact

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
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _visible(char: str) -> str:
    """Printable is all but control, format (the bidirectional overrides, too), surrogates, private,
    unassigned, and blanks that aren't the usual one.
    """
    if char == "\t":
        return " "
    return char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
