from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
from engine.toys import Box, BoxSpec, Lid, ToyWorld, applied, planned, site

from bfinfra.engine.conflicts import of_kinds, still_named
from bfinfra.engine.observe import ObservedState
from bfinfra.model import resource
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.refs import Key, Ref

A = Key("box", "a")


class RopeSpec(resource.Spec):
    box: Annotated[str, Ref("box", optional=True)]
    knot: Annotated[str, Ref("box")] = "a"


def test_what_leaves_the_file_and_is_still_named_there_is_reported_where_it_is_named():
    rope = Key("rope", "r")
    assert [*still_named({rope: RopeSpec(box="a")}, {A})] == [
        Conflict(
            Spot(rope, "box"),
            "box/a would be deleted, but this field names it",
            why="it is no longer in the file",
            next="remove it here as well, or add box/a to the file again",
        )
    ]
    assert not list(still_named({rope: RopeSpec(box="a")}, set()))
    assert not list(still_named({rope: RopeSpec(box="b")}, {A}))


@pytest.mark.parametrize("stops", [True, False])
def test_what_a_kind_knows_of_several_is_a_problem_of_the_plan_or_a_warning(monkeypatch, stops):
    world = ToyWorld()
    wanted = site(box__a=BoxSpec(), box__b=BoxSpec())
    found = Conflict(Spot(A), "they don't fit", (Spot(Key("box", "b")),), stops=stops)
    monkeypatch.setattr(type(world.kinds()["box"]), "conflicts", lambda *_: [found], raising=True)
    plan = planned(world, wanted)
    assert [problem.what for problem in plan.problems] == ["box/a: they don't fit"] * stops
    assert [each.problem.what for each in plan.warnings] == ["box/a: they don't fit"] * (not stops)


def test_a_kind_that_trips_over_what_was_seen_is_unreadable(monkeypatch):
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec()))
    monkeypatch.setattr(type(world.kinds()["box"]), "conflicts", lambda *_: [1 // 0])
    assert "ZeroDivisionError" in planned(world, site(box__a=BoxSpec())).unreadable["box"]


@dataclass
class Tied(ToyWorld):
    """A world with ropes, too."""

    def kinds(self):
        class Rope(Lid):
            Spec = RopeSpec

        return {**super().kinds(), "rope": Rope(self)}


def test_a_plan_says_what_would_be_deleted_and_is_still_named_and_nothing_of_what_stays():
    world, rope = Tied(), RopeSpec(box="b", knot="a")
    applied(world, site(box__a=BoxSpec(), box__b=BoxSpec(), box__c=BoxSpec(), rope__r=rope))
    for left, said in (
        ("abc", []),
        ("ab", []),
        ("ac", ["rope/r: box/b would be deleted, but this field names it"]),
    ):
        plan = planned(world, site(**{f"box__{name}": BoxSpec() for name in left}, rope__r=rope))
        assert [problem.what for problem in plan.problems] == said


def test_a_plan_of_some_says_nothing_of_what_others_conflict_in(monkeypatch):
    found = Conflict(Spot(A), "they don't fit", (Spot(Key("box", "b")),))
    monkeypatch.setattr(Box, "conflicts", lambda *_: [found])
    wanted = site(**{f"box__{name}": BoxSpec() for name in "abc"})
    told = {name: len(planned(ToyWorld(), wanted, targets=(Key("box", name),)).problems) for name in "abc"}
    assert told == {"a": 1, "b": 1, "c": 0}


def test_a_kind_is_asked_with_what_it_saw_and_not_where_it_could_not_see_or_is_none(monkeypatch):
    asked = []
    monkeypatch.setattr(Box, "conflicts", lambda *given: asked.append(given[1:]) or [])
    kinds, wanted, states = ToyWorld().kinds(), {A: BoxSpec(), Key("crane", "c"): None}, {A: None}
    assert [*of_kinds(wanted, states, ObservedState(facts={"box": "shelves"}), kinds, {})] == []
    assert [*of_kinds(wanted, states, ObservedState(), kinds, {"box": "no answer"})] == []
    assert asked == [(wanted, states, "shelves")]
