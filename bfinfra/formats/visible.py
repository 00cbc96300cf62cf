"""Text in one visible line, for comments and descriptions of any format, and for what is printed."""

from __future__ import annotations

BLANK = frozenset(
    map(
        chr,
        (
            *(0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
"""Letters and marks that show nothing (Unicode: Default_Ignorable_Code_Point, and the blank of Braille).
Python counts them as printable.
"""


def visible(text: object) -> str:
    """One line, in which control characters, line separators, bidirectional marks, unassigned and private
    characters, halves of characters and blanks other than a space are escaped.
    """
    full = str(text)
    return full if is_visible(full) else "".join(map(escaped, full))


def is_visible(text: str) -> bool:
    """Whether `visible` leaves it as it is."""
    return text.isprintable() and (text.isascii() or BLANK.isdisjoint(text))


def escaped(char: str) -> str:
    r"""A character, or what stands for it: `\n`, `\x1b`, `\u202e`."""
    return char if char.isprintable() and char not in BLANK else escape(char)


def escape(char: str) -> str:
    r"""What stands for a character, also for one that can be seen: `\x23`."""
    if " " < char <= "~":
        return f"\\x{ord(char):02x}"
    return char.encode("unicode_escape", "surrogatepass").decode()
