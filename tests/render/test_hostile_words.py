"""Names, values and words of servers that act on terminals, hide or reverse text: in no output of any
renderer, in any place where they may stand.
"""

from __future__ import annotations

import io
import json
import sys

import pytest
from bad_input.nasty import ESCAPES, acts
from hostile_samples import samples

from bfinfra.cli import ask
from bfinfra.model.compare import Unknown
from bfinfra.model.errors import BfinfraError, Warned
from bfinfra.model.refs import Key
from bfinfra.render import data, drift, graph, history, lines, markdown, ova, problems, summary, text
from bfinfra.render.live import Board
from bfinfra.render.safe import LONGEST, safe
from bfinfra.render.style import Style

WORDS = "a{}b".format("".join(ESCAPES))
SHOWN = samples(WORDS, [WORDS, {WORDS: WORDS}, None, Unknown(Key("box", WORDS), WORDS)])
KEY, OTHER, PROBLEM, PLAN, EVENTS, OUTCOME, REPORT, JOURNAL, FOUND = (
    SHOWN.key, SHOWN.other, SHOWN.problem, SHOWN.plan, SHOWN.events, SHOWN.outcome, SHOWN.report, SHOWN.journal, SHOWN.ova,
)  # fmt: skip
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
        lambda: ask._what(PLAN.items[0]),
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


@pytest.mark.parametrize("blank", ["\u115f", "\u3164", "\u2800", "\ufe0f", "\U000e0100", "\u034f"])
def test_a_letter_that_shows_nothing_is_seen(blank):
    assert safe(f"a{blank}b") == f"a{blank.encode('unicode_escape').decode()}b"
