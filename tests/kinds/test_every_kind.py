"""Every kind by its existing: its example applies, applies again without a write, survives SIGKILL at every write, and goes.

What each kind does in particular is tested in its own file.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest
from kinds.lifecycle import EXAMPLES, KILLED, apply, drift, endings, kill_at, made, plan, unhurried, world

import bfinfra.kinds as registry
from bfinfra import app
from bfinfra.engine.rights import places
from bfinfra.kinds import names
from bfinfra.kinds.workload.decide import RESOURCES
from bfinfra.model.document import Document
from bfinfra.model.kind import Source
from bfinfra.model.refs import kinds_named
from bfinfra.model.rights import CLUSTERS, VCENTER

every_kind = pytest.mark.parametrize("kind", names())
lived_through = pytest.mark.parametrize("kind", unhurried(names()))


@every_kind
def test_every_kind_has_an_example(kind):
    assert kind in EXAMPLES, f"write specs/kinds/{kind}.yaml, the smallest site with a {kind}"


@every_kind
def test_every_kind_says_which_document_it_is_from(kind):
    assert isinstance(registry.kind(kind).document, Document), f"write document = Document.… in the kind {kind}"


@every_kind
def test_a_kind_waits_in_a_survey_for_those_it_refers_to_if_it_looks_at_what_they_saw(kind):
    found = registry.kind(kind)
    source = ast.parse(textwrap.dedent(inspect.getsource(found.observe)))
    looks = any(isinstance(node, ast.Name) and node.id == "needs" for node in ast.walk(source))
    if kinds_named(found.Spec) | kinds_named(found.State):
        assert found.alone is not looks
    else:
        assert not looks


@lived_through
def test_it_applies_and_then_agrees(kind, sandbox):
    first = apply(EXAMPLES[kind], sandbox)
    assert made(first), endings(first)
    writes = sandbox.tally()["written"]
    again = apply(EXAMPLES[kind], sandbox)
    assert set(endings(again).values()) == {"kept"}
    assert sandbox.tally()["written"] == writes
    assert plan(EXAMPLES[kind], sandbox).pending == ()
    checked = drift(EXAMPLES[kind], sandbox)
    assert (checked.found, checked.blind) == ((), False)


@every_kind
def test_planning_writes_nothing(kind, sandbox):
    before = world(sandbox)
    plan(EXAMPLES[kind], sandbox)
    assert sandbox.tally()["written"] == 0
    assert world(sandbox) == before


@lived_through
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


@lived_through
def test_every_step_is_one_that_the_kind_says_it_takes(kind, sandbox):
    for item in [*plan(EXAMPLES[kind], sandbox).pending, *_after(kind, sandbox)]:
        assert {type(step) for step in item.steps} <= set(registry.kind(item.key.kind).acts), item.key


def _after(kind, sandbox):
    apply(EXAMPLES[kind], sandbox)
    return plan(EXAMPLES[kind], sandbox, destroy=True).pending


@every_kind
def test_every_kind_says_what_its_steps_have_a_right_to(kind):
    cls = registry.kind(kind)
    assert bool(cls.acts) != issubclass(cls, Source), "acts lists the steps"
    for step in cls.acts:
        assert isinstance(step.rights, tuple), f"{step.__name__}.rights says what it takes to run it, () for nothing"


@every_kind
def test_the_words_in_rights_are_places_that_the_kind_knows(kind, sandbox):
    site = app.load(EXAMPLES[kind], sandbox=sandbox)
    known = places(site, {name: registry.kind(name) for name in names()})
    for key, words in known.items():
        cls = registry.kind(key.kind)
        assert {right.on for right in cls.reads} <= {VCENTER, CLUSTERS}
        unknown = {right.on for right in (*cls.looks, *(r for step in cls.acts for r in step.rights))} - set(words) - set(RESOURCES)
        assert not unknown, f"{key}.places has no {unknown}"


def some(writes: int, most: int = 3) -> list[int]:
    """The first, the last, and of the others as many as there is time for."""
    return sorted({1 + round(part * (writes - 1) / (most - 1)) for part in range(most)}) if writes else []


@lived_through
def test_killed_at_a_write_the_next_apply_finishes(kind, sandbox, tmp_path):
    """After the first, one amid and the last; `script/torture crash` strikes before and after each."""
    apply(EXAMPLES[kind], sandbox)
    whole, writes = world(sandbox), sandbox.tally()["written"]
    for nth in some(writes):
        sandbox.reset()
        assert kill_at(EXAMPLES[kind], sandbox, nth, "after", tmp_path / "state") == KILLED
        finished = apply(EXAMPLES[kind], sandbox)
        assert made(finished), (nth, endings(finished))
        assert world(sandbox) == whole, f"killed after write {nth}"
        assert plan(EXAMPLES[kind], sandbox).pending == ()


@lived_through
def test_killed_while_it_is_destroyed_the_next_destroy_finishes(kind, sandbox, tmp_path):
    before = world(sandbox)
    apply(EXAMPLES[kind], sandbox)
    made_by = sandbox.tally()["written"]
    apply(EXAMPLES[kind], sandbox, destroy=True)
    for nth in some(sandbox.tally()["written"] - made_by, 2):
        sandbox.reset()
        apply(EXAMPLES[kind], sandbox)
        assert kill_at(EXAMPLES[kind], sandbox, nth, "after", tmp_path / "state", destroy=True) == KILLED
        finished = apply(EXAMPLES[kind], sandbox, destroy=True)
        assert made(finished), (nth, endings(finished))
        assert world(sandbox) == before
