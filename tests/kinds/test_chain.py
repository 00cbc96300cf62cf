"""A chain from vCenter into the cluster that it brings forth: killed at a write, the next run finishes it.

Here at some of them; `script/torture crash` does it at every one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds.lifecycle import KILLED, apply, endings, kill_at, made, plan, world

CHAIN = Path(__file__).with_name("chain.yaml")
STRIDE = 4


def test_a_chain_is_made_in_one_apply_and_then_agrees(sandbox):
    first = apply(CHAIN, sandbox)
    assert set(endings(first).values()) == {"done", "kept"}
    writes = sandbox.tally()["written"]
    assert set(endings(apply(CHAIN, sandbox)).values()) == {"kept"}
    assert sandbox.tally()["written"] == writes


@pytest.mark.thorough
def test_a_chain_killed_after_a_write_is_finished_by_the_next_apply(sandbox, tmp_path):
    apply(CHAIN, sandbox)
    whole, writes = world(sandbox), sandbox.tally()["written"]
    assert writes >= 8
    for nth in range(1, writes + 1, STRIDE):
        sandbox.reset()
        assert kill_at(CHAIN, sandbox, nth, "after", tmp_path / "state") == KILLED
        finished = apply(CHAIN, sandbox)
        assert made(finished), (nth, endings(finished))
        assert world(sandbox) == whole, f"killed after write {nth}"
        assert plan(CHAIN, sandbox).pending == ()


@pytest.mark.thorough
def test_a_chain_killed_while_it_goes_is_gone_after_the_next_destroy(sandbox, tmp_path):
    before = world(sandbox)
    apply(CHAIN, sandbox)
    made_by = sandbox.tally()["written"]
    apply(CHAIN, sandbox, destroy=True)
    assert world(sandbox) == before
    for nth in range(1, sandbox.tally()["written"] - made_by + 1, STRIDE):
        sandbox.reset()
        apply(CHAIN, sandbox)
        assert kill_at(CHAIN, sandbox, nth, "after", tmp_path / "state", destroy=True) == KILLED
        finished = apply(CHAIN, sandbox, destroy=True)
        assert made(finished), (nth, endings(finished))
        assert world(sandbox) == before
