"""A run that did not finish says what it left turned off, by states that it reads for this."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from engine.toys import IMPATIENT, Box, BoxSpec, Change, Lid, LidSpec, ToyState, ToyWorld

from bfinfra.engine.apply import Apply, Options
from bfinfra.engine.observe import survey
from bfinfra.engine.out_of_service import Service, can_be_out
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.reconciler import Reconciler
from bfinfra.model.errors import BfinfraError, Denied, Refusal
from bfinfra.model.events import Ending
from bfinfra.model.mark import Mark
from bfinfra.model.outcome import OutOfService
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.resource import State
from bfinfra.model.step import Disruption

A, B = Key("box", "a"), Key("box", "b")
OWN = Mark("toys", "box/a")


@dataclass(frozen=True, kw_only=True)
class Powered(ToyState):
    def out_of_service(self, spec):
        return "is off" if self.phase == "off" and spec is not None else ""


class PoweredBox(Box):
    State = Powered


class Restart(Change):
    """restart {name}"""

    disruption = Disruption.RESTART


@dataclass
class World(ToyWorld):
    def kinds(self):
        return {"box": PoweredBox(self), "lid": Lid(self)}


def box(phase="fine", name="a", **more):
    return Powered(mark=Mark("toys", f"box/{name}").committed({}), fields={}, phase=phase, **more)


class Site:
    """Two boxes, as they were before a run, and what the run tried."""

    def __init__(self, **before):
        self.world = World({("box", name): box(phase, name) for name, phase in before.items()})
        wanted = {Key("box", name): BoxSpec() for name in before}
        self.desired, self.kinds = DesiredState("toys", wanted), self.world.kinds()
        self.observed = survey(self.kinds, wanted, IMPATIENT)
        self.service = Service(self.desired, self.observed, self.kinds)
        self.run = Reconciler(self.desired, self.observed, self.kinds, IMPATIENT, lambda _: None)

    def now(self, name, phase):
        self.world.things["box", name] = replace(self.world.things["box", name], phase=phase)

    def lost(self, *unfinished, step=Restart, tried=(A,)):
        self.run.tried.update(tried)
        steps = (step(name="a", fields={}, mark=OWN),)
        self.world.reads.clear()
        plan = Plan("toys", (Item(A, Action.UPDATE, steps), Item(B, Action.KEEP)))
        return self.service.lost(plan, unfinished, self.run)


def test_what_was_on_and_is_off_is_named_with_what_is_left_to_do(monkeypatch):
    site = Site(a="fine", b="fine")
    site.now("a", "off")
    step = Restart(name="a", fields={}, mark=OWN)
    monkeypatch.setattr(Box, "steps", staticmethod(lambda *_: (step,)))
    assert site.lost(A) == (OutOfService(A, "is off", ("restart a",)),)


def test_what_can_not_be_decided_now_has_nothing_left_to_say(monkeypatch):
    def refused(*_):
        raise Refusal("its neighbour is gone")

    site = Site(a="fine")
    site.now("a", "off")
    monkeypatch.setattr(Box, "steps", staticmethod(refused))
    assert site.lost(A) == (OutOfService(A, "is off", ()),)


def test_what_was_off_before_is_named_only_if_it_was_not_finished():
    site = Site(a="off", b="off")
    assert [each.key for each in site.lost(A)] == [A]
    assert [each.key for each in site.lost()] == []


def test_what_a_disruption_of_another_resource_turned_off_is_read_and_named():
    site = Site(a="fine", b="fine")
    site.now("b", "off")
    assert [each.key for each in site.lost(A)] == [B]


def test_without_a_disruption_only_what_was_tried_is_read_again():
    site = Site(a="fine", b="fine")
    site.now("b", "off")
    assert site.lost(A, step=Change) == ()
    assert site.world.reads == [("box", False)]
    assert site.lost(A, step=Change, tried=(B,)) == (OutOfService(B, "is off", ()),)


def test_a_disruption_that_was_not_tried_reads_nothing():
    site = Site(a="fine", b="fine")
    site.now("b", "off")
    assert site.lost(A, tried=()) == ()
    assert site.world.reads == []


def test_what_was_disrupted_and_can_not_be_read_may_be_off():
    site = Site(a="fine", b="fine")
    site.world.unreadable = {"a": "its shelf is away", "b": "its shelf is away"}
    site.world.things.clear()
    [found] = site.lost(A)
    assert found.key == A
    assert found.how.startswith("may be off or in maintenance mode: it can't be read now (box can't be read")


def test_what_was_never_made_and_can_not_be_read_is_no_loss():
    site, new = Site(a="off"), Key("box", "new")
    site.world.unreadable = {"new": "its shelf is away"}
    assert [each.key for each in site.lost(A, new, tried=(A, new))] == [A]


def test_what_can_not_be_read_of_one_kind_says_so_beside_what_can_not_of_another(monkeypatch):
    class Crate(PoweredBox):
        word = "crate"

    site, crate = Site(a="off"), Key("crate", "c")
    site.kinds["crate"] = Crate(site.world)
    site.observed.states[crate] = box("off", "c")
    site.desired.wanted[crate] = BoxSpec()

    def away(self, wanted, needs, *, include_unlisted=True):
        raise OSError(113, f"no {self.word} answers")

    monkeypatch.setattr(PoweredBox, "observe", away)
    assert [(each.key, each.how) for each in site.lost(A, crate)] == [
        (A, "is off, as it was last read (no box answers)"),
        (crate, "is off, as it was last read (no crate answers)"),
    ]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(113, "the road is closed"), "the road is closed"),
        (FileNotFoundError("the folder is gone"), "the folder is gone"),
        (BfinfraError("the road is closed", "and so is the shop"), "the road is closed"),
    ],
)
def test_what_was_off_when_it_was_last_read_says_so_and_why_it_is_not_read_now(monkeypatch, error, why):
    site = Site(a="fine", b="fine")
    site.now("a", "off")
    site.run.look("box", ("a",))

    def away(self, wanted, needs, *, include_unlisted=True):
        raise error

    monkeypatch.setattr(PoweredBox, "observe", away)
    [found] = site.lost(A)
    assert found.how == f"is off, as it was last read ({why})"


def test_a_state_that_a_failed_look_forgot_is_kept_as_it_was_last_read(monkeypatch):
    site = Site(a="fine", b="off")

    def away(self, wanted, needs, *, include_unlisted=True):
        site.observed.states.clear()
        raise OSError("the road is closed")

    monkeypatch.setattr(PoweredBox, "observe", away)
    assert {each.key for each in site.lost(A, B)} == {A, B}
    assert set(site.observed.states) == {A, B}


@pytest.mark.parametrize(("mark", "named"), [(OWN, True), (Mark("other", "box/a"), False), (None, False)])
def test_of_what_is_not_in_the_file_only_this_sites_own_count(mark, named):
    class Always(Powered):
        def out_of_service(self, spec):
            return "is off"

    world = World({("box", "a"): Always(mark=mark, fields={})})
    desired, kinds = DesiredState("toys", {B: BoxSpec()}), world.kinds()
    observed = survey(kinds, desired.wanted, IMPATIENT)
    observed.states[A] = world.things["box", "a"]
    service = Service(desired, observed, kinds)
    run = Reconciler(desired, observed, kinds, IMPATIENT, lambda _: None)
    assert [each.key for each in service.lost(Plan("toys", ()), {A}, run)] == [A] * named


def test_a_kind_whose_states_always_serve_is_never_looked_at():
    assert can_be_out(Powered)
    assert not can_be_out(ToyState)
    assert not can_be_out(State)
    site = Site(a="fine")
    site.desired.wanted[Key("lid", "top")] = LidSpec(box="a")
    site.lost(A, tried=(A, Key("lid", "top")))
    assert site.world.reads == [("box", False)]


@pytest.mark.parametrize(("error", "lost"), [(Denied("no right to switch"), True), (None, False)])
def test_a_run_says_what_it_left_turned_off_unless_it_finished(monkeypatch, error, lost):
    site = Site(a="fine", b="fine")

    def after(step):
        site.now("a", "off")
        if error:
            raise error

    def steps(name, spec, state, context):
        return (step,) if name == "a" and site.world.writes == [] else ()

    step = Restart(name="a", fields={}, mark=OWN.committed({}))
    monkeypatch.setattr(Box, "steps", staticmethod(steps))
    site.world.after = after
    plan = Plan("toys", (Item(A, Action.UPDATE, (step,)), Item(B, Action.KEEP)))
    run = Apply(plan, site.desired, site.observed, site.kinds, Options(retry=IMPATIENT), lambda _: None)
    assert run.run()[B].ending is Ending.UNCHANGED
    assert run.out_of_service == ((OutOfService(A, "is off"),) if lost else ())
