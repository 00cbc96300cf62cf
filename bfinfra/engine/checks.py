"""What the last drift check of a site on this machine saw: what stood, and since when what did not agree. So
that lasting drift is news once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from bfinfra.engine import journal
from bfinfra.model import private
from bfinfra.model.drift import ALARMING, Cause, Report
from bfinfra.model.records import dataclass
from bfinfra.model.sources import small

FILE, VERSION, LARGEST = "drift.json", 1, 64 << 20
MADE = ("create", "update", "replace", "keep")


@dataclass(frozen=True)
class Memory:
    """`standing`: addresses; `since`: identity of what did not agree → seconds since the epoch; `untold`,
    `over`: what began and ended and nobody could be told.
    """

    standing: frozenset[str] = frozenset()
    since: Mapping[str, float] = field(default_factory=dict)
    untold: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()


def recall(site: str) -> Memory:
    """Of the last check; empty where there was none, or where what is there is none of ours."""
    try:
        found = json.loads(small(journal.place(site) / FILE, LARGEST))
        since = {str(name): float(at) for name, at in found["since"].items()}
        standing, untold, over = (frozenset(map(str, found[name])) for name in ("standing", "untold", "over"))
        return Memory(standing, since, untold, over) if found["format_version"] == VERSION else Memory()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Memory()


def stood(site: str, memory: Memory) -> frozenset[str]:
    """Addresses that are known to have stood: at the last check, or when an apply from this machine ended."""
    found = set(memory.standing)
    for line in journal.read(site):
        if line.get("event") == "Ended" and line.get("ending") in ("done", "kept"):
            (found.add if line.get("action") in MADE else found.discard)(str(line.get("key", "")))
    return frozenset(found)


def since(report: Report, memory: Memory, now: float | None = None) -> Report:
    """The report with what is new, since when the rest lasts, and what has ended. What a blind check could
    not see has not ended.
    """
    at = time.time() if now is None else now
    found = tuple(replace(each, since=memory.since.get(each.identity, at)) for each in report.found)
    alarms = {each.identity for each in found if each.cause in ALARMING and not each.ignored}
    if report.partial:  # of the others nothing is known
        return replace(report, found=found, at=at)
    ended = set(memory.over) if report.blind else set(memory.since) - set(memory.untold) | memory.over
    return replace(
        report,
        found=found,
        new=frozenset(alarms - set(memory.since) | alarms & memory.untold),
        ended=tuple(sorted(ended - alarms)),
        at=at,
    )


def remember(report: Report, memory: Memory, *, reported: bool = True) -> None:
    """Keep what this check saw for the next one; unless it was `told`, what is new stays new. BfinfraError,
    OSError.
    """
    alarms = {each.identity: each.since for each in report.alarming}
    kept = {**memory.since, **alarms} if report.blind else alarms
    gone = {str(each.key) for each in report.found if each.cause is Cause.VANISHED}
    standing = {*report.standing, *gone, *(memory.standing if report.blind else ())}
    _keep(
        report.site,
        sorted(standing),
        kept,
        [] if reported else sorted(report.new),
        [] if reported else list(report.ended),
    )


def known(
    site: str, identities: Iterable[str], standing: Iterable[str] = (), now: float | None = None
) -> None:
    """Take this for what the last check saw and told, where whoever looked then kept it elsewhere.
    BfinfraError, OSError.
    """
    _keep(site, sorted(standing), dict.fromkeys(identities, time.time() if now is None else now), [], [])


def _keep(
    site: str, standing: list[str], since: Mapping[str, float | None], untold: list[str], over: list[str]
) -> None:
    found = {"format_version": VERSION, "standing": standing, "since": since, "untold": untold, "over": over}
    private.write(journal.folder(site) / FILE, json.dumps(found, indent=1) + "\n")
