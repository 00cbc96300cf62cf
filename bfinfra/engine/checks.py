"""Keeps on this machine what the last drift check of a site saw, so that lasting drift is reported once."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace

from bfinfra.engine import journal
from bfinfra.model.drift import ALARMING, Cause, Report
from bfinfra.model.events import Forgotten
from bfinfra.model.files import PRIVATE, write_whole
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.sources import small

FILE, VERSION, LARGEST = "drift.json", 1, 64 << 20
MADE = ("create", "update", "replace", "keep")


@dataclass(frozen=True)
class Memory:
    """What the last check found. `existing`: addresses of the resources that existed. `since`: identity of
    each drift → when a check first saw it, in seconds since the epoch. `unreported`: identities of drift that
    started and is not reported yet; `over`: of drift that ended and is not reported yet.

    The file calls `existing` `standing` and `unreported` `untold`, as earlier releases read it.
    """

    existing: frozenset[str] = frozenset()
    since: Mapping[str, float] = field(default_factory=dict)
    unreported: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()


def recall(scope: str) -> Memory:
    """Return the record of the last check; empty where there was none, or where the file can't be read.
    `scope`: see `journal.scope`.
    """
    try:
        found = json.loads(small(journal.place(scope) / FILE, LARGEST))
        since = {str(name): float(at) for name, at in found["since"].items()}
        existing, unreported, over = (
            frozenset(map(str, found[name])) for name in ("standing", "untold", "over")
        )
        return Memory(existing, since, unreported, over) if found["format_version"] == VERSION else Memory()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Memory()


def existed(scope: str, memory: Memory) -> frozenset[str]:
    """Addresses of resources that existed at the last check, or when an apply from this machine ended."""
    found, going = set(memory.existing), set[str]()
    for line in journal.read(scope):
        key, event, action = str(line.get("key", "")), line.get("event"), line.get("action")
        if event == "Forgotten" or action == "create":
            going.discard(key)  # it is gone: that making it anew fails, or can't begin, doesn't bring it back
        if event == "Started" and action == "delete" and key in found:
            going.add(key)  # a run that is killed notes no end
            found.discard(key)
        elif event == "Ended" and line.get("ending") in ("done", "kept"):
            (found.add if action in MADE else found.discard)(key)
            going.discard(key)
        elif event == "Ended" and key in going:
            found.add(key)
        elif event == "Forgotten":
            found.discard(key)
    return frozenset(found)


def forget(scope: str, keys: Collection[Key]) -> None:
    """Note that these are gone. Raises BfinfraError, OSError."""
    log = journal.Journal(scope)
    try:
        for key in keys:
            log(Forgotten(at=time.time(), key=key))
    finally:
        log.close()
    memory = recall(scope)
    if not memory.existing.isdisjoint(gone := set(map(str, keys))):
        _keep(
            scope,
            sorted(memory.existing - gone),
            memory.since,
            sorted(memory.unreported),
            sorted(memory.over),
        )


def since(report: Report, memory: Memory, now: float | None = None) -> Report:
    """The report with what is new, since when each drift lasts, and what has ended. A check that could not
    read everything ends nothing.
    """
    at = time.time() if now is None else now
    found = tuple(replace(each, since=memory.since.get(each.identity, at)) for each in report.found)
    alarms = {each.identity for each in found if each.cause in ALARMING and not each.ignored}
    if report.partial:  # a partial report says nothing of the other resources
        return replace(report, found=found, at=at)
    ended = set(memory.over) if report.blind else set(memory.since) - set(memory.unreported) | memory.over
    return replace(
        report,
        found=found,
        new=frozenset(alarms - set(memory.since) | alarms & memory.unreported),
        ended=tuple(sorted(ended - alarms)),
        at=at,
    )


def remember(report: Report, memory: Memory, *, reported: bool = True) -> None:
    """Keep what this check saw for the next one. With `reported` False, new and ended drift is reported
    again. Raises BfinfraError, OSError.
    """
    alarms = {each.identity: each.since for each in report.alarming}
    kept = {**memory.since, **alarms} if report.blind else alarms
    gone = {str(each.key) for each in report.found if each.cause is Cause.VANISHED}
    existing = {*report.existing, *gone, *(memory.existing if report.blind else ())}
    _keep(
        report.scope or report.site,
        sorted(existing),
        kept,
        [] if reported else sorted(report.new),
        [] if reported else list(report.ended),
    )


def known(
    scope: str, identities: Iterable[str], existing: Iterable[str] = (), now: float | None = None
) -> None:
    """Record these drifts and addresses as seen and reported, for a caller that keeps the state of the last
    check elsewhere. Raises BfinfraError, OSError.
    """
    _keep(scope, sorted(existing), dict.fromkeys(identities, time.time() if now is None else now), [], [])


def _keep(
    scope: str, existing: list[str], since: Mapping[str, float | None], unreported: list[str], over: list[str]
) -> None:
    found = {
        "format_version": VERSION,
        "standing": existing,
        "since": since,
        "untold": unreported,
        "over": over,
    }
    write_whole(journal.folder(scope) / FILE, json.dumps(found, indent=1) + "\n", PRIVATE)
