"""A target narrows a plan to a resource and what must be done before it."""

from __future__ import annotations

import pytest
from engine.toys import BoxSpec, LidSpec, ToyWorld, applied, lines, planned, site

from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key

A, B, TOP = Key("box", "a"), Key("box", "b"), Key("lid", "top")


def both(**more):
    return site(lid__top=LidSpec(box="a"), box__a=BoxSpec(), box__b=BoxSpec(), **more)


def test_what_is_made_brings_what_it_needs_along():
    plan = planned(ToyWorld(), both(), targets=(TOP,))
    assert lines(plan) == ["create box/a: make a", "create lid/top: make top"]
    assert plan.partial is not None
    assert (plan.partial.targets, plan.partial.keys, plan.partial.left_out) == ((TOP,), {A, TOP}, 1)


def test_what_needs_it_is_left_out():
    assert lines(planned(ToyWorld(), both(), targets=(A,))) == ["create box/a: make a"]


def test_several_targets_are_one_part():
    plan = planned(ToyWorld(), both(), targets=(B, TOP, B))
    assert [str(item.key) for item in plan.items] == ["box/a", "box/b", "lid/top"]
    assert plan.partial is not None
    assert (plan.partial.targets, plan.partial.left_out) == ((B, TOP), 0)


def test_what_goes_takes_along_what_needs_it():
    world = ToyWorld()
    applied(world, both())
    assert lines(planned(world, both(), destroy=True, targets=(A,))) == [
        "delete lid/top: burn top",
        "delete box/a: burn a",
    ]
    assert lines(planned(world, both(), destroy=True, targets=(TOP,))) == ["delete lid/top: burn top"]


def test_what_left_the_file_may_be_a_target():
    world = ToyWorld()
    applied(world, both())
    assert lines(planned(world, site(box__a=BoxSpec()), targets=(B,))) == ["delete box/b: burn b"]


def test_what_is_wrong_with_others_is_no_matter():
    world = ToyWorld(unreadable={"b": "its shelf does not answer"})
    plan = planned(world, both(box__c=BoxSpec(size=10)), targets=(TOP,))
    assert (plan.problems, plan.unreadable) == ((), {})
    assert [str(item.key) for item in plan.items] == ["box/a", "lid/top"]


def test_what_is_wrong_with_what_a_target_needs_is_reported():
    world = ToyWorld(unreadable={"a": "its shelf does not answer"})
    plan = planned(world, both(), targets=(TOP,))
    assert plan.unreadable == {"box/a": "its shelf does not answer", "lid/top": "its shelf does not answer"}


def test_a_plan_without_targets_is_of_all():
    assert planned(ToyWorld(), both()).partial is None


def test_a_target_that_there_is_not_is_answered_with_the_nearest():
    with pytest.raises(BfinfraError) as caught:
        planned(ToyWorld(), both(), targets=(Key("lid", "tap"), TOP))
    assert str(caught.value) == (
        "--target: there is no lid/tap to target; the site does not have it, and no object has the site's "
        "mark for it; did you mean lid/top?"
    )
