"""Words of a Dockerfile. FROM and USER have no quotes at all, and a build replaces `$NAME` in most
instructions; so a word with any character of a meaning is refused, not escaped.
"""

from __future__ import annotations

import re

from bfinfra.formats import Unwritable

WORD = re.compile(r"[A-Za-z0-9_./:=@+~*-]+")


def word(text: str) -> str:
    """A word that neither a build nor its shell changes. Raises Unwritable for others."""
    if not WORD.fullmatch(text):
        raise Unwritable("has characters that mean something in a Dockerfile")
    return text
