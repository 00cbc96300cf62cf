"""A kind says only in what it differs: what it leaves out is nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext
from bfinfra.model.kind import Done, LastWriter, Observation, Source
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import READY
from bfinfra.model.reading import Reading
from bfinfra.model.refs import edges
from bfinfra.model.resource import BESIDE_FIELDS, Spec, State
from bfinfra.model.step import Disruption, Step, Versioned

S = TypeVar("S", bound=Spec)


class Bare(Source[Spec, State]):
    """A source that reads nothing."""

    def observe(self, wanted: Any, needs: Any, *, include_unlisted: bool = True) -> Observation:
        return Observation({})


def test_a_kind_has_the_spec_and_the_state_that_its_class_names() -> None:
    class Own(Spec):
        """Its own."""

    class Base(Source[S, State]):
        """Of several specs."""

    class Derived(Base[Own]):
        """Of one."""

    class Same(Bare):
        """Of the same spec."""

    assert (Same.Spec, Same.State) == (Bare.Spec, Bare.State) == (Spec, State)
    assert (Derived.Spec, Derived.State) == (Own, State)
    assert not hasattr(Base, "Spec")


def test_what_a_kind_does_not_say_is_nothing() -> None:
    kind = Bare()
    spec, state, context = Spec(), State(), PlanContext(Mark("s", "bare/a"))
    assert [*kind.describe({})] == [*kind.conflicts({}, {}, None)] == [*kind.own_rights("a", spec)] == []
    assert kind.places("a", spec, {}, "*") == kind.audit({}) == {}
    assert kind.ready(spec, state) is READY
    assert kind.steps("a", spec, state, context) == ()
    step = Step()
    with pytest.raises(AssertionError) as never:
        kind.run(step, lambda _: None)
    assert never.value.args == (step,)
    with pytest.raises(AssertionError, match="Bare prefetches HostSystem and does not fetch it"):
        kind.fetch(Reading("HostSystem"), {})


def test_what_a_resource_does_not_say_is_nothing() -> None:
    spec, state = Spec(), State()
    assert [*spec.warnings()] == [*spec.parts()] == [*spec.takes("a")] == [*spec.inside()] == []
    assert [*spec.ways({})] == [*spec.conflicts({}, {})] == [*spec.provides("a", {})] == []
    assert [*spec.requires("a", {})] == []
    assert spec.answers_at() == state.answers_at() == state.last_known() == state.out_of_service(None) == ""


def test_a_copy_of_a_spec_has_its_own_values() -> None:
    spec = Spec(protect=True)
    assert spec.applied() == {"protect": True}
    assert edges(spec) == ()
    assert {*vars(spec)} & BESIDE_FIELDS
    copied = spec.model_copy(update={"protect": False})
    assert not {*vars(copied)} & BESIDE_FIELDS
    assert copied.applied() == {}
    assert spec.model_copy().protect
    assert Spec(after=("box/a",)).applied() == {}


def test_a_deep_copy_shares_nothing() -> None:
    class Listed(Spec):
        names: list[str]

    spec = Listed(names=["a"])
    assert spec.model_copy(deep=True).names is not spec.names
    assert spec.model_copy().names is spec.names


@dataclass(frozen=True, kw_only=True)
class Fill(Versioned):
    """fill {name}
    with water.

    Not a part of the title.
    """

    name: str = "tank"


class Install(Step):
    """install X."""


class Untitled(Step):
    pass


def test_a_step_has_its_docstring_as_its_title_and_writes_what_its_changes_name() -> None:
    step = Fill(changes=(Change("limits.cpu", 1, 2),), version="7")
    assert step.title() == "fill tank with water"
    assert Install().title() == "install X"
    assert step == Fill(changes=(Change("limits.cpu", 1, 2),)), "its version is no part of a plan"
    assert "7" not in repr(step)
    assert [step.writes(field) for field in ("limits", "limits.cpu", "limits.cpu.max", "power")] == [
        True,
        True,
        True,
        False,
    ]
    assert not step.exclusive
    assert step.disruption is Disruption.NONE
    Untitled.__doc__ = None
    assert Untitled().title() == "Untitled"


def test_progress_may_have_no_end_and_a_writer_no_time() -> None:
    assert Done("upload", 3).total is None
    assert LastWriter("me").at is None
