"""Checks whether a value fits a vApp property, by its type and qualifiers, before vSphere does."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable

from bfinfra.backends.ova.contents import Property
from bfinfra.backends.ova.rules import Rules, rules

LONGEST = 65535  # characters of a text without a rule
INTEGER = re.compile(r"([us]?)int(8|16|32|64)?", re.IGNORECASE)


def check(prop: Property, value: str) -> str:
    """Return why `value` doesn't fit `prop`, or "". Never quotes the value."""
    if not value:
        return "it can't be empty" if prop.required else ""
    return _checker(prop.type.strip(), prop.qualifiers)(value)


@functools.lru_cache(maxsize=256)
def _checker(kind: str, qualifiers: str) -> Callable[[str], str]:
    """The function that checks a value."""
    found = rules(kind, qualifiers)
    base = kind.partition("(")[0].partition("[")[0].strip()
    if base.lower() == "boolean":
        own = _boolean
    elif match := INTEGER.fullmatch(base):
        own = functools.partial(_integer, match, found)
    elif re.fullmatch(r"real(32|64)?", base, re.IGNORECASE):
        own = _real
    elif base.lower() == "ip" or base.lower().startswith("ip:"):
        own = _address
    else:
        own = functools.partial(_text, found)
    return lambda value: own(value) or _chosen(found.choices, value)


def _boolean(value: str) -> str:
    return "" if value.lower() in ("true", "false") else "expected true or false"


def _real(value: str) -> str:
    return "" if re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", value) else "expected a number"


def _integer(kind: re.Match[str], found: Rules, value: str) -> str:
    if not re.fullmatch(r"-?\d{1,20}", value):
        return "expected a whole number"
    bits = int(kind[2] or 32)
    low, high = (0, 2**bits - 1) if kind[1].lower() == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    low, high = (low if found.low is None else found.low), (high if found.high is None else found.high)
    return "" if low <= int(value) <= high else f"expected a whole number from {low} to {high}"


def _address(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return "expected an IP address"
    return ""


def _text(found: Rules, value: str) -> str:
    low, high = found.least or 0, LONGEST if found.most is None else found.most
    return "" if low <= len(value) <= high else f"expected {low} to {high} characters"


def _chosen(choices: tuple[str, ...], value: str) -> str:
    return f"expected one of {', '.join(choices)}" if choices and value not in choices else ""
