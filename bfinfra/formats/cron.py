r"""A line of a crontab. cron ends it at the first line break, and reads `%` as one. Some crons take a
backslash before `%` or before another backslash away, some leave it to the shell: so `\%` stands outside of
quotes, and no backslash is followed by another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bfinfra.formats import Unwritable

PLAIN = re.compile(r"[A-Za-z0-9_@:,./+=-]+")
LONGEST = 998  # bytes of a command; longer ones are cut without a word by some crons
QUOTED = {"'": "'\"'\"'", "%": "'\\%'", "\\": "\\''"}


def word(text: object) -> str:
    """One word of the command. Raises Unwritable."""
    full = str(text)
    if not full.isprintable():
        raise Unwritable("contains a line break or another invisible character, which no crontab can hold")
    if PLAIN.fullmatch(full):
        return full
    return "'" + "".join(QUOTED.get(char, char) for char in full) + "'"


def line(when: str, words: Iterable[object], *, before: str = "") -> str:
    """A line: five fields of time, and a command. `before`: shell words of our own before it. Raises
    Unwritable.
    """
    command = before + " ".join(map(word, words))
    if len(command.encode()) > LONGEST:
        raise Unwritable(f"makes a command of more than {LONGEST} bytes, which cron cuts")
    return f"{when} {command}"
