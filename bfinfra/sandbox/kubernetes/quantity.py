"""Quantities: 500m, 10Gi, 1e3."""

from __future__ import annotations

import re
from decimal import Decimal

UNITS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
FORM = re.compile(r"([+-]?\d*\.?\d+(?:[eE][+-]?\d+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|)")


def amount(text: str | float | None) -> Decimal:
    """The number that a quantity means; 0 for None. Raises ValueError if it is none."""
    found = FORM.fullmatch(str(text if text is not None else 0))
    if not found:
        raise ValueError(f"{text!r} is no quantity")
    return Decimal(found[1]) * UNITS[found[2]]


def written(value: Decimal, like: str | float = "") -> str:
    """A number as a quantity, in the unit family of another one."""
    if str(like).endswith("i"):
        for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
            if value and value % UNITS[unit] == 0:
                return f"{(value / UNITS[unit]).to_integral():f}{unit}"
    if value != value.to_integral():
        return f"{(value * 1000).to_integral():f}m"
    return f"{value.to_integral():f}"
