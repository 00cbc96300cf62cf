"""A string of PowerShell, read by the rules of its language specification (2.3.5.2): there is no PowerShell here."""

from __future__ import annotations

import re

from formats.texts import WHOLE, tried
from hypothesis import example, given

from bfinfra.formats.powershell import quoted, unwild

QUOTE = "['\u2018\u2019\u201a\u201b]"
SINGLE = re.compile(f"{QUOTE}((?:[^'\u2018\u2019\u201a\u201b]|{QUOTE}{QUOTE})*){QUOTE}")
CHAR = re.compile(r"\[char\]0x([0-9a-f]{4})|\[char\]::ConvertFromUtf32\(0x([0-9a-f]+)\)")


def value(expression: str) -> str:
    """The value of a string, or of a sum of strings and characters in brackets."""
    if whole := SINGLE.fullmatch(expression):
        return _read(whole[1])
    assert expression[0] + expression[-1] == "()"
    at, found = 1, []
    while True:
        part = SINGLE.match(expression, at) or CHAR.match(expression, at)
        assert part, expression[at:]
        assert found or part.re is SINGLE, "a sum of characters is a number"
        found.append(_read(part[1]) if part.re is SINGLE else chr(int(part[1] or part[2], 16)))
        at = part.end()
        if at == len(expression) - 1:
            return "".join(found)
        assert expression.startswith(" + ", at)
        at += 3


def _read(inner: str) -> str:
    return re.sub(f"({QUOTE}){QUOTE}", r"\1", inner)


@tried
@given(WHOLE)
@example("\u2019; Invoke-Expression 'id' #")
@example("\n$(id)\u202e")
def test_a_string_is_found_again(text: str) -> None:
    written = quoted(text)
    assert written.isprintable()
    assert value(written) == text


@tried
@given(WHOLE)
def test_a_name_fits_itself_alone_where_wildcards_are_taken(text: str) -> None:
    pattern = unwild(text)
    assert not re.search(r"(?<!`)(?:``)*[*?\[\]]", pattern)
    assert re.sub(r"`(.)", r"\1", pattern) == text
