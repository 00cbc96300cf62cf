from __future__ import annotations

from typing import Annotated

import pytest
from engine.toys import BoxSpec, ToyWorld, applied, planned, site

from bfinfra.engine.conflicts import still_named
from bfinfra.model import resource
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.refs import Key, Ref

A = Key("box", "a")


class RopeSpec(resource.Spec):
    box: Annotated[str, Ref("box", optional=True)]
    knot: Annotated[str, Ref("box")] = "a"


def test_what_leaves_the_file_and_is_still_named_there_is_reported_where_it_is_named():
    rope = Key("rope", "r")
    [found] = still_named({rope: RopeSpec(box="a")}, {A})
    assert (found.at, found.what) == (Spot(rope, "box"), "box/a would be deleted, but this field names it")
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
