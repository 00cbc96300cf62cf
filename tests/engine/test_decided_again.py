"""A watch decides again about all that a change concerns, whatever was said of it before."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import pytest
from engine.toys import IMPATIENT, BoxSpec, LidSpec, ToyWorld, applied, site

from bfinfra.engine.observe import survey
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.watch import Watched
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Refusal, Unreachable
from bfinfra.model.plan import Action
from bfinfra.model.refs import Key

A, LID = Key("box", "a"), Key("lid", "a")
WANTED = site(box__a=BoxSpec(), lid__a=LidSpec(box="a"))


def watched(world: ToyWorld) -> Watched:
    desired, kinds = DesiredState.of(WANTED), world.kinds()
    return Watched.of(WANTED, desired, survey(kinds, desired.wanted, IMPATIENT), kinds, IMPATIENT)


def phase(world: ToyWorld, of: Key, now: str) -> None:
    world.things[of.kind, of.name] = replace(world.things[of.kind, of.name], phase=now)


@pytest.fixture
def world() -> ToyWorld:
    made = ToyWorld()
    applied(made, WANTED)
    return made


def test_a_refusal_that_is_about_another_resource_follows_that_one(world, monkeypatch):
    def steps(name, spec, state, context):
        if context.needs["box"].state.phase != "fine":
            raise Refusal(f"the box is {context.needs['box'].state.phase}")
        return ()

    monkeypatch.setattr(type(world.kinds()["lid"]), "steps", staticmethod(steps))
    phase(world, A, "wet")
    watch = watched(world)
    for now, said in (("torn", ["lid/a: the box is torn"]), ("fine", []), ("wet", ["lid/a: the box is wet"])):
        phase(world, A, now)
        watch.decide(watch.look([A]))
        assert [each.what for each in watch.plan.problems] == said
    assert not [item for item in watch.plan.items if item.key == LID]


@pytest.mark.parametrize("stops", [True, False])
def test_what_a_kind_says_of_two_resources_ends_with_a_change_of_the_other(world, monkeypatch, stops):
    watch = watched(world)
    found = Conflict(Spot(A), "it does not fit", (Spot(LID),), stops=stops)

    def conflicts(*_: object) -> list[Conflict]:
        return [found] if watch.observed.states[LID].phase == "swollen" else []

    monkeypatch.setattr(type(world.kinds()["box"]), "conflicts", staticmethod(conflicts))
    for now, said in (
        ("swollen", ["box/a: it does not fit"]),
        ("fine", []),
        ("swollen", ["box/a: it does not fit"]),
    ):
        phase(world, LID, now)
        watch.decide(watch.look([LID]))
        assert [each.what for each in watch.plan.problems] == said * stops
        assert [each.problem.what for each in watch.plan.warnings] == said * (not stops)


def test_what_is_not_there_and_could_not_be_read_is_decided_once_it_can(world, monkeypatch):
    del world.things[A.kind, A.name]
    watch = watched(world)
    kind = type(watch.kinds["box"])
    with monkeypatch.context() as patch:
        patch.setattr(kind, "observe", unreachable)
        watch.decide(watch.survey({"box"}))
        assert "box/a" in watch.plan.unreadable
    watch.decide(found := watch.survey({"box"}))
    assert A in found
    assert not watch.plan.unreadable
    assert [item.key for item in watch.plan.items if item.action is Action.CREATE] == [A]


def unreachable(*_: object, **__: object) -> NoReturn:
    raise Unreachable("boxes can't be read", server="toys")
