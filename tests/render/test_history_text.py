"""The journal's lines as runs."""

from __future__ import annotations

import json

from bfinfra.render import history
from bfinfra.render.style import Style

AT = 1770091500.0
LINES = [
    {"run": "0a1b", "event": "StepBegun", "at": AT, "key": "vm/a", "title": "create a", "number": 1},
    {
        "run": "0a1b",
        "event": "StepEnded",
        "at": AT + 2,
        "key": "vm/a",
        "title": "create a",
        "number": 1,
        "seconds": 2.0,
        "problem": None,
    },
    {
        "run": "0a1b",
        "event": "Ended",
        "at": AT + 3,
        "key": "vm/a",
        "action": "create",
        "ending": "done",
        "seconds": 3.0,
        "problem": None,
    },
    {
        "run": "0a1b",
        "event": "Ended",
        "at": AT + 3,
        "key": "vm/k",
        "action": "keep",
        "ending": "kept",
        "seconds": 0.0,
        "problem": None,
    },
    {
        "run": "77ff",
        "event": "StepBegun",
        "at": AT + 60,
        "key": "vm/b",
        "title": "create b\x1b[2J",
        "number": 1,
    },
    {
        "run": "77ff",
        "event": "Ended",
        "at": AT + 61,
        "key": "vm/c",
        "action": "delete",
        "ending": "failed",
        "seconds": 1,
        "problem": {"what": "denied"},
    },
]


def test_runs_say_when_how_long_and_what():
    assert (
        history.history(LINES)
        == """\
2026-02-03T04:05:00Z  run 0a1b  3.0s: 1 created
  ✓ vm/a: created after 3.0s

2026-02-03T04:06:00Z  run 77ff  1.0s: 1 failed
  ✗ vm/c: failed after 1.0s: denied
  ■ vm/b: never ended: create b\\x1b[2J"""
    )


def test_steps_are_shown_when_asked():
    assert "        2.0s  create a" in history.history(LINES, Style(verbose=True))


def test_an_empty_journal_is_shown_in_words():
    assert history.history([]) == "Nothing was applied from this machine yet."


def test_words_of_a_later_version_are_shown_as_they_are():
    assert "vm/a: pondered after" in history.history(
        [{"run": "1", "event": "Ended", "at": AT, "key": "vm/a", "ending": "pondered"}]
    )


def test_programs_read_runs_with_utc_times():
    found = json.loads(json.dumps(history.data("poc", LINES)))
    assert [(r["run"], r["began"], r["seconds"]) for r in found["runs"]] == [
        ("0a1b", "2026-02-03T04:05:00.000Z", 3.0),
        ("77ff", "2026-02-03T04:06:00.000Z", 1.0),
    ]
    assert found["runs"][1]["events"][1]["at"] == "2026-02-03T04:06:01.000Z"
