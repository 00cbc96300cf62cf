"""Checks whether a value fits a vApp property, by its type and qualifiers, before vSphere does."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable

from bfinfra.backends.ova.contents import Property

INTEGER = re.compile(
    r"(?P<sign>[us]?)int(?P<bits>8|16|32|64)?(?:\((?P<low>-?\d+)\.\.(?P<high>-?\d+)\))?", re.IGNORECASE
)


def check(prop: Property, value: str) -> str:
    """Return why `value` doesn't fit `prop`, or "". Never quotes the value."""
    if not value:
        return "it can't be empty" if prop.required else ""
    return _checker(prop.type.strip(), prop.qualifiers)(value)


@functools.lru_cache(maxsize=256)
def _checker(kind: str, qualifiers: str) -> Callable[[str], str]:
    """The function that checks a value."""
    if kind.lower() == "boolean":
        return _boolean
    if match := INTEGER.fullmatch(kind):
        return functools.partial(_integer, match, qualifiers)
    if re.fullmatch(r"real(32|64)?", kind, re.IGNORECASE):
        return _real
    if kind.lower() == "ip" or kind.lower().startswith("ip:"):
        return _address
    return functools.partial(_text, *_rules(f"{kind} {qualifiers}"))


def _boolean(value: str) -> str:
    return "" if value.lower() in ("true", "false") else "expected true or false"


def _real(value: str) -> str:
    return "" if re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", value) else "expected a number"


def _integer(kind: re.Match[str], rules: str, value: str) -> str:
    if not re.fullmatch(r"-?\d{1,20}", value):
        return "expected a whole number"
    bits = int(kind["bits"] or 32)
    low, high = (0, 2**bits - 1) if kind["sign"].lower() == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    least, most = (
        re.search(r"MinValue\(\s*(-?\d+)", rules, re.IGNORECASE),
        re.search(r"MaxValue\(\s*(-?\d+)", rules, re.IGNORECASE),
    )
    low, high = (
        int(kind["low"] or (least[1] if least else low)),
        int(kind["high"] or (most[1] if most else high)),
    )
    return "" if low <= int(value) <= high else f"expected a whole number from {low} to {high}"


def _address(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return "expected an IP address"
    return ""


def _text(low: int, high: int, choices: tuple[str, ...], value: str) -> str:
    if not low <= len(value) <= high:
        return f"expected {low} to {high} characters"
    return f"expected one of {', '.join(choices)}" if choices and value not in choices else ""


def _rules(rules: str) -> tuple[int, int, tuple[str, ...]]:
    """Minimum and maximum of characters, and the choices: `MinLen(1) MaxLen(64) ValueMap{"a","b"}`,
    `string(1..64)`, `string["a","b"]`.
    """
    span = re.search(r"string\((\d*)\.\.(\d*)\)", rules, re.IGNORECASE)
    least = re.search(r"MinLen\(\s*(\d+)", rules, re.IGNORECASE)
    most = re.search(r"MaxLen\(\s*(\d+)", rules, re.IGNORECASE)
    low = int((least and least[1]) or (span and span[1]) or 0)
    high = int((most and most[1]) or (span and span[2]) or 65535)
    allowed = re.search(r"(?:ValueMap\s*\{|string\[)([^\]}]*)[\]}]", rules, re.IGNORECASE)
    return low, high, tuple(re.findall(r'"([^"]*)"', allowed[1])) if allowed else ()
