"""Makes foreign text safe to print: characters that would move a cursor, hide or reverse letters become
visible.
"""

from __future__ import annotations

import unicodedata

from bfinfra.model.redact import redact

LONGEST = 4000  # characters of a foreign text


def safe(text: object, limit: int = LONGEST) -> str:
    """One line without terminal control; cut with `…` after `limit` characters."""
    full = redact(str(text))
    shown = "".join(map(_visible, full[:limit]))
    return shown + "…" if len(full) > limit else shown


def safe_lines(text: object, limit: int = LONGEST) -> list[str]:
    """The same for text of several lines."""
    return [safe(line) for line in redact(str(text))[:limit].splitlines()]


def width(text: str) -> int:
    """The columns of safe text on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _visible(char: str) -> str:
    """Hidden are control, format (bidirectional overrides too), surrogate, private and unassigned characters,
    and unusual blanks.
    """
    if char == "\t":
        return " "
    return char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
