"""Readiness: may what depends on a resource start?"""

from __future__ import annotations

import enum

from bfinfra.model.records import dataclass


class Ready(enum.StrEnum):
    """The readiness of a resource: true if what depends on it may start."""

    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Readiness:
    """`why` follows "waiting: " or "failed: "; `note` is worth reporting once ready (an address, a log
    line).
    """

    status: Ready
    why: str = ""
    note: str = ""


READY = Readiness(Ready.READY)


def waiting(why: str) -> Readiness:
    """Not ready yet."""
    return Readiness(Ready.WAITING, why)


def failed(why: str) -> Readiness:
    """Not ready until a person acts."""
    return Readiness(Ready.FAILED, why)
