"""What a plan says beside its steps: last known values, what is held and why, what it refuses and how to go on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from engine.toys import (
    IMPATIENT,
    Box,
    BoxSpec,
    Burn,
    Lid,
    LidSpec,
    ToyState,
    ToyWorld,
    applied,
    lines,
    planned,
    site,
)

from bfinfra.engine import plan as engine
from bfinfra.engine.observe import ObservedState, survey
from bfinfra.model.awaited import Awaited
from bfinfra.model.errors import Place, Problem, Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.plan import Action, Item
from bfinfra.model.refs import Key
from bfinfra.model.resource import RECONNECT
from bfinfra.model.step import Disruption, Step

A, TOP = Key("box", "a"), Key("lid", "top")
LOST = "its shelf is disconnected"


@dataclass(frozen=True, kw_only=True)
class Lost(ToyState):
    def last_known(self):
        return LOST


@dataclass
class Shelves(ToyWorld):
    """A world in which boxes are settings of something that exists anyway."""

    def kinds(self):
        class Settings(Box):
            managed = False

        return {"box": Settings(self), "lid": Lid(self)}


def lost(world, name="a"):
    state = world.things["box", name]
    world.things["box", name] = Lost(mark=state.mark, fields=state.fields)


@pytest.fixture
def world():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(size=3), lid__top=LidSpec(box="a")))
    return world


def test_last_known_values_that_need_no_change_are_a_warning(world):
    lost(world)
    plan = planned(world, site(box__a=BoxSpec(size=3), lid__top=LidSpec(box="a")))
    assert not plan.problems
    [warned] = plan.warnings
    assert warned.problem == Problem("box/a: its last known values were compared", "", LOST, RECONNECT)
    assert plan.stale == {"box/a": LOST}


def test_a_change_decided_on_last_known_values_is_refused_where_the_file_says_it(world):
    lost(world)
    place = Place("site.yaml", 3, 1)
    wanted = replace(site(box__a=BoxSpec(size=4), lid__top=LidSpec(box="a")), places={(A, ""): place})
    plan = planned(world, wanted)
    [problem] = plan.problems
    assert (problem.what, problem.where, problem.why) == (
        "box/a: its last known values were compared",
        place,
        LOST,
    )
    assert not plan.warnings


def test_what_is_to_be_made_on_something_lost_is_refused_with_its_reason(world):
    del world.things["lid", "top"]
    lost(world)
    plan = planned(world, site(box__a=BoxSpec(size=3), lid__top=LidSpec(box="a")))
    assert [(p.what, p.where, p.why) for p in plan.problems] == [
        ("lid/top: its last known values were compared", "", LOST)
    ]
    assert plan.stale == {"box/a": LOST, "lid/top": LOST}


def test_what_only_comes_after_something_lost_is_made(world):
    lost(world)
    wanted = site(box__a=BoxSpec(size=3), lid__top=LidSpec(box="a"), box__b=BoxSpec(after=("box/a",)))
    assert not planned(world, wanted).problems


def test_what_goes_needs_no_current_values_of_what_it_lies_on(world):
    lost(world)
    plan = planned(world, site(box__a=BoxSpec(size=3)))
    assert lines(plan) == ["keep box/a", "delete lid/top: burn top"]
    assert not plan.problems


def test_what_goes_needs_no_current_values_of_what_goes_before_it(world):
    lid = world.things["lid", "top"]

    class LostLid(type(lid)):
        def last_known(self):
            return LOST

    world.things["lid", "top"] = LostLid(mark=lid.mark, fields=lid.fields, box="a")
    plan = planned(world, site(), destroy=True)
    assert [problem.what for problem in plan.problems] == ["lid/top: its last known values were compared"]


@pytest.mark.parametrize(("size", "stale"), [(4, {}), (3, {"lid/top": LOST})])
def test_last_known_values_are_expected_of_what_lies_where_this_plan_changes_settings(size, stale):
    world = Shelves()
    world.things["box", "a"] = ToyState(mark=Mark("toys", "box/a"), fields=BoxSpec(size=3).applied())
    applied(world, site(box__a=BoxSpec(size=3), lid__top=LidSpec(box="a")))
    lid = world.things["lid", "top"]

    class LostLid(type(lid)):
        def last_known(self):
            return LOST

    world.things["lid", "top"] = LostLid(mark=lid.mark, fields=lid.fields, box="a")
    plan = planned(world, site(box__a=BoxSpec(size=size), lid__top=LidSpec(box="a")))
    assert plan.stale == stale
    assert {str(item.key): item.settings for item in plan.items} == {"box/a": True, "lid/top": False}


def test_what_a_deletion_takes_along_is_named_and_nothing_where_it_stays(world):
    world.things["box", "a"] = replace(world.things["box", "a"], contents=("a cat",))
    kept = planned(world, site(box__a=BoxSpec(size=3), lid__top=LidSpec(box="a")))
    assert [item.contents for item in kept.items] == [(), ()]
    replaced = planned(world, site(box__a=BoxSpec(material="steel"), lid__top=LidSpec(box="a")))
    assert replaced.items[0].contents == ("a cat",)
    assert planned(world, site(), destroy=True).items[-1].contents == ("a cat",)


def awaiting(monkeypatch, steps=()):
    """Boxes whose file is missing."""

    def missing(name, spec, state, context):
        raise Awaited(
            "its drawing is not there yet", field="size", why="it waits", next="draw it", steps=steps
        )

    monkeypatch.setattr(Box, "steps", staticmethod(missing))


def test_what_waits_for_a_file_is_held_where_the_file_is_named_and_so_is_what_lies_on_it(monkeypatch):
    awaiting(monkeypatch)
    place = Place("site.yaml", 4, 5)
    wanted = replace(site(box__a=BoxSpec(), lid__top=LidSpec(box="a")), places={(A, "size"): place})
    plan = planned(ToyWorld(), wanted)
    assert [(item.action, item.held) for item in plan.items] == [
        (Action.CREATE, Problem("box/a: its drawing is not there yet", place, "it waits", "draw it")),
        (Action.CREATE, Problem("lid/top waits for box/a")),
    ]
    assert plan.items[1].waits_for == (A,)
    assert not plan.pending


def test_what_exists_and_waits_for_a_file_is_an_update_and_what_is_up_to_date_waits_for_nothing(
    monkeypatch, world
):
    awaiting(monkeypatch)
    plan = planned(world, site(box__a=BoxSpec(size=3), lid__top=LidSpec(box="a")))
    assert [(item.action, item.held is None) for item in plan.items] == [
        (Action.UPDATE, False),
        (Action.KEEP, True),
    ]


def test_settings_that_wait_for_a_file_are_only_read(monkeypatch):
    awaiting(monkeypatch)
    [item] = planned(Shelves(), site(box__a=BoxSpec())).items
    assert item.action is Action.READ


def test_a_refusal_without_a_place_in_a_file_names_the_resource(monkeypatch):
    [problem] = planned(ToyWorld(), site(box__a=BoxSpec(size=10))).problems
    assert problem == Problem("box/a: no box is that large", "box/a", "", "make it 9 or less")


def test_what_waits_says_for_what_where_no_field_names_it():
    held = Item(A, Action.CREATE, held=Problem("its drawing is not there yet"))
    lid = Item(TOP, Action.CREATE)
    because = engine._behind(lid, {A: "after: says so"}, {A: held})
    assert because == Problem("lid/top waits for box/a (after: says so)")
    assert engine._behind(lid, {Key("box", "else"): ""}, {A: held}) is None


REFUSED = Refusal("its room is being torn down")


@pytest.mark.parametrize(
    ("wanted", "state", "refused"),
    [
        ({A: BoxSpec()}, None, True),
        ({A: BoxSpec()}, ToyState(fields={}, going=True), True),
        ({A: BoxSpec()}, ToyState(fields={}), False),
        ({}, None, False),
    ],
)
def test_what_has_no_place_is_refused_only_where_it_is_to_be_made(wanted, state, refused):
    observed = ObservedState({A: state} if state else {}, {})
    observed.refused[A] = REFUSED
    desired = engine.DesiredState("toys", wanted)
    if refused:
        with pytest.raises(Refusal, match="torn down"):
            engine._check_place(A, desired, observed)
    else:
        engine._check_place(A, desired, observed)


@pytest.mark.parametrize(
    ("mark", "kept"),
    [
        (None, False),
        (Mark("toys", "box/a"), False),
        (Mark("toys", "box/a", {"size": 3}), True),
        (Mark("other", "box/a"), True),
    ],
)
def test_adopting_leaves_a_whole_mark_and_those_of_others_as_they_are(mark, kept):
    state = ToyState(mark=mark, fields={})
    marking = engine.DesiredState("toys", {}, marking=True)
    found = engine._adopted(A, state, marking)
    assert found.mark == (mark if kept else Mark("toys", "box/a", adopting=True))
    assert found.mark is mark or found.mark.adopting


def test_a_copy_is_refused_with_how_to_adopt_it_or_to_have_a_new_one():
    world = ToyWorld({("box", "a"): ToyState(fields={}, copy="it is a copy of box/b")})
    [problem] = planned(world, site(box__a=BoxSpec())).problems
    assert problem.what == "box/a: it is a copy of box/b"
    assert problem.why.startswith("somebody copied it with its mark")
    assert problem.next == (
        "adopt the copy with: bfinfra adopt SITE box/a; or delete the copy, or its mark, to have box/a made anew"
    )


def test_a_copy_that_nobody_names_is_no_problem():
    world = ToyWorld({("box", "a"): ToyState(mark=Mark("toys", "box/a"), fields={}, copy="it is a copy")})
    assert not planned(world, site()).problems


@pytest.mark.parametrize(
    ("mark", "why", "then"),
    [
        (None, "without its mark", "adopt it with: bfinfra adopt SITE box/a"),
        (Mark("other", "box/a"), "undo each other's work", "remove it from the other site first"),
    ],
)
def test_what_is_not_ours_is_refused_with_why_and_what_to_do(mark, why, then):
    world = ToyWorld({("box", "a"): ToyState(mark=mark, fields={})})
    [problem] = planned(world, site(box__a=BoxSpec())).problems
    assert why in problem.why
    assert then in problem.next


def test_what_is_protected_says_where_and_how_to_lift_it():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(protect=True)))
    place = Place("site.yaml", 5, 5)
    stays = replace(site(box__a=BoxSpec(protect=True, material="steel")), places={(A, "protect"): place})
    [replaced], [gone] = planned(world, stays).problems, planned(world, site()).problems
    why = "this plan would delete or replace it, or a part of it"
    assert (replaced.where, replaced.why, gone.why) == (place, why, why)
    assert replaced.next == "write protect: false and apply that first"
    assert gone.next == "write it with protect: false and apply that first"


def test_what_is_no_longer_protected_in_the_file_may_be_replaced_at_once():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(protect=True)))
    assert not planned(world, site(box__a=BoxSpec(material="steel"))).problems


def test_a_field_above_or_below_one_that_the_file_names_does_not_merely_follow():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(size=3)))
    state = world.things["box", "a"]
    mark = Mark("toys", "box/a", {"size": {"high": 1}, "shape": "flat", "size_of_label": 2})
    world.things["box", "a"] = replace(
        state, mark=mark, fields={"size": {"high": 2, "wide": 1}, "shape": {"of": "lid"}, "sizes": 4}
    )
    [item] = planned(world, site(box__a=BoxSpec(size=4))).items
    assert "sizes" in item.follows
    assert not {each for each in item.follows if each.startswith(("size.", "shape"))}


@pytest.mark.parametrize(
    ("file", "state", "action"),
    [
        (BoxSpec(), None, Action.CREATE),
        (BoxSpec(), ToyState(fields={}, mark=Mark("toys", "box/a")), Action.UPDATE),
        (None, ToyState(fields={}, mark=Mark("toys", "box/a")), Action.DELETE),
    ],
)
def test_steps_that_are_known_before_the_file_is_there_are_shown_and_held(monkeypatch, file, state, action):
    awaiting(monkeypatch, steps=(Burn(name="a"),))
    world = ToyWorld({("box", "a"): state} if state else {})
    [item] = planned(world, site(box__a=file) if file else site()).items
    assert (item.action, [step.title() for step in item.steps]) == (action, ["burn a"])
    assert item.held


def test_settings_whose_steps_are_known_are_an_update_and_without_steps_read(monkeypatch):
    awaiting(monkeypatch, steps=(Burn(name="a"),))
    world = Shelves({("box", "a"): ToyState(fields={})})
    assert [item.action for item in planned(world, site(box__a=BoxSpec())).items] == [Action.UPDATE]


def test_settings_that_are_as_the_file_says_are_only_read_and_an_object_is_kept():
    world = Shelves()
    world.things["box", "a"] = ToyState(mark=Mark("toys", "box/a"), fields={})
    applied(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a")))
    items = planned(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a"))).items
    assert [item.action for item in items] == [Action.READ, Action.KEEP]


@dataclass(frozen=True, kw_only=True)
class Swap(Burn):
    """make {name} anew beside the old one"""

    destructive = False
    disruption = Disruption.REPLACE


@pytest.mark.parametrize(("step", "refused"), [(Burn, True), (Swap, True), (Step, False)])
def test_what_is_protected_keeps_its_parts_and_is_not_replaced_and_may_change(monkeypatch, step, refused):
    steps = (Step(), step(name="a") if step is not Step else step())
    monkeypatch.setattr(Box, "steps", staticmethod(lambda *_: steps))
    world = ToyWorld({("box", "a"): ToyState(mark=Mark("toys", "box/a", {}), fields={})})
    plan = planned(world, site(box__a=BoxSpec(protect=True)))
    assert [problem.what for problem in plan.problems] == ["box/a: it is protected"] * refused


def test_an_answer_that_makes_no_sense_is_told_of_its_resource_and_spoils_no_other(monkeypatch):
    real = Box.steps

    def steps(name, *given):
        return real(name, *given) if name == "b" else 1 // 0

    monkeypatch.setattr(Box, "steps", staticmethod(steps))
    plan = planned(ToyWorld(), site(box__a=BoxSpec(), box__b=BoxSpec()))
    assert lines(plan) == ["create box/b: make b"]
    assert [*plan.unreadable] == ["box/a"]
    assert plan.unreadable["box/a"].startswith(
        "bfinfra can't read the server's answer about box/a; ZeroDivisionError: "
    )


def test_what_is_to_be_marked_gets_its_mark_and_nothing_else(monkeypatch):
    world = ToyWorld({("box", name): ToyState(fields={"size": 5}) for name in "ab"})
    adopt, wanted = frozenset({A}), site(box__a=BoxSpec(), lid__top=LidSpec(box="a"))
    desired = engine.DesiredState.of(wanted, adopt=adopt, marking=True)
    assert desired == engine.DesiredState("toys", wanted.resources, adopt, marking=True)
    plan = engine.make(wanted, desired, survey(world.kinds(), wanted.resources, IMPATIENT), world.kinds())
    assert lines(plan) == ["update box/a: change a", "keep lid/top"]
