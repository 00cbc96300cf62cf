"""What no longer agrees: who moved it (the world, the file, or both), since when, and whether that is
expected.
"""

from __future__ import annotations

import datetime as dt
import enum
import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bfinfra.model.errors import Problem, Warned
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.trust import Trust


class Cause(enum.StrEnum):
    """Who moved. What was applied, the file and the world are compared three ways."""

    DRIFT = "drift"
    """The world moved; the file is as it was applied."""
    CONFLICT = "conflict"
    """Both moved, each its own way."""
    VANISHED = "vanished"
    """It stood, and is not there any more."""
    MISSING = "missing"
    """It is not there; whether it ever was, nobody here knows."""
    UNMARKED = "unmarked"
    """Something stands in its place that bfinfra did not make."""
    UNAPPLIED = "unapplied"
    """The file moved, and was not applied yet."""
    UNFINISHED = "unfinished"
    """An apply was begun and did not end."""


ALARMING = (Cause.DRIFT, Cause.CONFLICT, Cause.VANISHED, Cause.MISSING, Cause.UNMARKED)
"""What a drift check ends with 2 for: the world is not as anybody left it."""


class Ignore(BaseModel):
    """What may differ for a while, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    address: str = Field(min_length=1)
    """Address of the resource, kind/name; `*` stands for any text."""
    field: str = "*"
    """Dotted path of the field, and all below it; `*` stands for any text."""
    reason: str = Field(min_length=1)
    """Why; it stands in every report."""
    until: dt.date
    """The last day, in UTC, on which it holds."""

    def covers(self, found: Drifted) -> bool:
        """Whether this is about that."""
        below = (
            found.field == self.field
            or found.field.startswith(f"{self.field}.")
            or fnmatch.fnmatchcase(found.field, self.field)
        )
        return below and fnmatch.fnmatchcase(str(found.key), self.address)


def _https(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "https" or not parts.hostname or parts.username is not None:
        raise ValueError("expected an address such as https://hooks.example.com/drift, without a user in it")
    return value


class Notify(BaseModel):
    """A webhook that is told when drift begins and when it ends."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    url: Annotated[str, AfterValidator(_https)]
    """Where the message is posted."""
    secret: Secret
    """Signs it, so that the receiver knows who sent it."""
    trust: Trust = Field(default_factory=Trust)
    """Which certificate the server must show; the system's store where nothing is said."""


class DriftSettings(BaseModel):
    """How drift is judged, and whom it is told."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    ignore: tuple[Ignore, ...] = ()
    """What may differ for a while."""
    notify: Notify | None = None
    """Told once when drift begins and once when it ends."""


@dataclass(frozen=True, kw_only=True)
class Drifted:
    """One field, or with `field` "" a whole resource, that does not agree. Values as in Change; secrets never
    stand here.

    `by`, `at`: who last wrote it and when (seconds since the epoch), where the server tells. `since`: when a
    check first saw it.
    """

    key: Key
    cause: Cause
    field: str = ""
    applied: Any = None
    now: Any = None
    wanted: Any = None
    why: str = ""
    by: str = ""
    at: float | None = None
    since: float | None = None
    ignored: str = ""

    @property
    def identity(self) -> str:
        """What is the same from one check to the next."""
        return f"{self.key} {self.field} {self.cause}"


@dataclass(frozen=True)
class Report:
    """What a check found. `agreed`: how many resources are up to date; `new`, `ended`: identities of what this
    check saw first or no more.
    """

    site: str
    found: tuple[Drifted, ...]
    agreed: int
    problems: tuple[Problem, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Warned, ...] = ()
    standing: tuple[str, ...] = ()
    """Addresses of what stands there and is this site's."""
    new: frozenset[str] = frozenset()
    ended: tuple[str, ...] = ()
    at: float = 0.0
    """When it was made, seconds since the epoch."""

    @property
    def alarming(self) -> tuple[Drifted, ...]:
        """What somebody should look at: the world moved, and nobody said that it may."""
        return tuple(each for each in self.found if each.cause in ALARMING and not each.ignored)

    @property
    def blind(self) -> bool:
        """Something could not be read or decided, which may have drifted as well."""
        return bool(self.problems or self.unreadable)


def judged(
    found: Iterable[Drifted], settings: DriftSettings, today: dt.date
) -> tuple[tuple[Drifted, ...], tuple[Warned, ...]]:
    """The same with what is ignored said so, and a warning for each rule that has expired and still would
    cover something.
    """
    every = tuple(found)
    live = [rule for rule in settings.ignore if today <= rule.until]
    late = [
        rule for rule in settings.ignore if today > rule.until and any(rule.covers(each) for each in every)
    ]
    said = tuple(
        Warned(
            Problem(
                f"drift of {rule.address} {rule.field} is no longer ignored",
                why=f"the rule ended on {rule.until}: {rule.reason}",
                next="mend it, or write a later until:",
            )
        )
        for rule in late
    )
    reasons = ((each, next((rule for rule in live if rule.covers(each)), None)) for each in every)
    return tuple(
        replace(each, ignored=f"{rule.reason} (until {rule.until})") if rule else each
        for each, rule in reasons
    ), said
