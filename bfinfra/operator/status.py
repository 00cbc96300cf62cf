"""Turns a check's result into the status of its Site, and into Events for what is new. Pure. The only times
are those of the conditions' last changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from bfinfra.operator.decide import Look
from bfinfra.operator.desired import APPROVE, Desired
from bfinfra.operator.result import GOOD, PASSING, Outcome, Result
from bfinfra.operator.watching import Watching
from bfinfra.render.safe import safe

Status = dict[str, Any]
SHOWN = 10  # drifted fields or changes in a message
LONGEST = 1024  # characters of a message
BLIND = (*PASSING, Outcome.INVALID)
"""Outcomes that say nothing of the live state."""


class Notice(NamedTuple):
    """An Event."""

    kind: str
    reason: str
    message: str


def after(wanted: Desired, look: Look, now: str) -> Status:
    """The whole status after a check. `now`: ISO 8601, for conditions that change."""
    found, before = look.found, wanted.status
    blind = found.outcome in BLIND or (found.outcome is Outcome.FAILED and not found.drifted)
    turned = [
        _ready(wanted, found),
        *([] if blind and not found.drifted else [_drifted(found)]),
        *([] if found.outcome in PASSING else [_approval(found)]),
    ]
    conditions = {each["type"]: dict(each) for each in before.get("conditions") or ()}
    _set(conditions, turned, look.generation, now)
    made: Status = {"observedGeneration": look.generation, "conditions": list(conditions.values())}
    made["resources"] = before.get("resources", 0) if found.outcome in BLIND else found.resources
    plan, drift = (
        (before.get("plan") if found.outcome in PASSING else _plan(found, look)),
        (before.get("drift") if blind and not found.drifted else _drift(found)),
    )
    watch = {"watch": before["watch"]} if "watch" in before else {}
    return made | watch | ({"plan": plan} if plan else {}) | ({"drift": drift} if drift else {})


def watched(wanted: Desired, now: str, *, alive: bool, fresh: bool) -> Status:
    """The whole status after a watcher's report. `alive`: its replica lives; `fresh`: the differences are not
    in the status yet.
    """
    found, made = wanted.watching, dict(wanted.status)
    turned = [_followed(found, alive=alive)] if wanted.watch else []
    if wanted.watch and fresh and found.generation == wanted.generation:
        drift = Result(Outcome.AGREED, drifted=found.drifted, moved=found.found)
        turned.append(_drifted(drift))
        made.pop("drift", None)
        made |= {"drift": kept} if (kept := _drift(drift)) else {}
    conditions = {each["type"]: dict(each) for each in made.get("conditions") or ()}
    if not wanted.watch:
        conditions.pop("Watched", None)
        made.pop("watch", None)
    _set(conditions, turned, wanted.generation, now)
    return made | ({"conditions": list(conditions.values())} if conditions or "conditions" in made else {})


def _set(conditions: dict[str, Status], turned: Iterable[dict[str, str]], generation: int, now: str) -> None:
    """Put these conditions among the others. A time changes with the status only."""
    for each in turned:
        old = conditions.get(each["type"], {})
        since = old["lastTransitionTime"] if old.get("status") == each["status"] else now
        conditions[each["type"]] = {**each, "observedGeneration": generation, "lastTransitionTime": since}


def difference(before: Mapping[str, Any], new: Status) -> Status:
    """A merge patch from one to the other; {} if they are equal."""
    changed = {key: value for key, value in new.items() if before.get(key) != value}
    return changed | {key: None for key in before if key not in new}


def notices(before: Mapping[str, Any], new: Status, found: Result) -> Iterator[Notice]:
    """The Events of a check: what started and what ended, once."""
    if _turned(before, new, "Drifted", "True"):
        yield Notice("Warning", "DriftFound", _message(new, "Drifted"))
    if found.corrected:
        yield Notice("Normal", "DriftCorrected", f"{found.corrected} drifted values were corrected")
    elif _status(before, "Drifted") == "True" and _turned(before, new, "Drifted", "False"):
        yield Notice("Normal", "DriftEnded", "no drift is left")
    if (new.get("plan") or {}).get("digest") != (before.get("plan") or {}).get("digest") and new.get("plan"):
        yield Notice("Normal", "ApprovalNeeded", _message(new, "Ready"))
    if found.outcome is Outcome.APPLIED and found.writes:
        yield Notice("Normal", "Applied", f"everything is as the site says; {found.writes} requests wrote")
    if _turned(before, new, "Watched", "False"):
        yield Notice("Warning", "NotWatched", _message(new, "Watched"))
    elif _turned(before, new, "Watched", "True"):
        yield Notice("Normal", "Watched", _message(new, "Watched"))
    ready = _of(new, "Ready")
    if ready.get("status") == "False" and ready.get("reason") not in (
        Outcome.APPROVAL,
        _of(before, "Ready").get("reason"),
    ):
        yield Notice("Warning", str(ready["reason"]), _message(new, "Ready"))


def _ready(wanted: Desired, found: Result) -> dict[str, str]:
    if found.outcome in GOOD:
        return _condition("Ready", "True", "AsWanted", f"{found.resources} resources are as the site says")
    if found.outcome is Outcome.APPROVAL:
        say = (
            f"kubectl annotate site {wanted.name} --namespace {wanted.namespace} --overwrite {APPROVE}"
            f"={found.digest}"
        )
        return _condition(
            "Ready", "False", found.outcome, f"{_changes(found)}; to approve exactly this: {say}"
        )
    return _condition("Ready", "False", found.outcome, found.why or "the check gives no reason")


def _drifted(found: Result) -> dict[str, str]:
    if not found.drifted:
        return _condition("Drifted", "False", "AsApplied", "nothing has drifted")
    shown = [
        " ".join(filter(None, (each.address, each.field, each.cause, f"by {each.by}" if each.by else "")))
        for each in found.moved[:SHOWN]
    ]
    return _condition(
        "Drifted",
        "True",
        "WorldMoved",
        f"{found.drifted}: {'; '.join(shown)}{', …' if found.drifted > len(shown) else ''}",
    )


def _followed(found: Watching, *, alive: bool) -> dict[str, str]:
    if not (found.replica and alive):
        why = f" ({found.why})" if found.why else ""
        return _condition(
            "Watched", "False", "NoWatcher", f"no watcher follows it{why}; Jobs check it at the interval"
        )
    if not found.following:
        return _condition("Watched", "False", "NotFollowed", found.why or "its first survey is not over")
    gap = f"; not followed for up to {found.blind:.0f} s before: {found.why}" if found.blind else ""
    return _condition("Watched", "True", "Followed", f"{found.replica} follows it{gap}")


def _approval(found: Result) -> dict[str, str]:
    if found.outcome is Outcome.APPROVAL:
        return _condition("ApprovalNeeded", "True", "PlanWaits", _changes(found))
    return _condition("ApprovalNeeded", "False", "NothingWaits", "no plan waits")


def _changes(found: Result) -> str:
    shown = [
        (
            f"{each.action} {each.address}"
            f"{f' ({each.disruption})' if each.disruption not in ('', 'none') else ''}"
        )
        for each in found.changes[:SHOWN]
    ]
    return f"{found.planned} changes wait: {', '.join(shown)}{', …' if found.planned > len(shown) else ''}"


def _plan(found: Result, look: Look) -> Status | None:
    if found.outcome is not Outcome.APPROVAL:
        return None
    return {
        "digest": found.digest,
        "count": found.planned,
        "destroy": look.destroy,
        "changes": [asdict(each) for each in found.changes],
    }


def _drift(found: Result) -> Status | None:
    return (
        {"count": found.drifted, "found": [asdict(each) for each in found.moved]} if found.drifted else None
    )


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": str(reason), "message": safe(message)[:LONGEST]}


def _of(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})


def _status(status: Mapping[str, Any], kind: str) -> str:
    return str(_of(status, kind).get("status", ""))


def _message(status: Mapping[str, Any], kind: str) -> str:
    return str(_of(status, kind).get("message", ""))


def _turned(before: Mapping[str, Any], new: Mapping[str, Any], kind: str, to: str) -> bool:
    return _status(new, kind) == to != _status(before, kind)
