from __future__ import annotations

from dataclasses import replace

import pytest
from engine.toys import BoxSpec, LidSpec, ToyState, ToyWorld, applied, lines, planned, site

from bfinfra.model.compare import Unknown
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key


def test_an_empty_world_gets_everything_in_the_order_of_references():
    assert lines(planned(ToyWorld(), site(lid__top=LidSpec(box="a"), box__a=BoxSpec(size=3)))) == [
        "create box/a: make a",
        "create lid/top: make top",
    ]


def test_a_reference_known_only_after_apply_is_shown_as_such():
    plan = planned(ToyWorld(), site(lid__top=LidSpec(box="a"), box__a=BoxSpec()))
    assert plan.items[1].steps[0].on == Unknown(Key("box", "a"), "serial")


def test_after_an_apply_the_plan_is_empty():
    world, wanted = ToyWorld(), site(lid__top=LidSpec(box="a"), box__a=BoxSpec(size=3))
    applied(world, wanted)
    assert lines(planned(world, wanted)) == ["keep box/a", "keep lid/top"]


def test_a_changed_field_is_named_exactly():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(size=3)))
    [item] = planned(world, site(box__a=BoxSpec(size=4))).items
    assert [(c.field, c.now, c.wanted) for c in item.changes] == [("size", 3, 4)]


def test_what_left_the_file_is_deleted_after_what_lies_on_it():
    world = ToyWorld()
    applied(world, site(lid__top=LidSpec(box="a"), box__a=BoxSpec()))
    assert lines(planned(world, site())) == ["delete lid/top: burn top", "delete box/a: burn a"]


def test_a_box_goes_only_after_its_lid_moved_elsewhere():
    world = ToyWorld()
    applied(world, site(lid__top=LidSpec(box="a"), box__a=BoxSpec()))
    plan = planned(world, site(lid__top=LidSpec(box="b"), box__b=BoxSpec()))
    assert lines(plan) == ["create box/b: make b", "update lid/top: change top", "delete box/a: burn a"]


def test_a_replacement_is_called_one():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec()))
    assert lines(planned(world, site(box__a=BoxSpec(material="steel")))) == [
        "replace box/a: burn a to make it of something else, make a"
    ]


@pytest.mark.parametrize(
    ("mark", "message"),
    [(None, "bfinfra adopt SITE box/a"), (Mark("other", "box/a"), "belongs to box/a of the site other")],
)
def test_what_is_not_ours_is_never_touched(mark, message):
    world = ToyWorld({("box", "a"): ToyState(mark=mark, fields={"size": 5})})
    plan = planned(world, site(box__a=BoxSpec()))
    assert not plan.items
    assert message in str(plan.problems[0])


def test_strangers_that_nobody_names_are_not_even_mentioned():
    world = ToyWorld(
        {("box", "x"): ToyState(fields={}), ("box", "y"): ToyState(mark=Mark("other", "box/y"), fields={})}
    )
    assert planned(world, site()).items == ()


def test_adopting_brings_an_unmarked_object_in_line():
    world = ToyWorld({("box", "a"): ToyState(fields={"size": 5})})
    assert lines(planned(world, site(box__a=BoxSpec()), adopt=frozenset({Key("box", "a")}))) == [
        "update box/a: change a"
    ]


def test_what_is_protected_is_neither_deleted_nor_replaced():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(protect=True)))
    assert "is protected" in str(planned(world, site()).problems[0])
    assert "is protected" in str(
        planned(world, site(box__a=BoxSpec(protect=True, material="steel"))).problems[0]
    )


def test_all_refusals_come_at_once():
    plan = planned(ToyWorld(), site(box__a=BoxSpec(size=10), box__b=BoxSpec(size=11), box__c=BoxSpec()))
    assert [p.what for p in plan.problems] == ["box/a: no box is that large", "box/b: no box is that large"]


def test_what_cannot_be_read_is_neither_made_nor_pruned_nor_what_lies_on_it():
    world = ToyWorld(unreadable={"a": "its shelf does not answer"})
    plan = planned(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a"), box__b=BoxSpec()))
    assert lines(plan) == ["create box/b: make b"]
    assert plan.unreadable == {"box/a": "its shelf does not answer", "lid/top": "its shelf does not answer"}


def test_two_hundred_resources_need_as_many_reads_as_two():
    def reads(count):
        world = ToyWorld()
        planned(
            world,
            site(
                **{f"box__b{i}": BoxSpec() for i in range(count)},
                **{f"lid__l{i}": LidSpec(box=f"b{i}") for i in range(count)},
            ),
        )
        return world.reads

    assert reads(1) == reads(100)


def test_what_merely_follows_from_a_changed_field_is_distinguished():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(size=3)))
    world.things["box", "a"] = replace(world.things["box", "a"], fields={"size": 3, "weight": 30})
    [item] = planned(world, site(box__a=BoxSpec(size=4))).items
    assert [c.field for c in item.named] == ["size"]
    assert item.follows == {"weight"}


def test_where_the_file_did_not_change_whatever_differs_is_drift():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(size=3)))
    world.things["box", "a"] = replace(world.things["box", "a"], fields={"size": 3, "weight": 30})
    [item] = planned(world, site(box__a=BoxSpec(size=3))).items
    assert [c.field for c in item.named] == ["weight"]
