"""Strings of PowerShell."""

from __future__ import annotations

import itertools

QUOTES = frozenset("'\u2018\u2019\u201a\u201b")
"""Characters that end a string in single quotes. PowerShell reads the typographic ones as quotes too."""
WILD = frozenset("*?[]`")


def quoted(text: str) -> str:
    """A string in which nothing is replaced. Invisible characters stand beside it as `[char]0x202e`."""
    parts = [
        _single("".join(group)) if plain else " + ".join(map(_numbered, group))
        for plain, group in itertools.groupby(text, str.isprintable)
    ]
    if text.isprintable():
        return _single(text)
    return f"({' + '.join(parts if text[0].isprintable() else [_single(''), *parts])})"


def unwild(text: str) -> str:
    """The pattern that a text alone fits, for a parameter that takes wildcards."""
    return "".join(f"`{char}" if char in WILD else char for char in text)


def _single(text: str) -> str:
    return "'" + "".join(char * 2 if char in QUOTES else char for char in text) + "'"


def _numbered(char: str) -> str:
    code = ord(char)
    return f"[char]0x{code:04x}" if code <= 0xFFFF else f"[char]::ConvertFromUtf32(0x{code:x})"
