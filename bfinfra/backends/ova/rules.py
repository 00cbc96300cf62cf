"""The rules of a vApp property, from its type and qualifiers: `MinLen(1) MaxLen(64)`,
`ValueMap{"a","b"}`, `string(1..64)`, `string["a","b"]`, `int(1..9)`.
"""

from __future__ import annotations

import re

from bfinfra.model.records import dataclass

QUOTED = r'"(?:[^"\\]|\\.)*"'
"""A quoted text. It may contain braces, commas, and quotes behind a backslash (DSP0004, string constants)."""
LIST = rf"\s*{QUOTED}(?:\s*,\s*{QUOTED})*\s*,?\s*"
CHOICES = re.compile(rf"(?:ValueMap\s*\{{({LIST})\}}|(?:string|password)\s*\[({LIST})\])", re.IGNORECASE)
BOUND = re.compile(r"\b(Min|Max)(Len|Value)\s*\(\s*(-?\d+)\s*\)", re.IGNORECASE)
SPAN = re.compile(r"\w+\s*\(\s*(-?\d*)\s*\.\.\s*(-?\d*)\s*\)")


@dataclass(frozen=True, slots=True)
class Rules:
    """`least`, `most`: of a text's characters; `low`, `high`: of a number's value. None where nothing is
    said. `choices`: () for any value.
    """

    least: int | None = None
    most: int | None = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()


def rules(kind: str, qualifiers: str) -> Rules:
    """The rules that a type and its qualifiers give. Words within quotes are values, never rules."""
    text = f"{kind} {qualifiers}"
    choices = tuple(
        re.sub(r"\\(.)", r"\1", each[1:-1])
        for found in CHOICES.finditer(text)
        for each in re.findall(QUOTED, found[1] or found[2])
    )
    plain = re.sub(QUOTED, '""', text)
    bounds = {(side.lower(), of.lower()): int(number) for side, of, number in BOUND.findall(plain)}
    span = SPAN.match(kind.strip())
    low, high = ((int(part) if part.strip("-") else None) for part in span.groups()) if span else (None, None)
    return Rules(
        bounds.get(("min", "len"), low),
        bounds.get(("max", "len"), high),
        bounds.get(("min", "value"), low),
        bounds.get(("max", "value"), high),
        choices,
    )
