"""Words of a command line that a POSIX shell reads: from a file, or pasted by a person."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from bfinfra.formats import Unwritable, encoded
from bfinfra.formats.visible import visible

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def word(text: object) -> str:
    r"""One word. With invisible characters it is written as `$'a\012'`, which sh of POSIX 2024, bash, zsh,
    ksh and busybox know, so that nothing hides in a line that somebody pastes. Raises Unwritable.
    """
    full = str(text)
    encoded(full)
    if full.isprintable():
        return shlex.quote(full)
    return "$'" + "".join(map(_escaped, full)) + "'"


def line(words: Iterable[object]) -> str:
    """A command: its words with blanks between them. Raises Unwritable."""
    return " ".join(map(word, words))


def assignment(name: str, value: object) -> str:
    """`NAME=value`. Raises Unwritable for what is no name of a variable."""
    return f"{variable(name)}={word(value)}"


def variable(name: str) -> str:
    """The name of a variable. Raises Unwritable for any other text."""
    if not VARIABLE.fullmatch(name):
        raise Unwritable("is no name of a variable: a shell allows letters, digits and underscores")
    return name


def comment(text: object) -> str:
    """A comment of one line."""
    return f"# {visible(text)}"


def _escaped(char: str) -> str:
    if char in "'\\":
        return f"\\{char}"
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in encoded(char))
