"""Makes foreign text safe to print: characters that would move a cursor, hide or reverse letters become
visible, and so does what a CI system would run as a command of its own.
"""

from __future__ import annotations

import re
import unicodedata

from bfinfra.model.redact import redact

LONGEST = 4000  # characters of a foreign text
BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing (Unicode: Default_Ignorable_Code_Point, and the blank of Braille).
Python counts them as printable.
"""
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
    shown = visible(full[:limit])
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
    shown = "\n".join(
        line if line.isprintable() and not BLANK.search(line) else _coloured(line)
        for line in redact(text).split("\n")
    )
    return COMMAND.sub(_escaped, shown) if "##" in shown or "::" in shown else shown


def quoted(value: str) -> bool:
    """Whether a value in YAML needs double quotes, so that `printed` does not change it."""
    return printed(value) != value


def width(text: str) -> int:
    """The columns of safe text on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def visible(line: str) -> str:
    """A line in which hidden characters are escaped."""
    if line.isprintable() and (line.isascii() or not BLANK.search(line)):
        return line
    return "".join(map(_visible, line))


def _visible(char: str) -> str:
    """Hidden are control, format (bidirectional overrides too), surrogate, private and unassigned characters,
    and unusual blanks.
    """
    if char == "\t":
        return " "
    shown = char.isprintable() and not BLANK.match(char)
    return char if shown else _escape(char)


def _escape(char: str) -> str:
    if " " < char <= "~":
        return f"\\x{ord(char):02x}"
    return char.encode("unicode_escape", "surrogatepass").decode()


def _coloured(line: str) -> str:
    return "".join(
        piece if number % 2 else visible(piece) for number, piece in enumerate(COLOURS.split(line))
    )


def _escaped(found: re.Match[str]) -> str:
    return (found["before"] or "") + _escape(found[0][-1])
