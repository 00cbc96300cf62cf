"""What a watch knows of a site: whom an id of vCenter concerns, which kinds to ask again, and what it could not read."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from engine.toys import IMPATIENT, Box, BoxSpec, Burn, Lid, LidSpec, ToyState, ToyWorld, applied, site

from bfinfra.engine.observe import survey
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.watch import Watched
from bfinfra.model.errors import Refusal, Unreachable
from bfinfra.model.kind import Observation
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

A, B, LID = Key("box", "a"), Key("box", "b"), Key("lid", "top")
WANTED = site(box__a=BoxSpec(), box__b=BoxSpec(material="oak"), lid__top=LidSpec(box="a"))


class Addressed(BoxSpec):
    at: IPv4Address
    until: dt.date


@pytest.fixture
def world():
    made = ToyWorld()
    applied(made, WANTED)
    return made


def watched(world, wanted=WANTED):
    desired, kinds = DesiredState.of(wanted), world.kinds()
    return Watched.of(wanted, desired, survey(kinds, desired.wanted, IMPATIENT), kinds, IMPATIENT)


def serial(world, key, text):
    world.things[key.kind, key.name] = replace(world.things[key.kind, key.name], serial=text)


def fields(world, key, **more):
    state = world.things[key.kind, key.name]
    world.things[key.kind, key.name] = replace(state, fields={**state.fields, **more})


def test_an_id_leads_to_all_that_have_it_anywhere_in_their_state(world):
    serial(world, A, "vm-42")
    fields(world, LID, on={"vm-42": [("host-7", 1)]}, text="on vm-42, once")
    watch = watched(world)
    assert watch.naming(["vm-42"]) == {A, LID}
    assert watch.naming(["host-7", "vm-4", "on vm-42, once"]) == {LID}
    assert watch.naming(["domain-c8"]) == set()


def test_an_id_leads_there_no_longer_once_the_state_has_another(world):
    serial(world, A, "vm-42")
    watch = watched(world)
    serial(world, A, "domain-c8")
    assert watch.look([A]) == {A}
    assert (watch.naming(["vm-42"]), watch.naming(["domain-c8"])) == (set(), {A})


def test_what_did_not_change_is_not_told(world):
    watch = watched(world)
    serial(world, A, "another")
    assert watch.look([A, B, LID]) == {A}
    assert watch.look([A, B, LID]) == frozenset()


def test_the_words_of_a_site_are_its_names_and_texts(world):
    assert {"a", "b", "top", "oak", "red", "material"} <= watched(world).words()


def test_an_address_and_a_date_in_a_site_are_words_of_it(world):
    wanted = site(box__a=Addressed(at="192.0.2.7", until="2027-01-31"))
    assert {"192.0.2.7", "2027-01-31"} <= watched(world, wanted).words()


def test_a_change_of_one_kind_concerns_those_that_refer_to_it_and_what_looks_there_alone_does_not(
    world, monkeypatch
):
    watch = watched(world)
    assert watch.dependants([A]) == {"lid"}
    assert watch.dependants([LID]) == frozenset()
    assert watch.behind({"box"}) == {"lid"}
    assert watch.behind({"lid"}) == frozenset()
    assert watch.in_order({"lid", "box"}) == ["box", "lid"]
    assert watch.in_order({"lid"}) == ["lid"]
    for part, plain in (("State", ToyState), ("Spec", BoxSpec)):
        with monkeypatch.context() as patch:
            patch.setattr(Lid, part, plain)
            assert watch.dependants([A]) == {"lid"}
    monkeypatch.setattr(Lid, "alone", True)
    assert watch.dependants([A]) == frozenset()


def test_what_came_went_and_changed_is_told_by_a_survey_of_its_kind_alone(world):
    watch = watched(world)
    came = Key("box", "c")
    serial(world, A, "another")
    serial(world, LID, "another")
    del world.things["box", "b"]
    world.things["box", "c"] = ToyState(mark=Mark("toys", "box/c"), fields={})
    assert watch.survey({"box"}) == {A, B, came}
    assert B not in watch.observed.states
    assert watch.survey({"box"}) == frozenset()
    assert watch.survey({"lid"}) == {LID}


def away(*_, **__):
    raise Unreachable("no road leads there", server="toys")


def test_a_kind_that_can_not_be_read_concerns_all_of_it_and_is_named_until_it_can(world, monkeypatch):
    watch = watched(world)
    assert watch.unread_kinds == frozenset()
    with monkeypatch.context() as patch:
        patch.setattr(type(world.kinds()["box"]), "observe", away)
        assert watch.survey({"box"}) == {A, B}
    assert watch.unread_kinds == {"box"}
    assert "no road leads there" in watch.observed.unreadable["box"]
    assert watch.survey({"box"}) == {A, B}
    assert watch.unread_kinds == frozenset()


def test_one_resource_that_can_not_be_read_is_told_and_no_error(world):
    watch = watched(world)
    world.unreadable = {"a": "its shelf is away"}
    assert watch.look([A]) == {A}
    assert watch.unread_kinds == {"box"}
    watch.decide({A})
    assert watch.plan.unreadable == {"box/a": "its shelf is away", "lid/top": "its shelf is away"}
    world.unreadable = {}
    watch.decide(watch.look([A]) or {A})
    assert watch.plan.unreadable == {}
    assert [item.key for item in watch.plan.items if item.key in {A, B, LID}].count(A) == 1


def test_a_server_that_is_away_while_one_resource_is_looked_at_is_an_error(world, monkeypatch):
    watch = watched(world)
    monkeypatch.setattr(type(world.kinds()["box"]), "observe", away)
    with pytest.raises(Unreachable, match="no road"):
        watch.look([A])


def test_new_facts_of_a_kind_concern_all_of_it(world, monkeypatch):
    watch = watched(world)
    kind, real = type(world.kinds()["box"]), type(world.kinds()["box"]).observe

    def observe(self, wanted, needs, *, include_unlisted=True):
        return replace(real(self, wanted, needs, include_unlisted=include_unlisted), facts={"shelves": 3})

    monkeypatch.setattr(kind, "observe", observe)
    assert watch.survey({"box"}) == {A, B}
    assert watch.survey({"box"}) == frozenset()


def test_what_went_is_no_longer_in_the_plan_and_what_is_new_comes_last(world):
    going = site(box__b=BoxSpec(material="oak"))
    watch = watched(world, going)
    assert [str(item.key) for item in watch.plan.items] == ["lid/top", "box/b", "box/a"]
    del world.things["lid", "top"]
    watch.decide(watch.look([LID]))
    assert [str(item.key) for item in watch.plan.items] == ["box/b", "box/a"]
    world.things["box", "c"] = ToyState(mark=Mark("toys", "box/c"), fields={})
    watch.decide(watch.survey({"box"}))
    assert [str(item.key) for item in watch.plan.items] == ["box/b", "box/a", "box/c"]


def test_a_problem_of_another_resource_stays(world, monkeypatch):
    def steps(name, spec, state, context):
        if state is not None and state.serial == "broken":
            raise Refusal("it is broken")
        return ()

    monkeypatch.setattr(type(world.kinds()["box"]), "steps", staticmethod(steps))
    serial(world, A, "broken")
    watch = watched(world)
    serial(world, LID, "another")
    watch.decide(watch.look([LID]))
    serial(world, B, "broken")
    watch.decide(watch.look([B]))
    assert sorted(p.what for p in watch.plan.problems) == ["box/a: it is broken", "box/b: it is broken"]


def test_the_report_of_a_watch_is_of_its_plan_now(world):
    watch = watched(world)
    assert watch.report().found == ()
    del world.things["box", "b"]
    watch.decide(watch.look([B]))
    [gone] = watch.report(["box/b"]).found
    assert (gone.key, str(gone.cause)) == (B, "vanished")
    assert str(watch.report().found[0].cause) == "missing"


def test_what_a_look_shows_of_one_is_not_forgotten_by_a_survey_of_others(world):
    watch = watched(world)
    watch.observed.facts[LID] = "seen"
    watch.observed.facts[A] = "seen"
    watch.survey({"box"})
    assert watch.observed.facts[LID] == "seen"
    assert A not in watch.observed.facts


def test_an_observation_without_a_kind_of_the_site_is_no_unread_kind(world):
    watch = watched(world)
    watch.observed.take("box", Observation({}, unreadable={"": "all are away"}))
    watch.observed.unreadable["crane"] = "no cranes"
    assert watch.unread_kinds == {"box"}


def test_what_went_and_concerns_nothing_else_leaves_the_rest_as_it_was(world):
    wanted = site(box__a=BoxSpec(size=10), lid__top=LidSpec(box="a"))
    watch = watched(world, wanted)
    before = watch.plan
    assert [str(item.key) for item in before.items] == ["box/b", "lid/top"]
    assert before.problems
    watch.decide({Key("box", "nowhere")})
    assert watch.plan.problems == before.problems
    del world.things["box", "b"]
    watch.decide(watch.look([B]))
    assert [str(item.key) for item in watch.plan.items] == ["lid/top"]
    assert watch.plan.problems == before.problems


class Lost(ToyState):
    def last_known(self):
        return "its shelf is disconnected"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (lambda: (Burn(name="b"),), "items"),
        (lambda: (), "warnings"),
        (lambda: (_ for _ in ()).throw(Refusal("it is nailed down")), "problems"),
        (lambda: 1 // 0, "unreadable"),
    ],
)
def test_what_went_leaves_nothing_of_what_was_said_of_it_and_nothing_else_is_decided_again(
    world, monkeypatch, steps, said
):
    decided, real = [], Box.steps
    watch = watched(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a")))
    world.things["box", "b"] = Lost(mark=Mark("toys", "box/b"), fields={})

    def of_b(name, *given):
        decided.append(name)
        return steps() if name == "b" else real(name, *given)

    monkeypatch.setattr(Box, "steps", staticmethod(of_b))
    watch.decide(watch.look([B]))
    assert getattr(watch.plan, said)
    del world.things["box", "b"]
    decided.clear()
    watch.decide(watch.look([B]))
    assert decided == []
    assert [str(item.key) for item in watch.plan.items] == ["box/a", "lid/top"]
    left = watch.plan
    assert (left.problems, left.unreadable, left.stale, left.warnings) == ((), {}, {}, ())


def test_what_is_not_in_the_file_and_can_not_be_read_is_told_until_it_can(world):
    world.unreadable = {"x": "its shelf is dark"}
    watch = watched(world)
    watch.decide(watch.look([B, Key("box", "x")]))
    assert watch.plan.unreadable == {"box/x": "its shelf is dark"}
    world.unreadable = {}
    watch.decide(watch.survey({"box"}))
    assert watch.plan.unreadable == {}


def test_last_known_values_of_one_are_told_until_they_are_current(world):
    watch, fine = watched(world), world.things["box", "b"]
    world.things["box", "b"] = Lost(mark=fine.mark, fields=fine.fields)
    watch.decide(watch.look([B]))
    assert watch.plan.stale == {"box/b": "its shelf is disconnected"}
    serial(world, A, "another")
    watch.decide(watch.look([A]))
    assert watch.plan.stale == {"box/b": "its shelf is disconnected"}
    assert len(watch.plan.warnings) == 1
    world.things["box", "b"] = fine
    watch.decide(watch.look([B]))
    assert (watch.plan.stale, watch.plan.warnings) == ({}, ())


def test_a_problem_with_a_colon_in_it_is_of_the_resource_that_it_begins_with(world, monkeypatch):
    def steps(name, spec, state, context):
        if state is not None and state.serial == "broken":
            raise Refusal("its lock says: no")
        return ()

    monkeypatch.setattr(type(world.kinds()["box"]), "steps", staticmethod(steps))
    serial(world, A, "broken")
    watch = watched(world)
    assert [p.what for p in watch.plan.problems] == ["box/a: its lock says: no"]
    serial(world, A, "mended")
    watch.decide(watch.look([A]))
    assert watch.plan.problems == ()


def test_every_text_of_a_state_counts_however_deep(world):
    serial(world, A, "vm-1")
    fields(
        world, A, first={"vm-2": "vm-3"}, second=["vm-4", {"vm-5"}, Mark("vm-7", "vm-8"), "vm-9"], last="vm-6"
    )
    state = world.things["box", "a"]
    world.things["box", "a"] = replace(state, contents=("vm-10",))
    watch = watched(world)
    for number in range(1, 11):
        assert watch.naming([f"vm-{number}"]) == {A}, number
