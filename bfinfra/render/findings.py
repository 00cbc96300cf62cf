"""Prints the doctor's findings, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bfinfra.model.finding import Finding, Health
from bfinfra.render.data import document
from bfinfra.render.safe import safe
from bfinfra.render.style import PLAIN, Style
from bfinfra.render.values import count

SYMBOLS = {
    Health.GOOD: ("✓", "green"),
    Health.WARNING: ("!", "yellow"),
    Health.BAD: ("✗", "red"),
    Health.SKIPPED: ("?", "dim"),
}
ORDER = (Health.GOOD, Health.SKIPPED, Health.WARNING, Health.BAD)


def text(found: Sequence[Finding], style: Style = PLAIN) -> str:
    """A line for each finding, bad ones last, each with what to do; then the summary."""
    lines = [
        line for each in sorted(found, key=lambda f: ORDER.index(f.health)) for line in _one(each, style)
    ]
    counted = Counter(each.health for each in found)
    bad, warned = counted[Health.BAD], counted[Health.WARNING]
    more = f", {count(warned, 'warning')}" if warned else ""
    verdict = f"{count(bad, 'thing')} would stop an apply" if bad else "Nothing would stop an apply"
    return "\n".join([*lines, "", f"{verdict}{more}; {counted[Health.GOOD]} of {len(found)} are good."])


def data(site: str, found: Sequence[Finding]) -> dict[str, Any]:
    """The doctor's findings as JSON: each with its check, health and remedy."""
    return document(
        "doctor",
        site=site,
        good=not any(each.health is Health.BAD for each in found),
        findings=[
            {
                "check": each.check,
                "about": each.about,
                "health": str(each.health),
                "what": each.what,
                "why": each.why,
                "next": each.next,
            }
            for each in found
        ],
    )


def _one(found: Finding, style: Style) -> Iterator[str]:
    symbol, colour = SYMBOLS[found.health]
    why = f": {safe(found.why)}" if found.why else ""
    yield f"{style.paint(symbol, colour)} {safe(found.about)}: {safe(found.what)}{why}"
    if found.next:
        yield f"    → {safe(found.next)}"
