"""What a watch reports."""

from __future__ import annotations

from bfinfra.model.drift import Report
from bfinfra.model.records import dataclass


@dataclass(frozen=True)
class Sight:
    """One report of a watch: the drift now. `blind`: seconds, at most, during which changes were not followed
    before this report; `why`: what ended following them; `lost`: clusters that are not followed now.
    """

    report: Report
    blind: float = 0.0
    why: str = ""
    lost: tuple[str, ...] = ()
