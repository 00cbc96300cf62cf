"""Drift: which fields differ, who changed them (the live state, the file, or both), since when, and whether
the site expects it.
"""

from __future__ import annotations

import datetime as dt
import enum
import fnmatch
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from importlib import import_module
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bfinfra.model.errors import Problem, Warned
from bfinfra.model.partial import Partial
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.trust import Trust


class Cause(enum.StrEnum):
    """The cause of a difference, by comparing what was applied, the file and the live state."""

    DRIFT = "drift"
    """The live state changed; the file is as it was applied."""
    CONFLICT = "conflict"
    """Both changed, and to different values."""
    VANISHED = "vanished"
    """The resource existed at an earlier check and is gone."""
    MISSING = "missing"
    """The resource does not exist; no earlier check on this machine saw it."""
    UNMARKED = "unmarked"
    """An object without the site's mark has its place."""
    UNAPPLIED = "unapplied"
    """The file changed and was not applied yet."""
    UNFINISHED = "unfinished"
    """An apply started and did not end."""


ALARMING = (Cause.DRIFT, Cause.CONFLICT, Cause.VANISHED, Cause.MISSING, Cause.UNMARKED)
"""The causes for which a drift check exits with 2."""


class Ignore(BaseModel):
    """A difference that the site accepts until a day, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    address: str = Field(min_length=1)
    """Address of the resource, kind/name; `*` stands for any text."""
    field: str = "*"
    """Dotted path of the field, and all below it; `*` stands for any text."""
    reason: str = Field(min_length=1)
    """The reason; every report shows it."""
    until: dt.date
    """The last day, in UTC, on which the rule holds."""

    def covers(self, found: Drifted) -> bool:
        """Return whether this rule is about `found`."""
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
    """A webhook that gets a message when drift starts and when it ends."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    url: Annotated[str, AfterValidator(_https)]
    """Where the message is posted."""
    secret: Secret
    """Key that signs the message, so that the receiver can verify it."""
    trust: Trust = Field(default_factory=Trust)
    """Which certificate the server must show; by default one that the system's store trusts."""


class DriftSettings(BaseModel):
    """Settings of drift: how it is judged, and who is notified."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    ignore: tuple[Ignore, ...] = ()
    """Differences that are accepted for a while."""
    notify: Notify | None = None
    """Notified once when drift starts and once when it ends."""


@dataclass(frozen=True, kw_only=True)
class Drifted:
    """One field that differs, or a whole resource where `field` is "". Values as in Change; never a secret.

    `by`, `at`: who last wrote it and when (seconds since the epoch), if the server knows. `since`: when a
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
        """The text by which the next check recognises this drift."""
        return f"{self.key} {self.field} {self.cause}"


@dataclass(frozen=True)
class Report:
    """The result of a check.

    `agreed`: the number of resources that are up to date. `new`: identities of the drift that started since
    the last check; `ended`: of the drift that ended.
    """

    site: str
    found: tuple[Drifted, ...]
    agreed: int
    problems: tuple[Problem, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Warned, ...] = ()
    existing: tuple[str, ...] = ()
    """Addresses of the objects that exist and carry this site's mark."""
    new: frozenset[str] = frozenset()
    ended: tuple[str, ...] = ()
    at: float = 0.0
    """When it was made, seconds since the epoch."""
    scope: str = ""
    """The name under which this machine keeps it; "" for the site's."""
    partial: Partial | None = None
    """Set if the report is about some resources only: nobody is notified, and the next check ignores it."""

    def _repr_html_(self) -> str:
        """The report as a notebook shows it."""
        # by name, when a notebook asks for it: the model imports no renderer
        return str(import_module("bfinfra.render.notebook").report(self))

    @property
    def standing(self) -> tuple[str, ...]:
        """The old name of `existing`, for one more release."""
        warnings.warn("bfinfra: Report.standing is called existing now", DeprecationWarning, stacklevel=2)
        return self.existing

    @property
    def alarming(self) -> tuple[Drifted, ...]:
        """The drift that no rule of the site ignores."""
        return tuple(each for each in self.found if each.cause in ALARMING and not each.ignored)

    @property
    def blind(self) -> bool:
        """True if something could not be read or decided, and may have drifted."""
        return bool(self.problems or self.unreadable)


def judged(
    found: Iterable[Drifted], settings: DriftSettings, today: dt.date
) -> tuple[tuple[Drifted, ...], tuple[Warned, ...]]:
    """The drift with `ignored` set where a rule applies, and a warning for each expired rule that would still
    apply.
    """
    every = tuple(found)
    live = [rule for rule in settings.ignore if today <= rule.until]
    late = [
        rule for rule in settings.ignore if today > rule.until and any(rule.covers(each) for each in every)
    ]
    expired = tuple(
        Warned(
            Problem(
                f"drift of {rule.address} {rule.field} is no longer ignored",
                why=f"the rule ended on {rule.until}: {rule.reason}",
                next="correct the drift, or write a later until:",
            )
        )
        for rule in late
    )
    reasons = ((each, next((rule for rule in live if rule.covers(each)), None)) for each in every)
    return tuple(
        replace(each, ignored=f"{rule.reason} (until {rule.until})") if rule else each
        for each, rule in reasons
    ), expired
