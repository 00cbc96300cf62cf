"""What existed at an earlier check and isn't found: said, never taken for deleted."""

from __future__ import annotations

from threading import Event

import pytest
from engine.toys import IMPATIENT, BoxSpec, ToyState, ToyWorld, planned, site

from bfinfra.engine.apply import Apply, Options
from bfinfra.engine.lost import absent, lost, problem, with_lost
from bfinfra.engine.observe import ObservedState
from bfinfra.engine.plan import DesiredState
from bfinfra.model.events import Ending
from bfinfra.model.plan import Action
from bfinfra.model.refs import Key

A, B, TOP = Key("box", "a"), Key("box", "b"), Key("lid", "top")
FORGET = (
    "ask an administrator of its server whether it exists; if it doesn't: bfinfra state forget box/a SITE"
)


def test_what_existed_and_is_not_found_is_lost_in_order():
    assert lost({"lid/top", "box/b", "box/a"}, ObservedState({B: ToyState(fields={})})) == (A, TOP)


def test_what_can_not_be_read_is_not_lost():
    blind = ObservedState({}, unreadable={A: "its shelf is away", "lid": "no lids can be read"})
    assert lost({"box/a", "box/b", "lid/top"}, blind) == (B,)


def test_what_was_not_asked_for_is_not_lost():
    assert lost({"box/a", "lid/top"}, ObservedState(), {"lid"}) == (TOP,)


def test_a_line_in_a_record_that_is_no_address_is_nothing():
    assert lost({"box", "/a", "Box/a", "box/a b", ""}, ObservedState()) == ()


def test_something_is_absent_where_one_resource_of_the_file_is_not_found():
    seen = ObservedState({A: ToyState(fields={})})
    assert not absent(DesiredState("toys", {A: BoxSpec()}), seen)
    assert absent(DesiredState("toys", {A: BoxSpec(), B: BoxSpec()}), seen)
    assert not absent(DesiredState("toys", {}), seen)


def test_a_destroy_that_misses_something_says_so_and_how_to_forget_it():
    plan = with_lost(planned(ToyWorld(), site(), destroy=True), [A], DesiredState("toys", {}))
    assert plan.lost == (A,)
    assert [each.problem for each in plan.warnings] == [problem(A)]
    assert problem(A).what == "box/a: it existed at an earlier check, and is not found any more"
    assert problem(A).why == "it is gone, or out of sight of this account"
    assert problem(A).next == FORGET


def test_an_apply_that_would_make_it_again_warns_of_another_one():
    wanted = site(box__a=BoxSpec())
    plan = with_lost(planned(ToyWorld(), wanted), [A, B], DesiredState.of(wanted))
    assert plan.lost == ()
    again, gone = (each.problem for each in plan.warnings)
    assert "an apply would make another one" in again.next
    assert (again.what, again.why) == (problem(A).what, problem(A).why)
    assert gone == problem(B)


def test_a_part_of_a_plan_names_what_is_lost_of_that_part_alone():
    wanted = site(box__a=BoxSpec(), box__b=BoxSpec())
    plan = with_lost(planned(ToyWorld(), wanted, targets=(A,)), [A, B], DesiredState.of(wanted))
    assert [each.problem.what for each in plan.warnings] == [problem(A).what]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_destroy_that_misses_something_does_not_end_as_done_unless_it_was_stopped_before(stopped):
    stop, told = Event(), []
    if stopped:
        stop.set()
    world, desired = ToyWorld(), DesiredState("toys", {})
    plan = with_lost(planned(world, site(), destroy=True), [A], desired)
    options = Options(retry=IMPATIENT, stop=stop)
    endings = Apply(plan, desired, ObservedState(), world.kinds(), options, told.append).run()
    assert [(each.key, each.action, each.ending, each.problem) for each in told] == (
        [] if stopped else [(A, Action.DELETE, Ending.FAILED, problem(A))]
    )
    assert [*endings] == [each.key for each in told]


def test_the_warnings_that_were_there_stay():
    plan = with_lost(planned(ToyWorld(), site(), destroy=True), [A], DesiredState("toys", {}))
    assert len(with_lost(plan, [B], DesiredState("toys", {})).warnings) == 2
