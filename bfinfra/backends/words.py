"""Makes servers' texts safe to show."""

from __future__ import annotations

import html
import re

from bfinfra.model.redact import redact

LONGEST = 600  # characters of a server's text in a message
LARGEST_PAGE = 1 << 16  # bytes of a web page in which its title is searched
PAGE = re.compile(r"\A\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)


def safe(text: object, longest: int = LONGEST) -> str:
    """A server's text in one printable line of bounded length, without secrets."""
    line = " ".join(redact(str(text or "")[: 64 * LONGEST]).split())
    plain = "".join(c if c.isprintable() else "\ufffd" for c in line)
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def web_page(answer: bytes) -> str:
    """The title of an answer that is HTML; "" for any other. A proxy, or a server of another kind, answers
    so.
    """
    text = answer[:LARGEST_PAGE].decode(errors="replace")
    if not PAGE.search(text):
        return ""
    title = safe(html.unescape(" ".join((found[1] if (found := TITLE.search(text)) else "").split())))[:100]
    return f"it sends a web page: {title}" if title else "it sends a web page"
