"""Every kind by its existing: its example applies, applies again without a write, survives SIGKILL at every write, and goes.

What each kind does in particular is tested in its own file.
"""

from __future__ import annotations

import pytest
from kinds.lifecycle import EXAMPLES, KILLED, apply, endings, kill_at, made, plan, world

from bfinfra.kinds import names

every_kind = pytest.mark.parametrize("kind", names())


@every_kind
def test_every_kind_has_an_example(kind):
    assert kind in EXAMPLES, f"write specs/kinds/{kind}.yaml, the smallest site with a {kind}"


@every_kind
def test_it_applies_and_then_agrees(kind, sandbox):
    first = apply(EXAMPLES[kind], sandbox)
    assert made(first), endings(first)
    writes = sandbox.tally()["written"]
    again = apply(EXAMPLES[kind], sandbox)
    assert set(endings(again).values()) == {"kept"}
    assert sandbox.tally()["written"] == writes
    assert plan(EXAMPLES[kind], sandbox).pending == ()


@every_kind
def test_planning_writes_nothing(kind, sandbox):
    before = world(sandbox)
    plan(EXAMPLES[kind], sandbox)
    assert sandbox.tally()["written"] == 0
    assert world(sandbox) == before


@every_kind
def test_it_goes_without_a_trace(kind, sandbox):
    before = world(sandbox)
    apply(EXAMPLES[kind], sandbox)
    gone = apply(EXAMPLES[kind], sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before


@every_kind
def test_every_step_says_what_it_does(kind, sandbox):
    for item in plan(EXAMPLES[kind], sandbox).pending:
        for step in item.steps:
            assert step.title()
            assert "{" not in step.title()


@every_kind
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_write_the_next_apply_finishes(kind, when, sandbox, tmp_path):
    apply(EXAMPLES[kind], sandbox)
    whole, writes = world(sandbox), sandbox.tally()["written"]
    for nth in range(1, writes + 1):
        sandbox.reset()
        assert kill_at(EXAMPLES[kind], sandbox, nth, when, tmp_path / "state") == KILLED
        finished = apply(EXAMPLES[kind], sandbox)
        assert made(finished), (nth, endings(finished))
        assert world(sandbox) == whole, f"killed {when} write {nth}"
        assert plan(EXAMPLES[kind], sandbox).pending == ()


@every_kind
def test_killed_while_it_is_destroyed_the_next_destroy_finishes(kind, sandbox, tmp_path):
    before = world(sandbox)
    apply(EXAMPLES[kind], sandbox)
    made_by = sandbox.tally()["written"]
    apply(EXAMPLES[kind], sandbox, destroy=True)
    for nth in range(1, sandbox.tally()["written"] - made_by + 1):
        sandbox.reset()
        apply(EXAMPLES[kind], sandbox)
        assert kill_at(EXAMPLES[kind], sandbox, nth, "after", tmp_path / "state", destroy=True) == KILLED
        finished = apply(EXAMPLES[kind], sandbox, destroy=True)
        assert made(finished), (nth, endings(finished))
        assert world(sandbox) == before
