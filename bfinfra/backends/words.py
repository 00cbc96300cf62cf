"""Makes servers' texts safe to show."""

from __future__ import annotations

from bfinfra.model.redact import redact

LONGEST = 600  # characters of a server's text in a message


def safe(text: object, longest: int = LONGEST) -> str:
    """A server's text in one printable line of bounded length, without secrets."""
    line = " ".join(redact(str(text or "")[: 64 * LONGEST]).split())
    plain = "".join(c if c.isprintable() else "\ufffd" for c in line)
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
