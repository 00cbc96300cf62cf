"""Every kind by its existing: its example applies, applies again without a write, survives SIGKILL at every
write, and goes.

What each kind does in particular is tested in its own file.
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import textwrap

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, unhurried
from kinds.whole_life import lives, survives

import bfinfra
import bfinfra.kinds as registry
from bfinfra.engine.rights import places
from bfinfra.kinds import cluster_locator, names
from bfinfra.kinds.cluster.workload.decide import RESOURCES
from bfinfra.model.document import Document
from bfinfra.model.kind import Source
from bfinfra.model.refs import kinds_named
from bfinfra.model.rights import CLUSTERS, VCENTER

BLANKS = "my own 20%"
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
    lives(EXAMPLES[kind], sandbox)


@pytest.mark.parametrize(
    "kind", [kind for kind in names() if re.fullmatch(registry.kind(kind).Spec.name_pattern, BLANKS)]
)
def test_one_with_blanks_in_its_name_lives_like_any_other(kind, sandbox, tmp_path):
    folder = shutil.copytree(EXAMPLES[kind].parent, tmp_path / "specs")
    path = folder / EXAMPLES[kind].name
    site = yaml.safe_load(path.read_text())
    site[kind] = {BLANKS: next(iter(site[kind].values()))}
    path.write_text(yaml.safe_dump(site))
    lives(path, sandbox)


@pytest.mark.thorough("namespace", "virtual_machine")
@lived_through
def test_killed_amid_each_way_it_is_finished_by_the_next_run(kind, sandbox, tmp_path):
    """`script/torture crash` strikes before and after each write; here after one amid each way."""
    survives(EXAMPLES[kind], sandbox, tmp_path / "state")


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
