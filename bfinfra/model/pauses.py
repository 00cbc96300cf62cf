"""How long to wait until what failed is tried again."""

from __future__ import annotations

FIRST, LONGEST = 1.0, 60.0  # seconds
DOUBLED = 60  # times at most, as a number has an end


def pause(failures: int, first: float = FIRST, longest: float = LONGEST) -> float:
    """Return the seconds to wait after so many failures in a row: `first`, then doubled up to `longest`."""
    return min(longest, first * 2.0 ** min(failures - 1, DOUBLED))
