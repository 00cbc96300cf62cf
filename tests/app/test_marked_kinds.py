"""Kinds that a site doesn't use: which of them are imported and asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bfinfra
from bfinfra.app import wiring
from bfinfra.app.marked_kinds import ON_MACHINES, SHOWN, MarkedKinds
from bfinfra.backends.survey_cache import SurveyCache
from bfinfra.backends.vcenter import attributes
from bfinfra.backends.vcenter.vm import Brief
from bfinfra.kinds import kind as kind_named
from bfinfra.kinds import names
from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.model.errors import Forbidden
from bfinfra.model.mark import Mark
from bfinfra.model.refs import kinds_named
from bfinfra.sandbox import Running

EXAMPLES = Path(__file__).parents[2] / "specs/kinds"


def found(
    marks: tuple[str, ...] = (), defined: Mapping[int, str] | Callable[[Any], Any] | None = None
) -> frozenset[str]:
    """The kinds that have something where the VMs have these marks, and vCenter these attributes."""
    machines = [Brief(f"vm-{number}", "m", "group-v1", "", ("", mark)) for number, mark in enumerate(marks)]
    vcenter = SimpleNamespace(
        defined=defined if callable(defined) else lambda _: defined or {},
        session=SimpleNamespace(read=lambda ask: ask(None)),
        machines=SimpleNamespace(survey=lambda *_: machines),
    )
    return frozenset(MarkedKinds(vcenter, SurveyCache(), "example")())  # type: ignore[arg-type]  # what it uses of a vCenter


def test_where_nothing_shows_a_kind_it_is_neither_imported_nor_asked(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: set[str] = set()

    def noted(name: str) -> Any:
        imported.add(name)
        return kind_named(name)

    monkeypatch.setattr(wiring, "kind_named", noted)
    site = bfinfra.load(EXAMPLES / "vm_class.yaml", sandbox=sandbox)
    assert bfinfra.plan(site, context=bfinfra.RunContext(sandbox=sandbox)).pending
    assert "storage_policy" in imported
    assert not imported & SHOWN


@pytest.mark.parametrize("kind", sorted(ATTRIBUTES))
def test_an_attribute_shows_its_kind(kind: str) -> None:
    assert found(defined={101: "bfinfra", 102: f"{ATTRIBUTES[kind]}x"}) == {kind}


@pytest.mark.parametrize("kind", sorted(ON_MACHINES))
def test_a_mark_of_the_site_on_a_vm_shows_its_kind(kind: str) -> None:
    ours, others = Mark("example", f"{kind}/m").encode(), Mark("another", f"{kind}/m").encode()
    assert found(marks=(ours, others)) == {kind}
    assert found(marks=(others,)) == frozenset()


def test_where_that_can_t_be_read_every_such_kind_is_unreadable_and_says_why(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: object) -> Mapping[int, str]:
        raise Forbidden("no right to see definitions")

    monkeypatch.setattr(attributes, "defined", away)
    site = bfinfra.load(EXAMPLES / "vm_class.yaml", sandbox=sandbox)
    unreadable = bfinfra.plan(site, context=bfinfra.RunContext(sandbox=sandbox)).unreadable
    assert unreadable.keys() == SHOWN | {"resource_pool"}  # which looks for its own attribute
    assert all("no right to see definitions" in why for why in unreadable.values())


def test_what_a_used_kind_looks_at_is_asked_with_it(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SurveyCache, "prefetch", lambda *_: None)  # nobody here waits for the answers
    site = bfinfra.load(EXAMPLES / "bitfusion_vm.yaml", sandbox=sandbox)
    site = replace(
        site, resources={key: of for key, of in site.resources.items() if key.kind == "bitfusion_vm"}
    )
    context = bfinfra.RunContext(sandbox=sandbox)
    with wiring.bound_kinds(site, context, site.resources, read_only=True) as bound:
        assert {"bitfusion_vm", "virtual_machine", "vm_class"} <= bound.kinds.keys()
        assert not ATTRIBUTES.keys() & bound.kinds.keys()


@pytest.mark.parametrize("destroy", [False, True], ids=["apply", "destroy"])
@pytest.mark.parametrize("kind", names())
def test_what_is_asked_first_has_all_that_it_looks_at(
    kind: str, destroy: bool, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SurveyCache, "prefetch", lambda *_: None)  # nobody here waits for the answers
    site, other = (bfinfra.load(EXAMPLES / f"{each}.yaml", sandbox=sandbox) for each in (kind, "vm_class"))
    site = replace(site, vcenter=other.vcenter)
    wanted = {} if destroy else site.resources
    with wiring.bound_kinds(site, bfinfra.RunContext(sandbox=sandbox), wanted, read_only=True) as bound:
        assert kind in bound.kinds
        for name, each in bound.kinds.items():
            looks = frozenset() if each.alone else kinds_named(each.Spec) | kinds_named(each.State)
            assert SHOWN & looks <= bound.kinds.keys(), name
