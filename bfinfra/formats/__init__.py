"""Writers of text that other programs read: one file a format, used wherever that format is written.

Names come from servers, guests, files and site authors. Each writer puts one into its format so that the
format's reader finds it again as data, character by character or visibly escaped, and finds nothing else: no
further key, line, directive, node or command. Imports nothing of bfinfra.
"""

from __future__ import annotations


class Unwritable(ValueError):
    """The format has no way to say this text. The message says why, in words that follow the text's name."""


def encoded(text: str) -> bytes:
    """Text as a program is given it: UTF-8, and bytes of file names that are none. Raises Unwritable for what
    no program can be given: NUL, and half of a surrogate pair.
    """
    if "\0" in text:
        raise Unwritable("contains NUL, which no command line can hold")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise Unwritable("contains half of a character, which no program can be given") from None
