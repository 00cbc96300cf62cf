"""Values that must not be shown: whoever reads a secret says so here, and whatever is to be shown goes through `redact`.

A server may quote in its errors what it was sent: plain, escaped for JSON or XML, in a URL, in base64 at any offset, in hexadecimal.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

SHOWN = "[secret]"
SHORTEST = 6  # characters: what is shorter can't be told from other text
LINE = 16  # characters from which a line of a longer secret is one of its own

_forms: dict[str, None] = {}
_known: set[str] = set()
_lock = threading.Lock()


def hide(value: str) -> str:
    """From now on the value is never shown. Returns it."""
    if value not in _known and len(value) >= SHORTEST:
        with _lock:
            fresh = dict.fromkeys(form for part in _parts(value) for form in forms(part) if len(form) >= SHORTEST)
            merged = {**_forms, **fresh}
            _forms.clear()
            _forms.update(dict.fromkeys(sorted(merged, key=len, reverse=True)))  # the longest first: none is cut by a shorter one
            _known.add(value)
    return value


def redact(text: str) -> str:
    """The text without any hidden value, in none of its forms."""
    if len(text) < SHORTEST:
        return text
    for form in tuple(_forms):
        if form in text:
            text = text.replace(form, SHOWN)
    return text


def forms(value: str) -> Iterator[str]:
    """How a value may stand in text: as it is, escaped, encoded."""
    plain = dict.fromkeys((
        value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1], escape(value), escape(value, {'"': "&quot;", "'": "&apos;"}),
        escape(value, {'"': "&#34;", "'": "&#39;"}), quote(value, safe=""), quote(value), quote_plus(value),
    ))
    for each in plain:
        yield each
        for core in cores(each.encode(errors="surrogatepass")):
            yield core
            yield core.replace("+", "-").replace("/", "_")
    raw = value.encode(errors="surrogatepass")
    yield from (raw.hex(), raw.hex().upper(), value.encode("utf-16-le", errors="surrogatepass").hex())


def cores(raw: bytes) -> Iterator[str]:
    """What of a value's base64 doesn't depend on what stands before and after it, at each of the three offsets."""
    for offset in range(3):
        first, last = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
        yield base64.b64encode(bytes(offset) + raw).decode()[first:last]


def _parts(value: str) -> Iterator[str]:
    """The value and, of one with several lines, each long line: servers fold lines, and quote some of them."""
    yield value
    if value.strip() != value:
        yield value.strip()
    yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= LINE) if "\n" in value.strip() else ()
