"""One item is read, decided and written, step by step, and never further than its plan said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from engine.toys import (
    IMPATIENT,
    Box,
    BoxSpec,
    Burn,
    BurnToReplace,
    Change,
    Make,
    ToyState,
    ToyWorld,
    applied,
    planned,
    site,
)

from bfinfra.engine.observe import survey
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.reconciler import Halted, Reconciler
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model import compare
from bfinfra.model.errors import (
    BfinfraError,
    Busy,
    Conflict,
    Denied,
    Diverged,
    Exists,
    Problem,
    StillRunning,
    Unreachable,
)
from bfinfra.model.events import Event, Progressed, StepBegun, StepEnded
from bfinfra.model.kind import Done
from bfinfra.model.mark import Mark
from bfinfra.model.plan import Action, Item
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.step import Disruption, Step

A = Key("box", "a")
ONE = site(box__a=BoxSpec())


class Run:
    """A reconciler over a toy world that was just surveyed."""

    def __init__(self, world: ToyWorld, wanted: Site = ONE, *, destroy: bool = False) -> None:
        desired, self.events, self.retry = (
            DesiredState.of(wanted, destroy=destroy),
            list[Event](),
            RetryPolicy(),
        )
        self.retry = replace(IMPATIENT, halt=self.retry.halt)
        self.observed = survey(world.kinds(), desired.wanted, IMPATIENT)
        self.items = {item.key: item for item in planned(world, wanted, destroy=destroy).items}
        self.reconciler = Reconciler(desired, self.observed, world.kinds(), self.retry, self.events.append)

    def take(self, key: Key = A) -> bool:
        return self.reconciler.take(self.items[key])

    def ended(self) -> list[StepEnded]:
        return [each for each in self.events if isinstance(each, StepEnded)]


def raising(*errors: Exception) -> Callable[[Step], None]:
    left = [*errors]

    def fail(step: Step) -> None:
        if left:
            raise left.pop(0)

    return fail


@pytest.fixture
def made() -> ToyWorld:
    """A world with the box, as its site says."""
    world = ToyWorld()
    applied(world, ONE)
    world.reads.clear()
    world.writes.clear()
    return world


def change(world: ToyWorld, **fields: Any) -> None:
    world.things["box", "a"] = replace(world.things["box", "a"], **fields)


def test_an_item_is_done_once_nothing_is_left_to_do() -> None:
    world = ToyWorld()
    assert Run(world).take()
    assert world.writes == ["make a"]


def test_the_state_is_read_before_each_step_and_after_the_last() -> None:
    world = ToyWorld()
    run = Run(world)
    world.reads.clear()
    run.take()
    assert world.reads == [("box", False)] * 2


def test_after_a_step_that_has_to_settle_the_next_one_waits(made: ToyWorld) -> None:
    run = Run(made, site(box__a=BoxSpec(material="steel")))
    assert not run.take()
    assert made.writes == ["burn a to make it of something else"]
    assert run.take()
    assert made.writes[1:] == ["make a"]


def test_what_somebody_else_did_meanwhile_is_not_done_again() -> None:
    world = ToyWorld()
    run = Run(world)
    applied(world, ONE)
    world.writes.clear()
    assert run.take()
    assert (world.writes, run.events) == ([], [])


@pytest.mark.parametrize("error", [Exists("the name is taken"), Conflict("changed meanwhile"), Busy("later")])
def test_a_write_that_fails_in_passing_is_decided_anew(error: BfinfraError) -> None:
    world = ToyWorld(fail=raising(error))
    run = Run(world)
    world.reads.clear()
    assert run.take()
    assert len(world.reads) == 3, "it is read again before the second try"
    assert [(each.again, bool(each.problem)) for each in run.ended()] == [(True, True), (False, False)]


def test_a_write_that_fails_for_good_ends_the_item() -> None:
    run = Run(ToyWorld(fail=raising(Denied("no right to make boxes"))))
    with pytest.raises(Denied):
        run.take()
    (ended,) = run.ended()
    assert ended.problem is not None
    assert (ended.problem.what, ended.again) == ("no right to make boxes", False)


def test_a_mistake_of_ours_is_reported_with_its_resource() -> None:
    run = Run(ToyWorld(fail=raising(ZeroDivisionError("division by zero"))))
    with pytest.raises(BfinfraError, match="box/a"):
        run.take()


def test_an_interrupted_step_is_told_as_such() -> None:
    def interrupt(step: Step) -> None:
        raise KeyboardInterrupt

    run = Run(ToyWorld(fail=interrupt))
    with pytest.raises(KeyboardInterrupt):
        run.take()
    (ended,) = run.ended()
    assert ended.problem is not None
    assert ended.problem.what == "interrupted"


def test_each_step_is_announced_before_it_runs_and_numbered(made: ToyWorld) -> None:
    run = Run(made, site(box__a=BoxSpec(material="steel")))
    begun: list[int] = []
    made.fail = lambda _: begun.append(sum(isinstance(each, StepBegun) for each in run.events))
    run.take()
    run.take()
    assert begun == [1, 2]
    told = [
        (each.number, each.title, each.key) for each in run.events if isinstance(each, StepBegun | StepEnded)
    ]
    first, second = (1, "burn a to make it of something else", A), (2, "make a", A)
    assert told == [first, first, second, second]
    assert all(0 <= each.seconds < 60 and each.problem is None for each in run.ended())


def test_the_progress_of_a_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def upload(self: Box, step: Make, report: Callable[[Done], None]) -> None:
        report(Done("planks", 1, 2))
        self.world.things["box", "a"] = self.made(step)

    monkeypatch.setattr(Box, "run", upload)
    run = Run(ToyWorld())
    run.take()
    assert [each.progress for each in run.events if isinstance(each, Progressed)] == [Done("planks", 1, 2)]


def test_a_stopped_run_starts_no_step_and_still_sees_what_is_done(made: ToyWorld) -> None:
    for world, done in ((ToyWorld(), False), (made, True)):
        run = Run(world)
        run.retry.halt.set()
        if done:
            run.items[A] = Item(A, Action.UPDATE, (Make(name="a", fields={}, mark=Mark("toys", "box/a")),))
            assert run.take()
            continue
        with pytest.raises(Halted):
            run.take()
        assert (run.events, run.reconciler.tried) == ([], set())


# Reading.


def test_what_can_not_be_read_is_an_error_with_its_reason() -> None:
    world = ToyWorld()
    run = Run(world)
    world.unreadable = {"a": "its shelf is dark"}
    with pytest.raises(Unreachable, match="box can't be read; its shelf is dark"):
        run.reconciler.look("box", ("b", "a"))
    run.reconciler.look("box", ("b",))


def test_a_read_replaces_what_was_known_of_these_and_of_no_others(made: ToyWorld) -> None:
    run = Run(made)
    made.things.clear()
    run.reconciler.look("box", ("b",))
    assert A in run.observed.states
    run.reconciler.look("box", ("a",))
    assert A not in run.observed.states


@pytest.mark.parametrize(
    ("mark", "known"),
    [(None, False), (Mark("another", "box/a"), False), (Mark("toys", "box/a"), True)],
    ids=["nobody's", "another site's", "ours"],
)
def test_an_object_of_others_by_the_name_of_what_was_deleted_is_left_alone(
    made: ToyWorld, monkeypatch: pytest.MonkeyPatch, mark: Mark | None, known: bool
) -> None:
    run = Run(made, destroy=True)
    change(made, mark=mark)
    monkeypatch.setattr(Box, "observe", everything)
    run.reconciler.look("box", ("a",))
    assert (A in run.observed.states) is known


def everything(self: Box, wanted: Any, needs: Any, *, include_unlisted: bool = True) -> Any:
    found = {name: state for (_, name), state in self.world.things.items()}
    return type("Found", (), {"states": found, "unreadable": {}, "refused": {}, "facts": None})()


def test_an_object_of_others_by_the_name_of_what_is_wanted_is_known(made: ToyWorld) -> None:
    run = Run(made)
    change(made, mark=None)
    run.reconciler.look("box", ("a",))
    assert A in run.observed.states


# A step that fails safely needs no read before it.


class Exclusive(Make):
    """make {name}"""

    @property
    def exclusive(self) -> bool:
        return True


def test_a_step_that_fails_safely_runs_without_a_read_before_it_and_only_the_first_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.toys.Make", Exclusive)
    world = ToyWorld(fail=raising(Exists("the name is taken")))
    run = Run(world)
    world.reads.clear()
    run.take()
    assert world.writes == ["make a"]
    assert world.reads == [("box", False)] * 2, "before the second try, and after it"


def exclusive() -> Item:
    return Item(A, Action.CREATE, (Exclusive(name="a", fields={}, mark=Mark("toys", "box/a")),))


def test_what_needs_another_step_by_now_is_read_before_it() -> None:
    world = ToyWorld()
    run = Run(world)
    run.items[A] = exclusive()  # by now it is a plain one
    world.reads.clear()
    run.take()
    assert world.reads == [("box", False)] * 2


def test_what_needs_no_step_by_now_is_read_and_done(made: ToyWorld) -> None:
    run = Run(made)
    run.items[A] = exclusive()
    assert run.take()
    assert (made.reads[-1], made.writes) == (("box", False), [])


def test_any_other_step_is_read_before_it() -> None:
    world = ToyWorld()
    run = Run(world)
    world.things["box", "a"] = ToyState(fields={"size": 4})  # nobody's
    with pytest.raises(BfinfraError, match="did not make it"):
        run.take()
    assert world.writes == []


# An end to what does not take.


def test_a_step_that_does_not_take_is_run_twice_and_then_given_up() -> None:
    world = ToyWorld()
    world.after = lambda _: world.things.clear()
    with pytest.raises(BfinfraError) as raised:
        Run(world).take()
    assert raised.value.problems == (
        Problem(
            "box/a: make a ran, but the server does not show the change",
            why="the next step would be the same",
            next="look at the object: somebody else may be undoing the change",
        ),
    )
    assert world.writes == ["make a", "make a"]


def test_a_step_may_be_run_twice_after_another_one(made: ToyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (Change(name="a", fields={"size": size}, mark=Mark("toys", "box/a")) for size in (3, 4))
    left: list[Step] = [first, second, second, second]
    monkeypatch.setattr(Box, "steps", staticmethod(lambda *_: (left.pop(0),)))
    run = Run(made)
    run.items[A], left[:] = Item(A, Action.UPDATE, (first, second)), [first, second, second, second]
    with pytest.raises(BfinfraError, match="does not show the change"):
        run.take()
    assert made.writes == ["change a"] * 3


def test_two_different_steps_that_destroy_follow_each_other(
    made: ToyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    burns = [Burn(name="a"), Burn(name="b")]
    left: list[Step] = [*burns]
    monkeypatch.setattr(Box, "steps", staticmethod(lambda *_: tuple(left[:1])))
    made.things["box", "b"] = made.things["box", "a"]
    made.after = lambda _: left.pop(0)  # type: ignore[assignment]  # what it answers is not looked at
    run = Run(made)
    run.items[A] = Item(A, Action.UPDATE, (*burns,))
    assert run.take()
    assert made.writes == ["burn a", "burn b"]


@dataclass(frozen=True, kw_only=True)
class Reboot(Change):
    """reboot {name}"""

    disruption = Disruption.REBOOT


@pytest.mark.parametrize("step", [Reboot(name="a", fields={}, mark=Mark("toys", "box/a")), Burn(name="a")])
def test_a_step_that_disrupts_or_destroys_is_never_run_twice_in_a_row(
    made: ToyWorld, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    monkeypatch.setattr(Box, "steps", staticmethod(lambda *_: (step,)))
    kept = made.things["box", "a"]
    made.after = lambda _: made.things.update({("box", "a"): kept})
    run = Run(made)
    with pytest.raises(BfinfraError, match="does not show the change"):
        run.take()
    assert len(made.writes) == 1


def test_an_item_that_never_ends_is_given_up(made: ToyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(name: str, spec: BoxSpec, state: ToyState, context: Any) -> tuple[Step, ...]:
        return (Change(name=name, fields={"size": state.fields.get("size", 1) + 1}, mark=context.mark),)

    monkeypatch.setattr(Box, "steps", staticmethod(one_more))
    with pytest.raises(BfinfraError, match=r"box/a is still not done after \d+ steps") as raised:
        Run(made).take()
    assert raised.value.problems[0].next == "report this; nothing more is tried"
    assert len(made.writes) == 64 + 1 + 1, "64, that of its plan, and the one that was too many"


# Nothing that the plan did not announce.

BIG = site(box__a=BoxSpec(size=2))


def diverges(run: Run, words: str) -> None:
    with pytest.raises(Diverged) as raised:
        run.take()
    (problem,) = raised.value.problems
    assert (problem.what, problem.next) == ("box/a changed after the plan was shown", "plan again")
    assert words in problem.why


def test_a_field_that_the_plan_did_not_name_stops_it(made: ToyWorld) -> None:
    run = Run(made, BIG)
    change(made, fields={"size": 1, "paint": "blue"})
    diverges(run, "paint is blue, wanted None, and the plan did not have that")
    assert made.writes == []


def test_an_announced_field_with_another_value_stops_it(made: ToyWorld) -> None:
    run = Run(made, BIG)
    change(made, fields={"size": 7})
    diverges(run, "size is 7, wanted 2")


def test_a_field_within_an_announced_one_does_not_stop_it(
    made: ToyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {field: changing(compare.Change(field, 1, 2)) for field in ("size", "size.x", "sizes")}
    for field, goes_on in (("size.x", True), ("sizes", False)):
        run = Run(made, BIG)
        run.items[A] = Item(A, Action.UPDATE, (steps["size"],))
        left = [steps[field]]
        monkeypatch.setattr(Box, "steps", staticmethod(lambda *_, left=left: left and (left.pop(),)))
        if goes_on:
            assert run.take()
        else:
            diverges(run, "sizes is 1, wanted 2")


def changing(*changes: compare.Change, form: type[Change] = Change) -> Change:
    return form(name="a", fields={}, mark=Mark("toys", "box/a"), changes=changes)


def test_a_mark_that_is_missing_is_no_news(made: ToyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(made, BIG)
    left = [changing(compare.Change("size", None, 2), compare.Change(compare.UNFINISHED, None, "ours"))]
    monkeypatch.setattr(Box, "steps", staticmethod(lambda *_: left and (left.pop(),)))
    assert run.take()


def form(disruption: Disruption) -> Step:
    """A step that disrupts so."""
    return changing(form=type("Disrupting", (Change,), {"disruption": disruption}))


def worse(made: ToyWorld, monkeypatch: pytest.MonkeyPatch, step: Step) -> Run:
    """A run whose plan was to change the size, and which now finds that it needs this step."""
    run = Run(made, BIG)
    monkeypatch.setattr(Box, "steps", staticmethod(lambda *_: (step,)))
    return run


def test_a_disruption_that_the_plan_did_not_announce_stops_it(
    made: ToyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = worse(made, monkeypatch, changing(form=Reboot))
    diverges(run, "it would now need a reboot; the plan announced none")
    assert made.writes == []


def test_of_several_disruptions_the_worst_counts(made: ToyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    run, forms = Run(made, BIG), [form(each) for each in Disruption]
    monkeypatch.setattr(Box, "steps", staticmethod(lambda *_: forms))
    for worst in (Disruption.REPLACE, Disruption.POWER_CYCLE, Disruption.REBOOT, Disruption.RESTART):
        diverges(run, f"it would now need a {worst}; the plan announced none")
        forms.pop()


def test_a_disruption_stops_it_after_the_first_step_too(
    made: ToyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = worse(made, monkeypatch, changing(form=Reboot))
    run.reconciler.tried.add(A)
    diverges(run, "it would now need a reboot")


def test_something_destroyed_that_the_plan_did_not_announce_stops_it(
    made: ToyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverges(worse(made, monkeypatch, Burn(name="a")), "it would now burn a, which the plan did not announce")
    assert made.writes == []


def test_what_the_plan_announced_to_destroy_does_not_stop_it(made: ToyWorld) -> None:
    run = Run(made, destroy=True)
    assert run.take()
    assert made.writes == ["burn a"]


def test_what_goes_may_go_by_a_step_that_would_replace_what_stays(
    made: ToyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    burn = BurnToReplace(name="a")
    monkeypatch.setattr(Box, "steps", staticmethod(lambda _, spec, state, context: (burn,) if state else ()))
    run = Run(made, destroy=True)
    assert run.items[A].action is Action.DELETE
    assert [run.take(), run.take()] == [False, True]
    assert made.writes == [burn.title()]


def test_fields_that_this_run_may_have_changed_itself_do_not_stop_it(made: ToyWorld) -> None:
    run = Run(made, BIG)
    run.reconciler.tried.add(A)
    change(made, fields={"size": 1, "paint": "blue"})
    assert run.take()


@dataclass(frozen=True, kw_only=True)
class Rebuild(Make):
    """rebuild {name} as it was"""


OLD = ToyState(mark=Mark("toys", "box/a"), fields={"size": 1, "material": "wood"})


@pytest.fixture
def giving_back(made: ToyWorld, monkeypatch: pytest.MonkeyPatch) -> ToyWorld:
    """A world in which what is taken from service can be given back."""
    back = Rebuild(name="a", fields=OLD.fields, mark=OLD.mark)
    monkeypatch.setattr(Burn, "way_back", property(lambda _: back))
    return made


def refusing(*refused: type[Step], error: BfinfraError | None = None) -> Callable[[Step], None]:
    def fail(step: Step) -> None:
        if type(step) in refused:
            raise error or Denied("the server says no", why="no right")

    return fail


def replaced(world: ToyWorld, *refused: type[Step], error: BfinfraError | None = None) -> str:
    world.fail = refusing(*refused, error=error)
    run = Run(world, site(box__a=BoxSpec(material="steel")))
    run.take()
    with pytest.raises(BfinfraError) as raised:
        run.take()
    return str(raised.value)


def test_what_was_taken_from_service_for_a_refused_change_is_given_back(giving_back: ToyWorld) -> None:
    said = replaced(giving_back, Make)
    assert giving_back.writes == ["burn a to make it of something else", "rebuild a as it was"]
    assert "the server says no; no right; as before: rebuild a as it was" in said


def test_what_can_not_be_given_back_is_said_with_both_reasons(giving_back: ToyWorld) -> None:
    said = replaced(giving_back, Make, Rebuild)
    assert "it is still out of service, as this failed: rebuild a as it was (the server says no" in said


@pytest.mark.parametrize("error", [Unreachable("gone"), StillRunning("it still runs")])
def test_nothing_is_given_back_while_the_change_may_still_happen(
    giving_back: ToyWorld, error: BfinfraError
) -> None:
    replaced(giving_back, Make, error=error)
    assert giving_back.writes == ["burn a to make it of something else"]


def test_nothing_is_given_back_twice(giving_back: ToyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Burn, "way_back", property(lambda step: Make(name="a", fields={}, mark=OLD.mark)))
    replaced(giving_back, Make)
    assert giving_back.writes == ["burn a to make it of something else"]
