"""May dependants of a resource start?"""

from __future__ import annotations

import enum

from bfinfra.model.records import dataclass


class Ready(enum.StrEnum):
    """May dependants start?"""

    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Readiness:
    """`why` reads on after "waiting: " or "failed: "; `note` is worth reporting once ready (an address, a log
    line).
    """

    status: Ready
    why: str = ""
    note: str = ""


READY = Readiness(Ready.READY)


def waiting(why: str) -> Readiness:
    """Not yet."""
    return Readiness(Ready.WAITING, why)


def failed(why: str) -> Readiness:
    """Never, unless somebody acts."""
    return Readiness(Ready.FAILED, why)
