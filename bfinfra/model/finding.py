"""What the doctor finds."""

from __future__ import annotations

import enum

from bfinfra.model.records import dataclass


class Health(enum.StrEnum):
    """How it is. SKIPPED: it can't be known while something else is bad."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `about`: a server, file or resource; `why` and `next` as in a Problem.
    `check`: which one found it.
    """

    about: str
    health: Health
    what: str
    why: str = ""
    next: str = ""
    check: str = ""


def good(about: object, what: str) -> Finding:
    """Nothing to do."""
    return Finding(str(about), Health.GOOD, what)


def warning(about: object, what: str, why: str = "", next: str = "") -> Finding:
    """It works, and soon or under some circumstance won't."""
    return Finding(str(about), Health.WARNING, what, why, next)


def bad(about: object, what: str, why: str = "", next: str = "") -> Finding:
    """An apply would fail."""
    return Finding(str(about), Health.BAD, what, why, next)


class Blocked(Exception):
    """A check can't be made while something else is bad, which another check reports."""

    def __init__(self, about: str, why: str) -> None:
        super().__init__(why)
        self.about, self.why = about, why
