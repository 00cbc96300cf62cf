"""Words of zsh's completion scripts."""

from __future__ import annotations

from bfinfra.formats.visible import visible


def quoted(text: object) -> str:
    """A word in single quotes, in one visible line."""
    return "'" + visible(text).replace("'", "'\\''") + "'"


def described(word: str, about: str) -> str:
    """A word of _describe with its description, which a colon parts."""
    return quoted(f"{word.replace(':', chr(92) + ':')}:{about}")
