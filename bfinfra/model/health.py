"""Health reports of GPU servers and their clients: checks, totals, results."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from bfinfra.model.records import dataclass


class Status(StrEnum):
    """From good to bad. UNCLEAR: the report contradicts itself."""

    SKIPPED = "SKIPPED"
    PASS = "PASS"  # noqa: S105 - a status
    MARGINAL = "MARGINAL"
    FATAL = "FATAL"
    UNCLEAR = "UNCLEAR"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One line of a report, unwrapped."""

    status: Status
    text: str


@dataclass(frozen=True)
class ServerReport:
    """The report of one server ("": localhost). `totals` as printed; `objections`: how they contradict the
    checks.
    """

    server: str
    checks: tuple[HealthCheck, ...]
    totals: dict[Status, int] = field(default_factory=dict)
    objections: tuple[str, ...] = ()

    @property
    def worst(self) -> Status:
        """The worst status in it."""
        if self.objections:
            return Status.UNCLEAR
        found = {check.status for check in self.checks} | {
            status for status, count in self.totals.items() if count
        }
        return max(found, key=list(Status).index, default=Status.UNCLEAR)


@dataclass(frozen=True)
class HealthReport:
    """All that one run prints. `notes`: lines after the last report, such as "All cuda versions are the
    same".
    """

    reports: tuple[ServerReport, ...]
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> Status:
        """The worst status of its reports; UNCLEAR if there is none."""
        return max((report.worst for report in self.reports), key=list(Status).index, default=Status.UNCLEAR)
