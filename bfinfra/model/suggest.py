"""The nearest right spelling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

MOST = 8  # names listed where none is near
FEW = 4  # names of a list within a sentence


def nearest(wrong: str, right: Iterable[str]) -> str:
    """`did you mean x?`, else what there is, else ""."""
    known = sorted(right)
    if near := close(wrong, known):
        return near
    if not known:
        return ""
    return f"there are: {few(known, MOST)}"


def close(wrong: str, right: Iterable[str]) -> str:
    """`did you mean x?`, else ""."""
    near = difflib.get_close_matches(wrong, sorted(right), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def few(names: Sequence[str], most: int = FEW) -> str:
    """The first names, and how many more there are: `a, b and 46 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
