"""Makes foreign text safe to print: characters that would move a cursor, hide or reverse letters become
visible, and so does what a CI system would run as a command of its own.
"""

from __future__ import annotations

import re
import unicodedata

from bfinfra.formats.visible import escape, is_visible, visible
from bfinfra.model.redact import redact

LONGEST = 4000  # characters of a foreign text
COLOURS = re.compile(r"(\x1b\[(?:0|[12]|3[1-6])(?:;(?:[12]|3[1-6]))*m|\t)")
"""The colours of render/style.py, and tabs: all that `printed` leaves as it is."""
COMMAND = re.compile(
    r"(?P<before>^(?:[ \t]|\x1b\[[0-9;]*m)*):(?=:.*::)"  # GitHub, Gitea: ::set-env name=x::y begins a line
    r"|#(?=#\w*\[)",  # Azure: ##vso[task.setvariable …]; GitHub: ##[add-mask]; TeamCity: ##teamcity[ anywhere
    re.MULTILINE,
)
"""The first character of what a CI system takes for a command in a log. The break has to be seen: .NET, in
which two of them are written, looks for their beginning by the rules of a language, and skips characters of
no width.
"""


def safe(text: object, limit: int = LONGEST) -> str:
    """One line without terminal control; cut with `…` after `limit` characters."""
    full = redact(str(text))
    shown = visible(full[:limit].replace("\t", " "))
    return shown + "…" if len(full) > limit else shown


def safe_lines(text: object, limit: int = LONGEST) -> list[str]:
    """The same for text of several lines."""
    return [safe(line) for line in redact(str(text))[:limit].splitlines()]


def printed(text: str) -> str:
    r"""Text of several lines as a terminal or the log of a CI system gets it. All that a person reads goes
    through here last: it is one way out, and what one piece begins another one may end.

    A hidden character becomes its escape, as does the first one of a command: `\x23#vso[`. These are the
    escapes of YAML's double quotes, too; `quoted` tells which of its values need them.
    """
    return _inert(redact(text))


def quoted(value: str) -> bool:
    """Whether a value in YAML needs double quotes, so that `printed` does not change it."""
    return _inert(value) != value


def _inert(text: str) -> str:
    shown = "\n".join(line if is_visible(line) else _coloured(line) for line in text.split("\n"))
    return COMMAND.sub(_escaped, shown) if "##" in shown or "::" in shown else shown


def width(text: str) -> int:
    """The columns of safe text on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _coloured(line: str) -> str:
    return "".join(
        piece if number % 2 else visible(piece) for number, piece in enumerate(COLOURS.split(line))
    )


def _escaped(found: re.Match[str]) -> str:
    return (found["before"] or "") + escape(found[0][-1])
