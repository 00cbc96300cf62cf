"""The nearest right spelling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST = 8  # names listed where none is near


def nearest(wrong: str, right: Iterable[str]) -> str:
    """`did you mean x?`, else what there is, else ""."""
    known = sorted(right)
    if close := difflib.get_close_matches(wrong, known, n=1, cutoff=0.6):
        return f"did you mean {close[0]}?"
    if not known:
        return ""
    more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
    return f"there are: {', '.join(known[:MOST])}{more}"
