"""Suggests the most similar name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

MOST = 8  # names listed if none is similar
FEW = 4  # names of a list in a sentence


def nearest(wrong: str, right: Iterable[str]) -> str:
    """`did you mean x?`, else a list of the known names, or ""."""
    known = sorted(right)
    if near := close(wrong, known):
        return near
    if not known:
        return ""
    return f"there are: {few(known, MOST)}"


def close(wrong: str, right: Iterable[str]) -> str:
    """`did you mean x?`, or ""."""
    near = difflib.get_close_matches(wrong, sorted(right))
    return f"did you mean {near[0]}?" if near else ""


def few(names: Sequence[str], most: int = FEW) -> str:
    """The first names, and the number of the others: `a, b and 46 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
