"""Reads units of systemd by the rules of systemd.syntax(7) and systemd.service(5). tests/peers/test_schedules.py
holds the writer to systemd itself.
"""

from __future__ import annotations

import re

ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[abfnrtvs\\\"'])")
NAMED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "s": 32}


def settings(text: str) -> dict[str, list[tuple[str, str]]]:
    """Section → its keys and values. Lines of a comment are skipped, `\\` at an end goes on in the next line."""
    found: dict[str, list[tuple[str, str]]] = {}
    section: list[tuple[str, str]] = []
    going = ""
    for line in text.split("\n"):
        if not going and (not line.strip() or line.lstrip()[0] in "#;"):
            continue
        going += line
        if going.endswith("\\"):
            going = f"{going[:-1]} "
            continue
        if going.startswith("["):
            assert re.fullmatch(r"\[[A-Z][a-z]+\]", going), going
            section = found.setdefault(going[1:-1], [])
        else:
            key, equals, value = going.partition("=")
            assert equals, going
            section.append((key.strip(), value.strip()))
        going = ""
    assert not going
    return found


def unspecified(value: str) -> str:
    """A value with its specifiers replaced: none but `%%` may stand in it."""
    assert not re.search(r"%(?!%)", value.replace("%%", "")), value
    return value.replace("%%", "%")


def argv(value: str) -> list[bytes]:
    """The words of ExecStart=. No variable may stand in it, and no second command."""
    words: list[bytes] = []
    at = 0
    while at < len(value):
        if value[at] == " ":
            at += 1
            continue
        word, at = _word(value, at)
        words.append(word)
    return words


def _word(value: str, at: int) -> tuple[bytes, int]:
    start, found, quote = at, b"", ""
    while at < len(value) and (quote or value[at] != " "):
        if value[at] in "\"'" and quote in ("", value[at]):
            quote = "" if quote else value[at]
            at += 1
        elif value[at] == "\\":
            escape = ESCAPE.match(value, at)
            assert escape, value[at:]
            found, at = found + _unescaped(escape[1]), escape.end()
        elif value[at] in "$%":
            assert value[at + 1] == value[at], value[at:]
            found, at = found + value[at].encode(), at + 2
        else:
            found, at = found + value[at].encode("utf-8", "surrogateescape"), at + 1
    assert not quote, value
    assert value[start:at] != ";", "a second command"
    return found, at


def _unescaped(escape: str) -> bytes:
    if escape[0] == "x":
        return bytes([int(escape[1:], 16)])
    if escape[0] in "uU":
        return chr(int(escape[1:], 16)).encode()
    return bytes([NAMED.get(escape, ord(escape))])
