"""All that the renderers are shown, with the same words wherever a server, a user or a file gives them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from render_samples import Create, Destroy, Outcome, Reboot

from bfinfra.model.compare import Change
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.errors import Place, Problem, Warned
from bfinfra.model.events import Ended, Ending, Progressed, Settling, Started, StepBegun, StepEnded
from bfinfra.model.kind import Done
from bfinfra.model.outcome import OutOfService
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key


@dataclass(frozen=True)
class Samples:
    """`words`: names, messages and reasons; `value`: what a field is on a server, and should be."""

    words: str
    value: Any
    key: Key
    other: Key
    problem: Problem
    plan: Plan
    events: list[Any]
    outcome: Outcome
    report: Report
    journal: list[dict[str, Any]]
    ova: dict[str, Any]


def samples(words: str, value: Any, note: str = "", file: str = "") -> Samples:
    """They differ only in the words, the value, a note and a file's name (the same words by default). Their order does not depend
    on the words.
    """
    key, other = Key("box", "a" + words), Key("box", "b" + words)
    problem = Problem(words, Place(Path(f"/f{file or words}"), 1, 2, words), words, words)
    item = Item(
        key,
        Action.DELETE,
        (
            Destroy(name=words, changes=(Change(words, value, value),)),
            Create(name=words, cluster=words),
            Reboot(host=words),
        ),
        (other,),
        contents=(words,),
        because={other: words},
    )
    plan = Plan(
        words,
        (item, replace(item, key=other, action=Action.UPDATE)),
        (problem, replace(problem, where=words)),
        {f"box/{words}": words},
        (Warned(problem),),
    )
    events = [
        Started(at=0, key=key, action=Action.CREATE),
        StepBegun(at=1, key=key, title=words, number=1),
        Progressed(at=12, key=key, progress=Done(words, 5, 9)),
        Settling(at=13, key=key, why=words),
        Progressed(at=30, key=key, progress=Done(words, 6, 9)),
        StepEnded(at=31, key=key, title=words, number=1, seconds=1, problem=problem, again=True),
        Ended(
            at=32,
            key=key,
            action=Action.CREATE,
            ending=Ending.FAILED,
            seconds=1,
            note=f"{note or words}\n{note or words}",
            problem=problem,
        ),
    ]
    outcome = Outcome(
        plan,
        {key: events[-1], other: replace(events[-1], key=other, ending=Ending.DONE)},
        out_of_service=(OutOfService(key, words, (words,)),),
    )
    report = Report(
        words,
        (
            Drifted(
                key=key,
                cause=Cause.DRIFT,
                field=words,
                applied=value,
                now=value,
                wanted=value,
                by=words,
                at=1.0,
                since=2.0,
            ),
            Drifted(
                key=other,
                cause=Cause.CONFLICT,
                field=words,
                applied=value,
                now=value,
                wanted=value,
                ignored=words,
            ),
            Drifted(key=other, cause=Cause.UNMARKED, why=words),
        ),
        1,
        (problem,),
        {f"box/{words}": words},
        (Warned(problem),),
        (f"box/c{words}",),
        frozenset({f"{key} {words} drift"}),
        (words,),
    )
    journal = [
        {"run": words, "event": "StepBegun", "key": words, "title": words, "at": 1},
        {
            "run": words,
            "event": "StepEnded",
            "key": words,
            "title": words,
            "number": 2,
            "problem": {"what": words},
        },
        {
            "run": words,
            "event": "Ended",
            "key": words,
            "ending": words,
            "action": words,
            "problem": {"what": words},
        },
    ]
    found = {
        "file": words,
        "size": 1,
        "product": {"name": words, "vendor": words, "version": words, "full_version": words},
        "licences": [words],
        "members": [],
        "hardware": {"cpus": 8, "memory": 1, "version": words, "firmware": words, "adapters": [words]},
        "properties": [
            {
                "key": words,
                "type": words,
                "required": True,
                "user_configurable": False,
                "password": False,
                "default": value,
                "label": words,
                "description": words,
                "category": words,
                "qualifiers": words,
            }
        ],
        "networks": [{"name": words, "description": words}],
        "disks": [{"id": words, "href": words, "size": 1, "capacity": 1, "format": words}],
        "deployment_options": [{"id": words, "label": words, "default": False}],
        "manifest": {"state": "present", "algorithms": [words], "files": 1},
        "signature": {
            "algorithm": words,
            "subject": words,
            "issuer": words,
            "not_before": "2020-01-01T00:00:00+00:00",
            "not_after": "2021-01-01T00:00:00+00:00",
            "sha256": "ab",
            "own": True,
            "expired": True,
        },
    }
    return Samples(words, value, key, other, problem, plan, events, outcome, report, journal, found)
