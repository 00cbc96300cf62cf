"""Sizes as Kubernetes writes them, and back."""

from __future__ import annotations

from typing import Any

from bfinfra.model.units import BINARY, bytes_text

UNITS = ("Ti", "Gi", "Mi", "Ki", "")


def quantity(number: int) -> str:
    """Bytes as Kubernetes writes them."""
    return next(f"{number // BINARY[unit]}{unit}" for unit in UNITS if number % BINARY[unit] == 0)


def size(text: object) -> Any:
    """`50Gi` → `50GiB`; other text is unchanged, and so differs."""
    number = str(text).rstrip("KMGTi")
    unit = str(text)[len(number) :]
    return bytes_text(int(number) * BINARY[unit]) if number.isdigit() and unit in BINARY else text
