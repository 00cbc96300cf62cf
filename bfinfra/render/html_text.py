"""Text in a page or a picture: the one way in which words get into HTML and SVG."""

from __future__ import annotations

import html
import re

from bfinfra.render.safe import safe

DOUBLED = re.compile("#(?=#)")
BREAKS = re.compile(r"([/._\\\\])(?=[A-Za-z])")


def text(words: object) -> str:
    """Escaped text, between tags or in a quoted attribute. `##` would begin a command in the log of a CI
    system.
    """
    return DOUBLED.sub("&#35;", html.escape(safe(words)))


def broken(words: object) -> str:
    """Escaped text with places for the end of a line in names and paths; not for an attribute."""
    return BREAKS.sub(r"\1<wbr>", text(words))
