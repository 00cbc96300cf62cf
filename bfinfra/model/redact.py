"""Hides secret values: `hide` registers each value that is read, and `redact` removes it from all output.

A server may quote in its errors what it received: plain, escaped for JSON or XML, in a URL, in base64 at any
offset, in hexadecimal.
"""

from __future__ import annotations

import base64
import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, quote_plus

SHOWN = "[secret]"
SHORTEST = 6  # characters; shorter values also occur in other text
LINE = 16  # characters from which a line of a longer secret is hidden by itself
STALE = 3600.0  # seconds without use after which a session or a token counts as expired
BATCH = 64  # such values that are forgotten at once

_heads: dict[str, tuple[str, ...]] = {}
"""The forms of all hidden values by their first letters. Of two that match at one place, one begins with the
other, and the longer one comes first.
"""
_lasting: set[str] = set()
_passing: dict[str, float] = {}
"""Sessions and tokens, and when they were last used, the longest ago first."""
_lock = threading.Lock()


def hide(value: str, *, passing: bool = False) -> str:
    """Never show the value from now on. Returns it. `passing`: a session or a token that a server hands out;
    what is not used for an hour is forgotten, so that what runs for months does not grow.
    """
    if len(value) < SHORTEST or value in _lasting:
        return value
    with _lock:
        known = value in _lasting or _passing.pop(value, None) is not None
        if not known:
            _add(_heads, value)  # before others can find it among those that are known
        if passing and value not in _lasting:
            _passing[value] = time.monotonic()
        else:
            _lasting.add(value)
        if not known:
            _forget()
    return value


def _add(heads: dict[str, tuple[str, ...]], value: str) -> None:
    for form in {form for part in _parts(value) for form in forms(part) if len(form) >= SHORTEST}:
        alike = {form, *heads.get(form[:SHORTEST], ())}
        heads[form[:SHORTEST]] = tuple(sorted(alike, reverse=True))


def _forget() -> None:
    """Drop stale values, many at a time: the others' forms are made anew."""
    since = time.monotonic() - STALE
    stale = list(itertools.takewhile(lambda value: _passing[value] < since, _passing))
    if len(stale) < BATCH:
        return
    for value in stale:
        del _passing[value]
    heads: dict[str, tuple[str, ...]] = {}
    for value in (*_lasting, *_passing):
        _add(heads, value)
    _heads.update(heads)  # first what stays: others read it meanwhile
    for head in [head for head in _heads if head not in heads]:
        del _heads[head]


def redact(text: str) -> str:
    """The text without any hidden value in any form."""
    if not _heads or len(text) < SHORTEST:
        return text
    pieces, done = [], 0
    for at in range(len(text) - SHORTEST + 1):
        if at < done or (alike := _heads.get(text[at : at + SHORTEST])) is None:
            continue
        if found := next((form for form in alike if text.startswith(form, at)), ""):
            pieces += [text[done:at], SHOWN]
            done = at + len(found)
    return "".join([*pieces, text[done:]]) if pieces else text


def clean(data: object) -> Any:
    """Plain JSON data with `redact` and `encodable` on every text in it. On the encoded document the result
    might not be JSON.
    """
    if isinstance(data, str):
        return encodable(redact(data))
    if isinstance(data, Mapping):
        return {encodable(redact(str(key))): clean(value) for key, value in data.items()}
    return [clean(each) for each in data] if isinstance(data, list | tuple) else data


def encodable(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair that stands alone. UTF-8 can't write it, and
    readers of JSON refuse the whole document.
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def forms(value: str) -> Iterator[str]:
    """The forms in which a value may appear in text: as it is, escaped, encoded."""
    plain = dict.fromkeys(
        (
            value,
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            repr(value)[1:-1],
            escape(value),
            escape(value, {'"': "&quot;", "'": "&apos;"}),
            escape(value, {'"': "&#34;", "'": "&#39;"}),
            escape(value, {'"': "&quot;"}),
            escape(value, {'"': "&quot;", "'": "&#x27;"}),
            quote(value, safe="", errors="surrogatepass"),
            quote(value, errors="surrogatepass"),
            quote_plus(value, errors="surrogatepass"),
        )
    )
    for each in plain:
        yield each
        yield from (
            each.encode(errors="surrogatepass").hex(),
            each.encode(errors="surrogatepass").hex().upper(),
        )
        for core in cores(each.encode(errors="surrogatepass")):
            yield core
            yield core.replace("+", "-").replace("/", "_")
            yield from cores(core.encode())  # a Kubernetes Secret contains base64, which may be quoted in it
    yield value.encode("utf-16-le", errors="surrogatepass").hex()


def escape(value: str, quotes: Mapping[str, str] = MappingProxyType({})) -> str:
    """Escape for XML. The standard library's own is in a module that imports half of the network code."""
    for plain, escaped in {"&": "&amp;", ">": "&gt;", "<": "&lt;", **quotes}.items():
        value = value.replace(plain, escaped)
    return value


def cores(raw: bytes) -> Iterator[str]:
    """The parts of a value's base64 that don't depend on the text around it, at each of the three offsets."""
    for offset, shared in enumerate((0, 2, 3)):  # letters that have bits of the text before it
        yield base64.b64encode(bytes(offset) + raw).decode()[shared : (offset + len(raw)) * 8 // 6]


def _parts(value: str) -> Iterator[str]:
    """The value and, if it has several lines, each long line: servers fold lines, and quote some. A line of
    several words is not hidden by itself.
    """
    yield value
    if value.strip() != value:
        yield value.strip()
    if "\n" in value.strip():
        yield from (
            line.strip()
            for line in value.splitlines()
            if len(line.strip()) >= LINE and len(line.split()) == 1
        )
