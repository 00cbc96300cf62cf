"""Health reports for people and for programs, and their verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bfinfra.kinds.machine.flexdirect_host.health import Examined
from bfinfra.model.health import ServerReport, Status
from bfinfra.render.data import document
from bfinfra.render.safe import safe, width
from bfinfra.render.style import PLAIN, Style

SHOWN = (Status.PASS, Status.MARGINAL, Status.FATAL, Status.SKIPPED)
COLOURS = {
    Status.PASS: "green",
    Status.SKIPPED: "dim",
    Status.MARGINAL: "yellow",
    Status.FATAL: "red",
    Status.UNCLEAR: "red",
}


def text(found: Sequence[Examined], style: Style = PLAIN) -> str:
    """A line for each report, then every check that did not pass, then the verdict."""
    if not found:
        return "the site has no flexdirect_host"
    rows = [
        ("MACHINE", "REPORT OF", *map(str, SHOWN), "VERDICT"),
        *(row for each in found for row in _rows(each)),
    ]
    widths = [max(width(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines += ["", *(line for each in found for line in _details(each, style))]
    bad = [safe(each.machine) for each in found if not each.good]
    return "\n".join(
        [
            *lines,
            f"{len(found) - len(bad)} of {len(found)} machines are healthy enough"
            + (f"; not {', '.join(bad)}" if bad else ""),
        ]
    )


def data(site: str, found: Sequence[Examined]) -> dict[str, Any]:
    """The health of FlexDirect machines as JSON."""
    return document(
        "health",
        site=site,
        good=all(each.good for each in found),
        machines=[
            {
                "machine": each.machine,
                "resource": str(each.key),
                "good": each.good,
                "worst": str(each.health.worst),
                "accepted": str(each.limit),
                "problem": each.problem,
                "notes": list(each.health.notes),
                "reports": [_data(report) for report in each.health.reports],
            }
            for each in found
        ],
    )


def _data(report: ServerReport) -> dict[str, Any]:
    checks = [{"status": str(check.status), "text": check.text} for check in report.checks]
    return {
        "server": report.server or "localhost",
        "worst": str(report.worst),
        "totals": {str(status): count for status, count in report.totals.items()},
        "objections": list(report.objections),
        "checks": checks,
    }


def _rows(found: Examined) -> Iterator[tuple[str, ...]]:
    if not found.health.reports:
        yield (safe(found.machine), "-", "-", "-", "-", "-", "no report")
    for report in found.health.reports:
        counted = Counter(check.status for check in report.checks)
        yield (
            safe(found.machine),
            safe(report.server) or "localhost",
            *(str(counted[status]) for status in SHOWN),
            str(report.worst),
        )


def _details(found: Examined, style: Style) -> Iterator[str]:
    if found.problem:
        yield f"{safe(found.machine)}: {safe(found.problem)}"
    for report in found.health.reports:
        where = f"{safe(found.machine)}, {safe(report.server) or 'localhost'}"
        for check in report.checks:
            if check.status not in (Status.PASS, Status.SKIPPED):
                yield f"{where}: {style.paint(str(check.status), COLOURS[check.status])} {safe(check.text)}"
        for objection in report.objections:
            yield f"{where}: {style.paint('UNCLEAR', 'red')} {safe(objection)}"
