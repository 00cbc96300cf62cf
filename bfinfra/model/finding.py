"""The findings of the doctor."""

from __future__ import annotations

import enum

from bfinfra.model.records import dataclass


class Health(enum.StrEnum):
    """The result of a check. SKIPPED: it is unknown as long as something else is bad."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `about`: a server, file or resource; `why` and `next` as in a Problem.

    `check`: the name of the check.
    """

    about: str
    health: Health
    what: str
    why: str = ""
    next: str = ""
    check: str = ""


def good(about: object, what: str) -> Finding:
    """A finding that needs no action."""
    return Finding(str(about), Health.GOOD, what)


def warning(about: object, what: str, why: str = "", next: str = "") -> Finding:
    """A finding that works, but may soon or sometimes fail."""
    return Finding(str(about), Health.WARNING, what, why, next)


def bad(about: object, what: str, why: str = "", next: str = "") -> Finding:
    """A finding for which an apply would fail."""
    return Finding(str(about), Health.BAD, what, why, next)


class Blocked(Exception):
    """A check can't run as long as something else is bad, which another check reports."""

    def __init__(self, about: str, why: str) -> None:
        super().__init__(why)
        self.about, self.why = about, why
