"""The events of an apply, as frozen values. Sinks turn them into lines, bars, JSON and the journal."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING

from bfinfra.model.errors import Problem
from bfinfra.model.plan import Action
from bfinfra.model.records import dataclass
from bfinfra.model.redact import redact
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.model.kind import Done


class Ending(enum.StrEnum):
    """The result of an item, or of a whole apply."""

    DONE = "done"
    UNCHANGED = "kept"
    FAILED = "failed"
    WAITING = "still-waiting"
    BLOCKED = "blocked"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True)
class Event:
    """`at` is seconds since the epoch."""

    at: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is str:
                object.__setattr__(self, name, redact(value))


@dataclass(frozen=True, kw_only=True)
class Started(Event):
    """The first step of an item is next."""

    key: Key
    action: Action


@dataclass(frozen=True, kw_only=True)
class StepBegun(Event):
    """The step is about to run; written before it does."""

    key: Key
    title: str
    number: int


@dataclass(frozen=True, kw_only=True)
class StepEnded(Event):
    """The step ran. `seconds`: how long; `problem`: why it failed; `again`: whether it is retried."""

    key: Key
    title: str
    number: int
    seconds: float
    problem: Problem | None = None
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class Progressed(Event):
    """The progress of a long step."""

    key: Key
    progress: Done


@dataclass(frozen=True, kw_only=True)
class Settling(Event):
    """All steps ran; the resource is not ready yet. Sent when `why` changes."""

    key: Key
    why: str


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    """An item ended. `note`: worth reporting (an address, a log line); `problem`: why it failed or is
    blocked.
    """

    key: Key
    action: Action
    ending: Ending
    seconds: float
    note: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, kw_only=True)
class Forgotten(Event):
    """Somebody said that it is gone (`bfinfra state forget`)."""

    key: Key


Sink = Callable[[Event], None]
