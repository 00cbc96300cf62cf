"""Every kind by its existing: its example applies, applies again without a write, survives SIGKILL at every
write, and goes.

What each kind does in particular is tested in its own file.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import replace

import pytest
from contract import reach
from kinds.lifecycle import (
    EXAMPLES,
    KILLED,
    apply,
    drift,
    endings,
    kill_at,
    made,
    plan,
    run_context,
    unhurried,
    world,
)

import bfinfra
import bfinfra.kinds as registry
from bfinfra.engine.rights import places
from bfinfra.kinds import cluster_locator, names
from bfinfra.kinds.cluster.workload.decide import RESOURCES
from bfinfra.model.document import Document
from bfinfra.model.events import StepBegun
from bfinfra.model.kind import Source
from bfinfra.model.refs import Key, kinds_named
from bfinfra.model.rights import CLUSTERS, VCENTER

ASKED = reach.asked()
every_kind = pytest.mark.parametrize("kind", names())
lived_through = pytest.mark.parametrize("kind", unhurried(names()))


@every_kind
def test_every_kind_has_an_example(kind):
    assert kind in EXAMPLES, f"write specs/kinds/{kind}.yaml, the smallest site with a {kind}"


@every_kind
def test_every_kind_says_which_document_it_is_from(kind):
    assert isinstance(registry.kind(kind).document, Document), (
        f"write document = Document.… in the kind {kind}"
    )


@every_kind
def test_a_kind_waits_in_a_survey_for_those_it_refers_to_if_it_looks_at_what_they_saw(kind):
    found = registry.kind(kind)
    source = ast.parse(textwrap.dedent(inspect.getsource(found.observe)))
    resource_privileges = any(isinstance(node, ast.Name) and node.id == "needs" for node in ast.walk(source))
    if kinds_named(found.Spec) | kinds_named(found.State):
        assert found.alone is not resource_privileges
    else:
        assert not resource_privileges


@every_kind
def test_kinds_on_linux_machines_come_after_the_virtual_machines_that_they_are_on(kind):
    named = kinds_named(registry.kind(kind).State)
    assert "virtual_machine" in named or "linux_host" not in named


@lived_through
def test_it_applies_agrees_and_goes_without_a_trace_and_asks_what_the_contract_suite_asks(kind, sandbox):
    asked: set[str] = set()
    before, path, context = (
        world(sandbox),
        EXAMPLES[kind],
        replace(run_context(sandbox), middleware=(reach.noting(asked),)),
    )
    steps = steps_of(plan(path, sandbox))
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
    kubeconfigs(path, sandbox, context)
    again = apply(path, sandbox)
    assert set(endings(again).values()) == {"kept"}
    checked = drift(path, sandbox)
    assert (checked.found, checked.unreadable) == ((), {})
    steps += steps_of(plan(path, sandbox, destroy=True))
    assert sandbox.tally()["written"] == made_by
    gone = apply(path, sandbox, context=context, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before
    assert asked - ASKED == set()
    for key, step in steps:
        assert type(step) in registry.kind(key.kind).step_types, key
        assert step.title() and "{" not in step.title(), key


@pytest.mark.thorough("namespace", "virtual_machine")
@lived_through
def test_killed_amid_each_way_it_is_finished_by_the_next_run(kind, sandbox, tmp_path):
    """`script/torture crash` strikes before and after each write; here after one amid each way."""
    before, path = world(sandbox), EXAMPLES[kind]
    assert made(apply(path, sandbox))
    whole, made_by = world(sandbox), sandbox.tally()["written"]
    assert made(apply(path, sandbox, destroy=True))
    gone_by = sandbox.tally()["written"] - made_by
    sandbox.reset()
    killed(path, sandbox, made_by, tmp_path / "state")
    finished = apply(path, sandbox)
    assert made(finished), endings(finished)
    assert world(sandbox) == whole
    killed(path, sandbox, gone_by, tmp_path / "state", destroy=True)
    finished = apply(path, sandbox, destroy=True)
    assert made(finished), endings(finished)
    assert world(sandbox) == before


def kubeconfigs(path, sandbox, context):
    site = bfinfra.load(path, sandbox=sandbox)
    for key in site.resources:
        if key.kind in cluster_locator.CLUSTERS:
            bfinfra.kubeconfig(site, str(key), context=context)


def killed(path, sandbox, writes, state, **how):
    """In the middle of what it writes, if it writes."""
    if writes:
        assert kill_at(path, sandbox, (writes + 1) // 2, "after", state, **how) == KILLED


def steps_of(found):
    return [(item.key, step) for item in found.pending for step in item.steps]


@every_kind
def test_what_can_be_asked_as_a_cluster_is_found_by_its_name(kind):
    assert (kind in cluster_locator.CLUSTERS) is ("endpoint" in registry.kind(kind).State.__annotations__), (
        "a cluster's name ends with _cluster, and its state has an endpoint"
    )


@every_kind
def test_every_kind_says_what_its_steps_have_a_right_to(kind):
    cls = registry.kind(kind)
    assert bool(cls.step_types) != issubclass(cls, Source), "acts lists the steps"
    for step in cls.step_types:
        assert isinstance(step.rights, tuple), (
            f"{step.__name__}.rights says what it takes to run it, () for nothing"
        )


@every_kind
def test_the_words_in_rights_are_places_that_the_kind_knows(kind, sandbox):
    site = bfinfra.load(EXAMPLES[kind], sandbox=sandbox)
    known = places(site, {name: registry.kind(name) for name in names()})
    for key, words in known.items():
        cls = registry.kind(key.kind)
        assert {right.on for right in cls.survey_privileges} <= {VCENTER, CLUSTERS}
        unknown = (
            {
                right.on
                for right in (*cls.resource_privileges, *(r for step in cls.step_types for r in step.rights))
            }
            - set(words)
            - set(RESOURCES)
        )
        assert not unknown, f"{key}.places has no {unknown}"
