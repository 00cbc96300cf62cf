"""The result of one check, as the text that a Job leaves: a container's termination message, of which
Kubernetes keeps up to 4,096 bytes.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

from bfinfra.model.records import dataclass
from bfinfra.model.redact import clean

LARGEST = 4000  # bytes
LONGEST = 300  # characters of a reason
VERSION = 1
MANY = 1000  # characters of any text in a message


class Outcome(enum.StrEnum):
    """The result of a check of a site."""

    AGREED = "Agreed"
    """Everything is up to date."""
    APPLIED = "Applied"
    """The site was applied, and everything is up to date now."""
    APPROVAL = "ApprovalNeeded"
    """The plan waits for an approval."""
    WAITING = "StillWaiting"
    """A resource is not ready yet."""
    UNREADABLE = "Unreadable"
    """Something could not be read, so nothing was done."""
    FAILED = "Failed"
    """An apply did not end well, or was refused."""
    INVALID = "Invalid"
    """The site itself is wrong."""
    LOST = "JobFailed"
    """The Job ended without a result."""


GOOD = (Outcome.AGREED, Outcome.APPLIED)
PASSING = (Outcome.UNREADABLE, Outcome.LOST)
"""Outcomes that may be different at the next check. A single one after a success is not reported."""


@dataclass(frozen=True)
class Moved:
    """A field that somebody changed, without its values."""

    address: str
    field: str
    cause: str
    by: str = ""


@dataclass(frozen=True)
class Planned:
    """A change that waits. `disruption` is "" or none if there is none."""

    address: str
    action: str
    disruption: str = ""


@dataclass(frozen=True)
class Result:
    """`drifted`, `planned`: their numbers; `moved` and `changes` have as many as fit. `approved`: the digest
    that was used.

    `seconds`: duration of the check, and of the apply; `certificates`, `tokens`: server or name → when it
    expires, seconds since the epoch.
    """

    outcome: Outcome
    why: str = ""
    resources: int = 0
    drifted: int = 0
    moved: tuple[Moved, ...] = ()
    corrected: int = 0
    digest: str = ""
    planned: int = 0
    changes: tuple[Planned, ...] = ()
    approved: str = ""
    writes: int = 0
    seconds: tuple[float, float] = (0.0, 0.0)
    certificates: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """Compact JSON that fits. What is longest is cut first: a list, the dates, or the reason."""
        found = replace(self, why=self.why[:LONGEST])
        while len(text := _dumped(found)) > LARGEST:
            longest = max(
                ("moved", "changes", "certificates", "tokens", "why"),
                key=lambda name: len(_json(getattr(found, name))),
            )
            held = getattr(found, longest)
            rest: dict[str, Any] = {
                longest: dict(list(held.items())[: len(held) // 2])
                if isinstance(held, Mapping)
                else held[: len(held) // 2]
            }
            found = replace(found, **rest)
        return text

    @classmethod
    def read(cls, text: str) -> Result | None:
        """The result in a text; None if it is none."""
        try:
            found = json.loads(text)
            if found.pop("v") != VERSION:
                return None
            read: dict[str, Any] = {
                "outcome": Outcome(found["outcome"]),
                "seconds": (float(found["seconds"][0]), float(found["seconds"][1])),
                "moved": tuple(Moved(*map(str, each)) for each in found["moved"][:MANY]),
                "changes": tuple(Planned(*map(str, each)) for each in found["changes"][:MANY]),
                **{name: _dates(found[name]) for name in ("certificates", "tokens")},
                **{name: str(found[name]) for name in ("why", "digest", "approved")},
                **{
                    name: int(found[name])
                    for name in ("resources", "drifted", "corrected", "planned", "writes")
                },
            }
            return cls(**read)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return None


def _dumped(found: Result) -> str:
    document = {"v": VERSION, **{each.name: _plain(getattr(found, each.name)) for each in fields(found)}}
    return json.dumps(clean(document), separators=(",", ":"))


def _json(value: Any) -> str:
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Moved | Planned):
        return [getattr(value, each.name) for each in fields(value)]
    if isinstance(value, Mapping):
        return dict(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _dates(found: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(at) for name, at in list(found.items())[:MANY]}
