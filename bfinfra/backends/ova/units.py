"""Allocation units of a descriptor: DSP0004's programmatic units of bytes, and its older words.

`KiloBytes`, `MegaBytes` and `MB` are powers of 1024, as VMware's tools have written them since OVF 0.9; the
singular `megabyte` is a power of 1000, `mebibyte` one of 1024 (DSP0004, annex C).
"""

from __future__ import annotations

import math
import re

WORDS = ("", "kilo", "mega", "giga", "tera", "peta")
BINARY = ("", "kibi", "mebi", "gibi", "tebi", "pebi")
UNITS = {
    **{f"{word}byte": 1000**power for power, word in enumerate(WORDS)},
    **{f"{word}byte{s}": 1024**power for power, word in enumerate(BINARY) for s in ("", "s")},
    **{f"{word}bytes": 1024**power for power, word in enumerate(WORDS)},
    **{f"{letter}{b}": 1024**power for power, letter in enumerate("kmgtp", 1) for b in ("b", "ib")},
}
NUMBER = re.compile(r"([1-9]\d{0,18})(?:\^([1-9]\d?))?")
LARGEST = 1 << 63  # bytes; vSphere counts in signed 64-bit numbers


def size(units: str) -> int | None:
    """The bytes of a unit: `byte * 2^20`, `byte*1024*1024`, `10^6 * byte`, `MegaBytes`, `GB`; None for what
    is none. "" is a byte.
    """
    factors = re.sub(r"\s+", "", units).lower().split("*")
    if factors == [""]:
        return 1
    names = [each for each in factors if each in UNITS]
    numbers = [NUMBER.fullmatch(each) for each in factors if each not in UNITS]
    if len(names) > 1 or len(factors) > 9 or not all(numbers):
        return None
    found = UNITS[names[0]] if names else 1
    for number in filter(None, numbers):
        if int(number[2] or 1) * math.log2(int(number[1])) >= 63:
            return None
        found *= int(number[1]) ** int(number[2] or 1)
    return found if found < LARGEST else None
