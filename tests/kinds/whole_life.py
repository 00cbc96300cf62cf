"""The whole life of a site on the sandbox: made, left as it is, and gone without a trace; and killed amid it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract import reach
from kinds.lifecycle import KILLED, apply, difference, drift, endings, kill_at, made, plan, run_context, world

import bfinfra
import bfinfra.kinds as registry
from bfinfra.kinds import cluster_locator
from bfinfra.model.events import StepBegun
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Step
from bfinfra.sandbox import Running

ASKED = reach.asked()


def lives(path: Path, sandbox: Running) -> None:
    """It is made as planned, kept by a second apply, found as it is by a drift, and goes without a trace; it
    asks what the contract suite asks.
    """
    asked: set[str] = set()
    before = world(sandbox)
    context = replace(run_context(sandbox), middleware=(reach.noting(asked),))
    steps = _steps_of(plan(path, sandbox))
    started: set[tuple[Key, str]] = set()
    first = apply(
        path,
        sandbox,
        context=context,
        on_event=lambda event: (
            started.add((event.key, event.title)) if isinstance(event, StepBegun) else None
        ),
    )
    assert made(first), endings(first)
    assert started - {(key, step.title()) for key, step in steps} == set(), (
        "apply takes a step that its plan did not show"
    )
    made_by = sandbox.tally()["written"]
    _kubeconfigs(path, sandbox, context)
    again = apply(path, sandbox)
    assert set(endings(again).values()) == {"kept"}
    checked = drift(path, sandbox)
    assert (checked.found, checked.unreadable) == ((), {})
    steps += _steps_of(plan(path, sandbox, destroy=True))
    assert sandbox.tally()["written"] == made_by
    gone = apply(path, sandbox, context=context, destroy=True)
    assert made(gone), endings(gone)
    assert (now := world(sandbox)) == before, difference(now, before)
    assert asked - ASKED == set(), sorted(asked - ASKED)
    for key, step in steps:
        assert type(step) in registry.kind(key.kind).step_types, key
        assert step.title() and "{" not in step.title(), key


def survives(path: Path, sandbox: Running, state: Path, anew: Callable[[], object] | None = None) -> None:
    """Killed amid its creation and amid its removal, it is finished by the next run. `anew`: makes the world as
    it was before; without, the sandbox is reset.
    """
    before, written = world(sandbox), sandbox.tally()["written"]
    assert made(apply(path, sandbox))
    whole, made_by = world(sandbox), sandbox.tally()["written"] - written
    assert made(apply(path, sandbox, destroy=True))
    gone_by = sandbox.tally()["written"] - written - made_by
    (anew or sandbox.reset)()
    _killed(path, sandbox, made_by, state)
    finished = apply(path, sandbox)
    assert made(finished), endings(finished)
    assert (now := world(sandbox)) == whole, difference(now, whole)
    _killed(path, sandbox, gone_by, state, destroy=True)
    finished = apply(path, sandbox, destroy=True)
    assert made(finished), endings(finished)
    assert (now := world(sandbox)) == before, difference(now, before)


def _kubeconfigs(path: Path, sandbox: Running, context: bfinfra.RunContext) -> None:
    site = bfinfra.load(path, sandbox=sandbox)
    for key in site.resources:
        if key.kind in cluster_locator.CLUSTERS:
            bfinfra.kubeconfig(site, str(key), context=context)


def _killed(path: Path, sandbox: Running, writes: int, state: Path, **how: Any) -> None:
    """In the middle of what it writes, if it writes."""
    if writes:
        assert kill_at(path, sandbox, (writes + 1) // 2, "after", state, **how) == KILLED


def _steps_of(found: Plan) -> list[tuple[Key, Step]]:
    return [(item.key, step) for item in found.pending for step in item.steps]
