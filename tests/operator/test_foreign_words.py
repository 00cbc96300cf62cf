"""Words of servers and Sites in what the operator writes: conditions, Events, a Job's result, its log."""

from __future__ import annotations

import json
import logging

import pytest
from bad_input.nasty import ESCAPES, acts
from hypothesis import given, settings
from hypothesis import strategies as st

from bfinfra.operator.desired import Desired
from bfinfra.operator.event import event
from bfinfra.operator.process import OneLine
from bfinfra.operator.result import LARGEST, Moved, Outcome, Planned, Result
from bfinfra.operator.status import LONGEST, Notice, _condition
from bfinfra.operator.watching import Watching

WORDS = st.one_of(
    st.text(max_size=2_000), st.sampled_from([*ESCAPES, "a\nb", "\ud800" * 2_000, "😀" * 2_000])
)
MANY = settings(max_examples=100, deadline=None, derandomize=True, database=None)
SITE = Desired.of(
    {"metadata": {"name": "s", "namespace": "n", "uid": "u", "generation": 1}, "spec": {"site": {}}}
)


@MANY
@given(WORDS)
def test_a_condition_and_its_event_are_one_visible_line_that_fits(words: str):
    made = _condition("Ready", "False", "Failed", words)["message"]
    assert (acts(made), made.splitlines()[1:], len(made) <= LONGEST) == ([], [], True)
    sent = event(SITE, Notice("Warning", "Failed", made), 0)
    json.dumps(sent, ensure_ascii=False).encode()


@MANY
@given(WORDS)
def test_a_result_and_a_watchers_report_can_be_sent_and_fit(words: str):
    moved, planned = (Moved(words, words, "drift", words),) * 3, (Planned(words, words),) * 3
    found = Result(
        Outcome.FAILED, words, 10**18, 10**18, moved, 10**18, "d" * 64, 10**18, planned, "a" * 64, 10**18, (1 / 3, 1e6 / 7), {words: 1}, {words: 2},
    )  # fmt: skip
    written = found.text()
    assert len(written.encode()) <= LARGEST
    assert Result.read(written).outcome is Outcome.FAILED
    json.dumps(Watching(why=words, drifted=1, found=moved).status(), ensure_ascii=False).encode()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028", "\x85"])
def test_a_message_is_one_line_of_the_log(end):
    forged = f"a{end}2026-01-01 INFO bfinfra.operator: forged\x1b[2J"
    with pytest.raises(ValueError, match="forged") as raised:
        int(forged)
    record = logging.LogRecord(
        "bfinfra.operator", logging.WARNING, "", 1, "%s/%s: %s", ("n", "s", forged), None
    )
    failed = logging.LogRecord(
        "a", logging.ERROR, "", 1, "%s", ("x",), (raised.type, raised.value, raised.tb)
    )
    style = OneLine("%(levelname)s %(name)s: %(message)s")
    written = style.format(record)
    assert (written.splitlines()[1:], acts(written)) == ([], [])
    assert written.startswith("WARNING bfinfra.operator: n/s: a")
    trace = style.format(failed).splitlines()
    assert "forged" in " ".join(trace)
    assert all(line.startswith("  ") for line in trace[1:])
