"""Names, values and words of servers that act on terminals, hide or reverse text: in no output of any
renderer, in any place where they may stand.
"""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bad_input.nasty import ESCAPES, acts
from render_samples import Create, Destroy, Outcome, Reboot

from bfinfra.cli import ask
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.errors import BfinfraError, Place, Problem, Warned
from bfinfra.model.events import Ended, Ending, Progressed, Settling, Started, StepBegun, StepEnded
from bfinfra.model.kind import Done
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.render import data, drift, graph, history, lines, markdown, ova, problems, summary, text
from bfinfra.render.live import Board
from bfinfra.render.safe import LONGEST, safe
from bfinfra.render.style import Style

WORDS = "a{}b".format("".join(ESCAPES))
KEY, OTHER = Key("box", WORDS), Key("box", "b" + WORDS)
PROBLEM = Problem(WORDS, Place(Path(f"/{WORDS}"), 1, 2, WORDS), WORDS, WORDS)
ITEM = Item(
    KEY,
    Action.DELETE,
    (
        Destroy(
            name=WORDS, changes=(Change(WORDS, WORDS, [WORDS, {WORDS: WORDS}, None, Unknown(OTHER, WORDS)]),)
        ),
        Create(name=WORDS, cluster=WORDS),
        Reboot(host=WORDS),
    ),
    (OTHER,),
    contents=(WORDS,),
    because={OTHER: WORDS},
)
PLAN = Plan(
    WORDS,
    (ITEM, replace(ITEM, key=OTHER, action=Action.UPDATE)),
    (PROBLEM, replace(PROBLEM, where=WORDS)),
    {WORDS: WORDS},
    (Warned(PROBLEM),),
)
EVENTS = [
    Started(at=0, key=KEY, action=Action.CREATE),
    StepBegun(at=1, key=KEY, title=WORDS, number=1),
    Progressed(at=12, key=KEY, progress=Done(WORDS, 5, 9)),
    Settling(at=13, key=KEY, why=WORDS),
    Progressed(at=30, key=KEY, progress=Done(WORDS, 6, 9)),
    StepEnded(at=31, key=KEY, title=WORDS, number=1, seconds=1, problem=PROBLEM, again=True),
    Ended(
        at=32,
        key=KEY,
        action=Action.CREATE,
        ending=Ending.FAILED,
        seconds=1,
        note=f"{WORDS}\n{WORDS}",
        problem=PROBLEM,
    ),
]
OUTCOME = Outcome(PLAN, {KEY: EVENTS[-1], OTHER: replace(EVENTS[-1], key=OTHER, ending=Ending.DONE)})
REPORT = Report(
    WORDS,
    (
        Drifted(
            key=KEY,
            cause=Cause.DRIFT,
            field=WORDS,
            applied=WORDS,
            now=[WORDS, {WORDS: WORDS}],
            wanted=WORDS,
            by=WORDS,
            at=1.0,
            since=2.0,
        ),
        Drifted(
            key=OTHER,
            cause=Cause.CONFLICT,
            field=WORDS,
            applied=WORDS,
            now=WORDS,
            wanted=WORDS,
            ignored=WORDS,
        ),
        Drifted(key=OTHER, cause=Cause.UNMARKED, why=WORDS),
    ),
    1,
    (PROBLEM,),
    {WORDS: WORDS},
    (Warned(PROBLEM),),
    (WORDS,),
    frozenset({f"{KEY} {WORDS} drift"}),
    (WORDS,),
)
JOURNAL = [
    {"run": WORDS, "event": "StepBegun", "key": WORDS, "title": WORDS, "at": 1},
    {
        "run": WORDS,
        "event": "StepEnded",
        "key": WORDS,
        "title": WORDS,
        "number": 2,
        "problem": {"what": WORDS},
    },
    {
        "run": WORDS,
        "event": "Ended",
        "key": WORDS,
        "ending": WORDS,
        "action": WORDS,
        "problem": {"what": WORDS},
    },
]
FOUND = {
    "file": WORDS,
    "size": 1,
    "product": {"name": WORDS, "vendor": WORDS, "version": WORDS, "full_version": WORDS},
    "licences": [WORDS],
    "members": [],
    "hardware": {"cpus": 8, "memory": 1, "version": WORDS, "firmware": WORDS, "adapters": [WORDS]},
    "properties": [
        {
            "key": WORDS,
            "type": WORDS,
            "required": True,
            "user_configurable": False,
            "password": False,
            "default": WORDS,
            "label": WORDS,
            "description": WORDS,
            "category": WORDS,
            "qualifiers": WORDS,
        }
    ],
    "networks": [{"name": WORDS, "description": WORDS}],
    "disks": [{"id": WORDS, "href": WORDS, "size": 1, "capacity": 1, "format": WORDS}],
    "deployment_options": [{"id": WORDS, "label": WORDS, "default": False}],
    "manifest": {"state": "present", "algorithms": [WORDS], "files": 1},
    "signature": {
        "algorithm": WORDS,
        "subject": WORDS,
        "issuer": WORDS,
        "not_before": "2020-01-01T00:00:00+00:00",
        "not_after": "2021-01-01T00:00:00+00:00",
        "sha256": "ab",
        "own": True,
        "expired": True,
    },
}
LOUD = Style(verbose=True)
BEFORE = {KEY: {}, OTHER: {KEY: WORDS}}


@pytest.mark.parametrize(
    "made",
    [
        lambda: text.plan(PLAN, LOUD),
        lambda: markdown.plan(PLAN, LOUD),
        lambda: markdown.outcome(OUTCOME, EVENTS),
        *(lambda made=made: made(REPORT, LOUD) for made in (drift.text, drift.changes, drift.markdown)),
        lambda: markdown.problems([PROBLEM]),
        lambda: summary.outcome(OUTCOME, EVENTS, LOUD),
        lambda: problems.problems([PROBLEM, PROBLEM], LOUD),
        lambda: problems.warnings([Warned(PROBLEM)]),
        lambda: graph.tree(BEFORE),
        lambda: graph.dot(BEFORE, WORDS),
        lambda: history.history(JOURNAL, LOUD),
        lambda: ova.text(FOUND),
        lambda: ask._what(ITEM),
        lambda: ask._what(PLAN.items[1]),
    ],
)
def test_no_text_for_people_acts_on_the_terminal(made):
    assert acts(made()) == []


@pytest.mark.parametrize(
    "made",
    [
        lambda: data.plan(PLAN),
        lambda: drift.data(REPORT),
        *(lambda each=each: each for each in drift.lines(REPORT)),
        lambda: data.outcome(OUTCOME, EVENTS),
        lambda: data.error(BfinfraError(PROBLEM)),
        lambda: graph.data(BEFORE, WORDS),
        lambda: history.data(WORDS, JOURNAL),
        *(lambda each=each: data.event(each) for each in EVENTS),
        *(lambda each=each: each for each in data.plan_lines(PLAN)),
    ],
)
def test_no_document_does_either_and_a_program_reads_the_words_as_they_were(made):
    for form in (data.text, data.line):
        assert acts(form(made())) == []
        assert json.loads(form(made()))


def test_neither_do_the_lines_and_the_board_of_an_apply():
    message, screen = [], io.StringIO()
    sink = lines.Lines(PLAN, message.append)
    with Board(PLAN, screen, colour=False) as board:
        for event in EVENTS:
            sink(event)
            board(event)
            board._live.refresh()
    assert acts("\n".join(message)) == []
    hidden = [each for each in ESCAPES if each not in "\r\x1b[K\b\b\b" and each in screen.getvalue()]
    assert hidden == []


def test_words_are_bounded_and_every_hidden_character_is_seen():
    assert len(safe("x" * 10**6)) == LONGEST + 1
    everything = "".join(chr(number) for number in range(sys.maxunicode + 1) if number not in (0x20, 0x0A))
    assert (
        acts("".join(safe(everything[at : at + LONGEST]) for at in range(0, len(everything), LONGEST))) == []
    )
