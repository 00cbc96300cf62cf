"""Who moved: the world, the file, both; on a kind of the test's own, with a State in units of its own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from engine.toys import ToyWorld
from pydantic import Field, PrivateAttr

from bfinfra.engine.drift import _of, _related, _Sides, report, traced
from bfinfra.engine.observe import ObservedState
from bfinfra.engine.plan import DesiredState, make
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model import compare, kind, resource
from bfinfra.model.awaited import Awaited
from bfinfra.model.compare import UNFINISHED, Change
from bfinfra.model.document import Document
from bfinfra.model.drift import Cause, Drifted, DriftSettings, Report, judged
from bfinfra.model.errors import BfinfraError, Problem, Refusal
from bfinfra.model.kind import LastWriter, Observation
from bfinfra.model.mark import Mark
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.step import Step

KEY = Key("tank", "one")


class Spec(resource.Spec):
    litres: int = 10
    colour: str = "red"
    labels: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    millilitres: int
    colour: str
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Paint(Step):
    """change the tank"""

    rights = ()


class Tank(kind.Kind[Spec, State]):
    """A tank whose State counts in millilitres."""

    document = Document.FLEXDIRECT

    def observe(self, wanted, needs, *, include_unlisted=True):
        return Observation({})

    @staticmethod
    def steps(name, spec, state, context):
        if spec is None:
            return (Paint(),) if state else ()
        if spec.litres > 100:
            raise Refusal("too large", field="litres")
        if state is None or state.going:
            return (Paint(changes=compare.differences(None, spec.applied())),)
        world = [
            Change(f, now, wanted)
            for f, now, wanted in (
                ("litres", state.millilitres, spec.litres * 1000),
                ("colour", state.colour, spec.colour),
            )
            if now != wanted
        ]
        world += compare.differences({"labels": dict(state.labels)}, {"labels": spec.labels})
        found = compare.changes(spec, state.mark, world)
        return (Paint(changes=found),) if found else ()

    def run(self, step, report):
        raise AssertionError(step)


def tank(
    applied: Spec | None,
    *,
    litres: int = 10,
    colour: str = "red",
    labels: Mapping[str, str] | None = None,
    site: str = "s",
) -> State:
    mark = Mark(site, str(KEY))
    return State(
        mark=mark.committed(applied.applied()) if applied else mark,
        millilitres=litres * 1000,
        colour=colour,
        labels=labels or {},
    )


def checked(spec: Spec | None, state: State | None, before: tuple[str, ...] = ()) -> Report:
    wanted: dict[Key, Any] = {} if spec is None else {KEY: spec}
    world = ObservedState(states={} if state is None else {KEY: state})
    desired, kinds = DesiredState("s", wanted), {"tank": Tank()}
    return report(make(Site("s", None, wanted), desired, world, kinds), desired, world, kinds, before)


def causes(found: Report) -> list[tuple[str, str]]:
    return [(each.field, str(each.cause)) for each in found.found]


def test_what_agrees_is_counted():
    found = checked(Spec(), tank(Spec()))
    assert (found.found, found.agreed, found.alarming, found.existing) == ((), 1, (), ("tank/one",))


def test_the_world_moved():
    found = checked(Spec(), tank(Spec(), colour="blue"))
    (one,) = found.alarming
    assert (one.field, one.cause, one.now, one.wanted) == ("colour", Cause.DRIFT, "blue", "red")


def test_the_file_moved_and_that_is_no_alarm():
    found = checked(Spec(litres=20), tank(Spec()))
    assert (causes(found), found.alarming) == ([("litres", "unapplied")], ())


def test_both_moved_the_same_field():
    (one,) = checked(Spec(litres=20), tank(Spec(), litres=15)).alarming
    assert (one.field, one.cause, one.now, one.wanted) == ("litres", Cause.CONFLICT, 15000, 20000)


def test_both_moved_to_the_same_value_and_only_the_mark_is_behind():
    assert causes(checked(Spec(litres=20), tank(Spec(), litres=20))) == [("litres", "conflict")]


def test_both_moved_each_another_field():
    assert causes(checked(Spec(litres=20), tank(Spec(), colour="blue"))) == [
        ("colour", "drift"),
        ("litres", "unapplied"),
    ]


def test_fields_below_a_field_are_distinguished():
    was, now = Spec(labels={"a": "1", "b": "1"}), Spec(labels={"a": "2", "b": "1"})
    assert causes(checked(now, tank(was, labels={"a": "1", "b": "9"}))) == [
        ("labels.b", "drift"),
        ("labels.a", "unapplied"),
    ]


def test_the_value_that_was_applied_is_reported():
    (one,) = checked(Spec(litres=20), tank(Spec(litres=15), litres=17)).found
    assert (one.applied, one.now, one.wanted) == (15, 17000, 20000)


def test_where_the_file_of_then_can_no_longer_be_judged_its_fields_count_as_the_files():
    found = checked(Spec(litres=20), tank(Spec(litres=500), litres=500, colour="blue"))
    assert causes(found) == [("colour", "drift"), ("litres", "unapplied")]


class Drawing(resource.Part):
    """What a mark holds of a file: its name."""

    name: str
    _folder: str = PrivateAttr("")


class Drawn(Spec):
    drawing: Drawing


def test_with_a_file_of_then_that_is_the_one_of_now_it_is_judged_who_moved_what(monkeypatch):
    drawing, real = Drawing(name="a.svg"), Tank.steps
    drawing._folder = "/site"

    def drawn(name, spec, state, context):
        if not spec.drawing._folder:
            raise Refusal("the drawing is not found")
        return real(name, spec, state, context)

    monkeypatch.setattr(Tank, "steps", staticmethod(drawn))
    was, now = Drawn(drawing=drawing), Drawn(drawing=drawing, litres=20)
    assert causes(checked(now, tank(was, litres=15))) == [("litres", "conflict")]


@pytest.mark.parametrize(("before", "cause"), [((), Cause.MISSING), (("tank/one",), Cause.VANISHED)])
def test_what_is_not_there_alarms_whether_it_was_known_or_not(before, cause):
    (one,) = checked(Spec(), None, before).alarming
    assert (one.cause, one.field) == (cause, "")


@pytest.mark.parametrize(("before", "cause"), [((), Cause.MISSING), (("tank/one",), Cause.VANISHED)])
def test_of_what_is_being_deleted_nothing_else_is_said(before, cause):
    going = replace(tank(Spec(labels={"a": "b"}), labels={"a": "c"}), going=True)
    (one,) = checked(Spec(labels={"a": "b"}), going, before).alarming
    assert (one.cause, one.field, one.why) == (cause, "", "it is being deleted")


def test_what_left_the_file_and_still_exists_is_not_applied():
    found = checked(None, tank(Spec()))
    assert (causes(found), found.alarming) == ([("", "unapplied")], ())


def test_work_that_was_started_is_unfinished():
    assert causes(checked(Spec(), tank(None))) == [("", "unfinished")]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (replace(tank(None), mark=None), "bfinfra did not make"),
        (tank(Spec(), site="other"), "of the site other"),
        (replace(tank(None), mark=None, copy="a copy"), "a copy"),
    ],
)
def test_somebody_elses_object_in_its_place_is_drift_and_no_problem(state, why):
    found = checked(Spec(), state)
    (one,) = found.alarming
    assert one.cause is Cause.UNMARKED
    assert why in one.why
    assert not found.blind


def test_what_a_kind_refuses_can_not_be_judged():
    assert checked(Spec(litres=500), tank(Spec())).blind


RULE = {"address": "tank/*", "field": "colour", "reason": "being painted", "until": "2026-12-01"}


@pytest.mark.parametrize(
    ("rule", "day", "alarms", "warned"),
    [
        (RULE, dt.date(2026, 12, 1), 0, 0),
        (RULE, dt.date(2026, 12, 2), 1, 1),
        (RULE | {"address": "tank/two"}, dt.date(2026, 12, 1), 1, 0),
        (RULE | {"field": "litres"}, dt.date(2026, 12, 1), 1, 0),
        (RULE | {"field": "col*"}, dt.date(2026, 12, 1), 0, 0),
        ({k: v for k, v in RULE.items() if k != "field"}, dt.date(2026, 12, 1), 0, 0),
    ],
)
def test_an_ignore_holds_for_its_address_and_field_until_its_last_day(rule, day, alarms, warned):
    found = checked(Spec(), tank(Spec(), colour="blue"))
    every, warnings = judged(found.found, DriftSettings(ignore=(rule,)), day)
    settled = replace(found, found=every)
    assert (len(settled.alarming), len(warnings)) == (alarms, warned)
    assert alarms or "being painted" in every[0].ignored


def test_what_vanished_and_can_not_be_made_again_is_told_with_why_and_is_no_problem():
    found = checked(Spec(litres=101), None, before=(str(KEY),))
    [gone] = found.found
    assert gone.cause is Cause.VANISHED
    assert gone.why == (
        "it existed at an earlier check: it is gone, or out of sight of this account; "
        "it can't be made again: too large"
    )
    assert found.problems == ()


def test_a_report_of_a_part_of_many_tells_what_vanished_or_is_anothers_in_it_and_nothing_of_the_rest():
    mine, theirs, gone, other = (Key("tank", name) for name in ("mine", "theirs", "gone", "other"))
    marked = tank(Spec())
    states = {mine: replace(marked, mark=Mark("s", str(mine), {})), theirs: marked, other: marked}
    wanted: dict[Key, Any] = {
        key: Spec(litres=101 if key == gone else 10) for key in (mine, theirs, gone, other)
    }
    desired, world, kinds = DesiredState("s", wanted), ObservedState(states), {"tank": Tank()}
    plan = make(Site("s", None, wanted), desired, world, kinds, (mine, theirs, gone))
    found = report(plan, desired, world, kinds, (str(gone),))
    assert [(each.key, each.cause) for each in found.found] == [
        (theirs, Cause.UNMARKED),
        (gone, Cause.VANISHED),
    ]
    assert (found.problems, found.partial) == ((), plan.partial)


def test_what_never_existed_and_can_not_be_made_is_a_problem():
    found = checked(Spec(litres=101), None)
    assert (found.found, [p.what for p in found.problems]) == ((), ["tank/one: too large"])


@dataclass(frozen=True, kw_only=True)
class Lost(State):
    def last_known(self):
        return "its yard is disconnected"


def test_what_is_lost_is_unreadable_and_neither_a_problem_nor_a_warning():
    for litres in (10, 20):
        state = Lost(**vars(tank(Spec(), litres=litres)))
        found = checked(Spec(), state)
        assert (found.problems, found.warnings) == ((), ())
        assert found.unreadable == {
            "tank/one": "its yard is disconnected; its last known values were compared; "
            "connect it again, then run this again"
        }


def test_a_report_names_what_exists_with_this_sites_mark():
    assert checked(Spec(), tank(Spec())).existing == ("tank/one",)
    assert checked(Spec(), tank(Spec(), site="other")).existing == ()
    assert checked(Spec(), None).existing == ()


def awaited(monkeypatch, steps=()):
    real = Tank.steps

    def missing(name, spec, state, context):
        if spec is not None and spec.colour == "blue":
            raise Awaited("its paint is not there yet", field="colour", steps=steps)
        return real(name, spec, state, context)

    monkeypatch.setattr(Tank, "steps", staticmethod(missing))


def test_what_can_be_reached_only_with_a_file_that_is_missing_can_not_be_read(monkeypatch):
    awaited(monkeypatch)
    monkeypatch.setattr(Tank, "reaches", True, raising=False)
    found = checked(Spec(colour="blue"), None)
    assert found.found == ()
    assert found.unreadable == {"tank/one": "tank/one: its paint is not there yet"}


def test_what_is_behind_that_can_not_be_read_either_for_the_same_reason():
    kinds = ToyWorld().kinds()
    kinds["box"].reaches = True
    held = [
        Item(box, Action.CREATE, held=Problem(f"{box}: no key yet"))
        for box in (Key("box", "a"), Key("box", "b"))
    ]
    held += [
        Item(lid, Action.CREATE, waits_for=behind, held=Problem("it waits"))
        for lid, behind in (
            (Key("lid", "x"), (Key("box", "else"), Key("box", "b"))),
            (Key("lid", "y"), (Key("lid", "x"),)),
            (Key("lid", "z"), (Key("box", "else"),)),
        )
    ]
    found = report(Plan("s", tuple(held)), DesiredState("s", {}), ObservedState(), kinds)
    assert found.unreadable == {
        "box/a": "box/a: no key yet",
        "box/b": "box/b: no key yet",
        "lid/x": "box/b: no key yet",
        "lid/y": "box/b: no key yet",
    }


def test_what_waits_for_a_file_says_that_the_file_changed_and_what_the_world_moved(monkeypatch):
    awaited(monkeypatch)
    world, file = checked(Spec(colour="blue"), tank(Spec(litres=11), litres=12)).found
    assert (file.cause, file.field) == (Cause.UNAPPLIED, "")
    assert file.why == "the file changed; its paint is not there yet"
    assert (world.cause, world.field, world.now, world.applied) == (Cause.DRIFT, "litres", 12000, 11)
    assert world.wanted == 11000


class Asked:
    """A kind that knows who wrote, and what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def audit(self, names):
        self.asked.append(names)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def drifted(name, field, cause=Cause.DRIFT):
    return Drifted(key=Key("tank", name), cause=cause, field=field)


def look(kind, *found):
    retry = RetryPolicy(attempts=1, lasts=0, sleep=lambda _: None)
    seen = ObservedState({KEY: tank(Spec())})
    return traced(Report("s", found, 0), seen, {"tank": kind}, retry)


def test_who_moved_it_is_asked_once_for_all_of_a_kind_and_told_of_the_field_that_was_written():
    kind = Asked({"one": {"litres": LastWriter("anna", 7.0)}})
    fields = (drifted("one", "litres"), drifted("one", "colour"), drifted("two", "", Cause.MISSING))
    found = look(kind, *fields).found
    assert [(each.by, each.at) for each in found] == [("anna", 7.0), ("", None), ("", None)]
    assert kind.asked == [{"one": (tank(Spec()), ("litres", "colour")), "two": (None, ("",))}]


def test_of_what_the_file_changed_nobody_is_asked():
    kind = Asked({})
    assert look(kind, drifted("one", "litres", Cause.UNAPPLIED)).warnings == ()
    assert kind.asked == []


def test_who_moved_it_is_no_reason_to_fail():
    kind = Asked(BfinfraError(Problem("the log is full")))
    found = look(kind, drifted("one", "litres"), drifted("two", ""))
    [warned] = found.warnings
    assert warned.problem.what == "who changed tank/one, tank/two is not known"
    assert "the log is full" in warned.problem.why
    assert len(found.found) == 2


def test_who_moved_it_is_asked_of_every_kind_though_one_can_not_say():
    silent = Asked(BfinfraError(Problem("the log is full")))
    jar, tub = (
        Asked({"one": {"lid": LastWriter("anna", 7.0)}}),
        Asked({"one": {"lid": LastWriter("berta", 8.0)}}),
    )
    keys = [Key(kind, "one") for kind in ("tank", "jar", "tub")]
    found = Report("s", tuple(Drifted(key=key, cause=Cause.DRIFT, field="lid") for key in keys), 0)
    retry = RetryPolicy(attempts=1, lasts=0, sleep=lambda _: None)
    said = traced(found, ObservedState(), {"tank": silent, "jar": jar, "tub": tub}, retry)
    assert [each.by for each in said.found] == ["", "anna", "berta"]


def test_the_last_writer_of_a_field_did_not_cause_what_only_the_file_changed():
    kind = Asked({"one": {"litres": LastWriter("anna", 7.0)}})
    drift, file = look(kind, drifted("one", "litres"), drifted("one", "litres", Cause.UNAPPLIED)).found
    assert (drift.by, file.by, file.at) == ("anna", "", None)


def test_what_left_the_file_says_so():
    [left] = checked(None, tank(Spec())).found
    assert left.why == "it exists, and the file no longer has it"


def test_what_waits_is_named_after_what_keeps_it_and_its_own_name_only_once(monkeypatch):
    awaited(monkeypatch)
    [made] = checked(Spec(colour="blue"), None).found
    assert made.why == "it was never applied, or somebody deleted it; its paint is not there yet"


def test_unfinished_work_hides_no_field_that_moved(monkeypatch):
    changes = (Change(UNFINISHED, None, "it"), Change("colour", "blue", "red"))
    monkeypatch.setattr(Tank, "steps", staticmethod(lambda *_: (Paint(changes=changes),)))
    assert causes(checked(Spec(), tank(Spec()))) == [("colour", "drift")]


@pytest.mark.parametrize(("file", "cause"), [(Spec(), Cause.DRIFT), (Spec(litres=20), Cause.UNAPPLIED)])
def test_a_step_that_changes_no_field_is_told_by_its_title(monkeypatch, file, cause):
    monkeypatch.setattr(Tank, "steps", staticmethod(lambda *_: (Paint(), Paint())))
    [found] = checked(file, tank(Spec())).found
    assert (found.cause, found.field, found.why) == (cause, "", "change the tank; change the tank")


def test_a_field_and_what_is_below_it_moved_together():
    assert _related("a.b", "a")
    assert _related("a", "a.b")
    assert not _related("ab", "a")
    assert not _related("a", "ab")


def test_settings_of_what_exists_anyway_are_told_field_by_field_as_not_applied():
    state = replace(tank(Spec(), litres=12), mark=None)
    [kept] = checked(Spec(), state).found
    assert kept.cause is Cause.UNMARKED
    item = Item(KEY, Action.UPDATE, (Paint(changes=(Change("litres", 12000, 10000),)),))
    sides = _Sides(DesiredState("s", {KEY: Spec()}), ObservedState({KEY: state}), {"tank": Tank()}, None)
    [told] = _of(item, sides, ())
    assert (told.cause, told.field, told.now, told.wanted) == (Cause.UNAPPLIED, "litres", 12000, 10000)


def test_unfinished_work_says_who_finishes_it():
    [found] = checked(Spec(), tank(None)).found
    assert found.why == "an apply started and did not end; the next one finishes it"


def test_what_never_existed_is_not_said_to_have_existed():
    assert checked(Spec(), None).found[0].why == "it was never applied, or somebody deleted it"
    assert checked(Spec(), None, (str(KEY),)).found[0].why.startswith("it existed at an earlier check")


def test_what_agrees_is_counted_without_what_waits_or_differs(monkeypatch):
    assert checked(Spec(), tank(Spec())).agreed == 1
    assert checked(Spec(litres=11), tank(Spec())).agreed == 0
    awaited(monkeypatch)
    assert checked(Spec(colour="blue"), tank(Spec())).agreed == 0
