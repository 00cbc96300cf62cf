"""Parses the output of `flexdirect health`: a report for each server and one for localhost, each with checks
and totals. Pure. (Guide, steps 2 and 7.)

A check is a status in brackets and a text that may be wrapped. Printed guides separate the two, so statuses
and texts on lines of their own are paired in order. A report whose totals don't fit its checks is never a
good one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from bfinfra.model.health import HealthCheck, HealthReport, ServerReport, Status

HEADER = re.compile(r"\s*Health report for (?:server:\s*(?P<server>\S+)|localhost)\s*")
MARKED = re.compile(r"\s*\[\s*(?P<status>PASS|MARGINAL|FATAL|SKIPPED)\s*\]?\s*(?P<text>.*)")
TOTAL = re.compile(r"\s*(?P<status>PASS|MARGINAL|FATAL|SKIPPED):\s*(?P<count>\d+)\s*")
BEGINS = re.compile(r"\s*(Check|Cannot)\b")
LONGEST = 4000  # lines


def parse(text: str) -> HealthReport:
    """The reports in a text; what comes before the first is ignored."""
    pages: list[tuple[str, list[str]]] = []
    for line in text.splitlines()[:LONGEST]:
        if header := HEADER.fullmatch(line):
            pages.append((header["server"] or "", []))
        elif pages and line.strip():
            pages[-1][1].append(line)
    found = [_report(server, lines) for server, lines in pages]
    return HealthReport(tuple(report for report, _ in found), found[-1][1] if found else ())


def _report(server: str, lines: list[str]) -> tuple[ServerReport, tuple[str, ...]]:
    totals = {
        Status(total["status"]): int(total["count"]) for line in lines if (total := TOTAL.fullmatch(line))
    }
    last = max((number for number, line in enumerate(lines) if TOTAL.fullmatch(line)), default=len(lines))
    body = [line for line in lines[:last] if not TOTAL.fullmatch(line)]
    torn = any((marked := MARKED.fullmatch(line)) and not marked["text"] for line in body)
    checks, loose = (_torn if torn else _whole)(body)
    return ServerReport(server, checks, totals, (*loose, *_objections(checks, totals))), tuple(
        line.strip() for line in lines[last + 1 :]
    )


def _whole(lines: list[str]) -> tuple[tuple[HealthCheck, ...], list[str]]:
    """Checks with status and text on one line. A line without status continues the one before."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if marked := MARKED.fullmatch(line):
            found.append((marked["status"], [marked["text"].strip()]))
        elif found:
            found[-1][1].append(line.strip())
    return tuple(HealthCheck(Status(status), " ".join(words)) for status, words in found), []


def _torn(lines: list[str]) -> tuple[tuple[HealthCheck, ...], list[str]]:
    """Checks with statuses and texts on separate lines, in the same order."""
    statuses: list[str] = []
    texts: list[list[str]] = []
    for line in lines:
        marked = MARKED.fullmatch(line)
        if marked:
            statuses.append(marked["status"])
        text = marked["text"].strip() if marked else line.strip()
        if text and (BEGINS.match(text) or not texts):
            texts.append([text])
        elif text:
            texts[-1].append(text)
    loose = (
        [] if len(statuses) == len(texts) else [f"it has {len(statuses)} statuses for {len(texts)} checks"]
    )
    return tuple(
        HealthCheck(Status(status), " ".join(words)) for status, words in zip(statuses, texts, strict=False)
    ), loose


def _objections(checks: tuple[HealthCheck, ...], totals: dict[Status, int]) -> Iterator[str]:
    if not totals:
        yield "it has no totals"
    counted = Counter(check.status for check in checks)
    for status, announced in totals.items():
        if counted[status] != announced:
            yield f"{announced} {status} are announced, {counted[status]} are listed"
