"""Output for programs: JSON with a `format_version`, times in ISO 8601 UTC, sizes in bytes, addresses as
`kind/name`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from bfinfra.model.errors import BfinfraError, Place, Problem
from bfinfra.model.events import Ended, Ending, Event, StepEnded
from bfinfra.model.outcome import OutOfService
from bfinfra.model.plan import Action, Item, Plan, plain, step_data
from bfinfra.model.redact import clean
from bfinfra.model.refs import Key
from bfinfra.render.values import utc

FORMAT_VERSION = 1
DOUBLED = re.compile("#(?=#)")


class Outcome(Protocol):
    """The result of an apply, as the renderers read it."""

    @property
    def plan(self) -> Plan:
        """The plan."""

    @property
    def endings(self) -> Mapping[Key, Ended]:
        """The result of each item, by key."""

    @property
    def seconds(self) -> float:
        """The duration, in seconds."""

    @property
    def requests(self) -> int:
        """The number of requests."""

    @property
    def writes(self) -> int:
        """The number of requests that write."""

    @property
    def out_of_service(self) -> Sequence[OutOfService]:
        """What does not serve after it."""

    @property
    def ending(self) -> Ending:
        """The result of the whole run."""


def document(what: str, **fields: object) -> dict[str, Any]:
    """The frame of every document: its version and type."""
    return {"format_version": FORMAT_VERSION, "type": what, **fields}


def text(data: Mapping[str, object]) -> str:
    """An indented document, for a file or a pipe."""
    return _unread(json.dumps(clean(data), indent=2))


def line(data: Mapping[str, object]) -> str:
    """A document in one line, without line ends or control characters in it."""
    return _unread(json.dumps(clean(data), separators=(",", ":")))


def _unread(written: str) -> str:
    """The same document without what a CI system takes for a command in its log: `##vso[` and `##[`. Outside
    of a text JSON has no `#`, so each may be escaped. Others begin a line, and no line of JSON does so.
    """
    return DOUBLED.sub(r"\\u0023", written) if "##" in written else written


def plan(found: Plan) -> dict[str, Any]:
    """A plan as JSON."""
    return document(
        "plan",
        site=found.site,
        partial=found.partial.data() if found.partial else None,
        summary={str(a): sum(i.action is a for i in found.items) for a in Action},
        items=[item(each) for each in found.items],
        problems=[problem(p) for p in found.problems],
        unreadable=[{"address": where, "why": why} for where, why in found.unreadable.items()],
        warnings=[problem(w.problem) for w in found.warnings],
    )


def plan_lines(found: Plan) -> Iterable[dict[str, Any]]:
    """The same with a document for each item, the summary last."""
    whole = plan(found)
    for each in whole.pop("items"):
        yield document("item", site=found.site, **each)
    yield whole


def item(found: Item) -> dict[str, Any]:
    """One resource of a plan."""
    return {
        "address": str(found.key),
        "kind": found.key.kind,
        "name": found.key.name,
        "action": str(found.action),
        "disruption": str(found.disruption),
        "changes": [plain(c) for c in found.changes],
        "follows": sorted(found.follows),
        "steps": [
            {**step_data(s), "disruption": str(s.disruption), "destructive": s.destructive, "why": s.why}
            for s in found.steps
        ],
        "waits_for": [str(key) for key in found.waits_for],
        "because": {str(key): why for key, why in found.because.items()},
        "contents": list(found.contents),
        "held": problem(found.held),
    }


def problem(found: Problem | None) -> dict[str, Any] | None:
    """A problem as JSON. `where` is an object for a place in a file, else text."""
    if found is None:
        return None
    where: Any = found.where
    if isinstance(where, Place):
        where = (
            {"file": str(where.file), "line": where.line, "column": where.column}
            if where.line
            else str(where)
        )
    return {"what": found.what, "where": where, "why": found.why, "next": found.next}


def error(found: BfinfraError) -> dict[str, Any]:
    """An error as JSON. `error` is its class, which decides what can be done about it."""
    return document("error", error=type(found).__name__, problems=[problem(p) for p in found.problems])


def event(found: Event) -> dict[str, Any]:
    """An event as JSON. `type` in snake case: started, step_begun, step_ended, progressed, settling,
    ended.
    """
    fields = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    data: dict[str, Any] = {"at": utc(found.at), "address": str(fields.pop("key", ""))}
    del fields["at"]
    for name, value in fields.items():
        data[name] = problem(value) if name == "problem" else plain(value)
    return document(re.sub(r"(?<=.)(?=[A-Z])", "_", type(found).__name__).lower(), **data)


def outcome(found: Outcome, events: Sequence[Event] = ()) -> dict[str, Any]:
    """An outcome as JSON: each resource with its ending, note, problem and the steps that ran; what is off or
    in maintenance mode after a run that did not finish, with the steps that are left.
    """
    ran = steps_run(events)
    return document(
        "outcome",
        site=found.plan.site,
        partial=found.plan.partial.data() if found.plan.partial else None,
        ending=str(found.ending),
        seconds=round(found.seconds, 3),
        requests=found.requests,
        writes=found.writes,
        resources=[_ended(ended, ran.get(key, ())) for key, ended in found.endings.items()],
        out_of_service=[
            {"address": str(each.key), "how": each.how, "left": list(each.left)}
            for each in found.out_of_service
        ],
    )


def steps_run(events: Iterable[Event]) -> dict[Key, list[StepEnded]]:
    """Key → the steps that ran, in their order. A retried step is listed once, as it ended."""
    found: dict[Key, dict[int, StepEnded]] = {}
    for each in events:
        if isinstance(each, StepEnded):
            found.setdefault(each.key, {})[each.number] = each
    return {key: list(steps.values()) for key, steps in found.items()}


def _ended(ended: Ended, steps: Sequence[StepEnded]) -> dict[str, Any]:
    return {
        "address": str(ended.key),
        "action": str(ended.action),
        "ending": str(ended.ending),
        "seconds": round(ended.seconds, 3),
        "note": ended.note,
        "problem": problem(ended.problem),
        "steps": [
            {
                "title": s.title,
                "number": s.number,
                "seconds": round(s.seconds, 3),
                "problem": problem(s.problem),
            }
            for s in steps
        ],
    }
