"""Text in one visible line, for comments and descriptions of any format."""

from __future__ import annotations


def visible(text: object) -> str:
    """One line, in which control characters, line separators, bidirectional marks and other invisible
    characters are escaped.
    """
    full = str(text)
    return full if full.isprintable() else "".join(map(escaped, full))


def escaped(char: str) -> str:
    r"""A character, or what stands for it: `\n`, `\x1b`, `\u202e`."""
    return char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
