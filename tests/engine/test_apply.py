from __future__ import annotations

import errno
import threading
import time
from dataclasses import dataclass, replace

import engine.toys as toys
import pytest
from engine.toys import (
    AtOnce,
    Box,
    BoxSpec,
    LidSpec,
    Make,
    ToyState,
    ToyWorld,
    applied,
    lines,
    planned,
    problems,
    site,
)

from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.awaited import Awaited
from bfinfra.model.errors import Busy, Denied, Exists, NotYet, Refusal, StillRunning, Unanswered
from bfinfra.model.events import Ended, Settling, StepBegun, StepEnded
from bfinfra.model.kind import Kind
from bfinfra.model.readiness import READY, Readiness, Ready, waiting

ONE = site(box__a=BoxSpec())


def once(error):
    left = [error]

    def fail(step):
        if left:
            raise left.pop()

    return fail


def test_everything_is_made_and_values_known_later_are_filled_in():
    world = ToyWorld()
    endings, _ = applied(world, site(lid__top=LidSpec(box="a"), box__a=BoxSpec()))
    assert endings == {"box/a": "done", "lid/top": "done"}
    assert world.writes == ["make a", "make top"]


def test_a_second_apply_writes_nothing():
    world, wanted = ToyWorld(), site(lid__top=LidSpec(box="a"), box__a=BoxSpec())
    applied(world, wanted)
    endings, _ = applied(world, wanted)
    assert endings == {"box/a": "kept", "lid/top": "kept"}
    assert world.writes == ["make a", "make top"]


def test_a_lost_answer_is_settled_by_looking_never_by_repeating():
    world = ToyWorld(after=once(Unanswered("the line went dead")))
    endings, _ = applied(world, site(box__a=BoxSpec()))
    assert endings == {"box/a": "done"}
    assert world.writes == ["make a"]


def test_a_busy_server_is_asked_again():
    world = ToyWorld(fail=once(Busy("come back later", retry_after=3)))
    assert applied(world, site(box__a=BoxSpec()))[0] == {"box/a": "done"}


def test_a_missing_right_is_not_tried_again_and_stops_only_what_depends_on_it():
    def fail(step):
        if step.name == "a":
            raise Denied("no right to make boxes", privilege="Box.Make")

    world = ToyWorld(fail=fail)
    endings, events = applied(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a"), box__b=BoxSpec()))
    assert endings == {"box/a": "failed", "lid/top": "blocked", "box/b": "done"}
    assert problems(events) == [
        "box/a: no right to make boxes; grant the account what it lacks, then run this again",
        "lid/top waits for box/a; which failed",
    ]


def test_every_step_is_announced_before_it_runs():
    _, events = applied(ToyWorld(), site(box__a=BoxSpec()))
    assert [type(e) for e in events if isinstance(e, StepBegun | StepEnded)] == [StepBegun, StepEnded]


def test_what_dries_is_waited_for_and_the_reason_is_shown_once():
    world, answers = ToyWorld(), [waiting("the glue dries"), waiting("the glue dries"), READY]
    world.readiness = lambda _: answers.pop(0) if answers else READY
    endings, events = applied(world, site(box__a=BoxSpec()))
    assert endings == {"box/a": "done"}
    assert [e.why for e in events if isinstance(e, Settling)] == ["the glue dries"]


def test_a_time_out_is_still_waiting_and_the_next_apply_waits_on():
    world, wanted = (
        ToyWorld(readiness=lambda _: waiting("the glue dries")),
        site(box__a=BoxSpec(), lid__top=LidSpec(box="a")),
    )
    endings, _ = applied(world, wanted, deadline=0)
    assert endings == {"box/a": "still-waiting", "lid/top": "still-waiting"}
    world.readiness = lambda _: READY
    assert applied(world, wanted)[0] == {"box/a": "kept", "lid/top": "done"}
    assert world.writes == ["make a", "make top"]


def test_a_resource_that_broke_fails_with_its_reason():
    world = ToyWorld()
    world.after = lambda step: world.things.update(
        {("box", "a"): replace(world.things["box", "a"], phase="broken")}
    )
    endings, events = applied(world, site(box__a=BoxSpec()))
    assert endings == {"box/a": "failed"}
    assert "it is broken" in problems(events)[0]


def test_a_replacement_burns_first_and_builds_when_it_is_gone():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec()))
    endings, _ = applied(world, site(box__a=BoxSpec(material="steel")))
    assert endings == {"box/a": "done"}
    assert world.writes == ["make a", "burn a to make it of something else", "make a"]


def test_destroy_goes_backwards_and_leaves_nothing():
    world, wanted = ToyWorld(), site(lid__top=LidSpec(box="a"), box__a=BoxSpec())
    applied(world, wanted)
    endings, _ = applied(world, wanted, destroy=True)
    assert endings == {"lid/top": "done", "box/a": "done"}
    assert world.writes[2:] == ["burn top", "burn a"]
    assert world.things == {}


def test_a_world_that_moved_after_the_plan_stops_the_item_with_the_difference():
    world, wanted = ToyWorld(), site(box__a=BoxSpec(size=2))
    applied(world, site(box__a=BoxSpec(size=1)))

    def somebody_paints():
        world.things["box", "a"] = replace(world.things["box", "a"], fields={"size": 1, "paint": "blue"})

    endings, events = applied(world, wanted, between=somebody_paints)
    assert endings == {"box/a": "failed"}
    assert "changed after the plan was shown; paint is blue" in problems(events)[0]
    assert world.writes == ["make a"]


def test_a_write_half_done_whose_answer_was_lost_is_not_taken_for_somebody_elses():
    world, wanted = ToyWorld(), site(box__a=BoxSpec(size=2))
    applied(world, site(box__a=BoxSpec(size=1)))

    def half(step):
        world.fail = lambda _: None
        world.things["box", "a"] = replace(
            world.things["box", "a"], fields={"size": 1, "note": "a change is under way"}
        )
        raise Unanswered("no answer")

    world.fail = half
    endings, _ = applied(world, wanted)
    assert endings == {"box/a": "done"}
    assert world.writes == ["make a", "change a"]


def test_somebody_else_making_it_first_is_no_fault():
    world, wanted = ToyWorld(), site(box__a=BoxSpec())
    endings, _ = applied(world, wanted, between=lambda: applied(world, wanted))
    assert endings == {"box/a": "done"}
    assert world.writes == ["make a"]


def test_another_run_of_the_site_that_began_first_is_no_stranger():
    world, wanted = ToyWorld(), site(box__a=BoxSpec(size=2))
    applied(world, site(box__a=BoxSpec(size=1)))

    def another_begins():
        state = world.things["box", "a"]
        world.things["box", "a"] = replace(state, mark=state.mark.pending)

    endings, _ = applied(world, wanted, between=another_begins)
    assert endings == {"box/a": "done"}
    assert world.writes == ["make a", "change a"]


def test_a_step_that_does_not_take_is_an_error_not_a_loop():
    world = ToyWorld()
    world.after = lambda step: world.things.clear()
    endings, events = applied(world, site(box__a=BoxSpec()))
    assert endings == {"box/a": "failed"}
    assert "the server does not show the change" in problems(events)[0]
    assert world.writes == ["make a", "make a"]


def test_a_step_that_another_writer_undid_once_is_run_once_more():
    world = ToyWorld()

    def undone(step):
        world.after = lambda _: None
        world.things.clear()

    world.after = undone
    assert applied(world, site(box__a=BoxSpec()))[0] == {"box/a": "done"}
    assert world.writes == ["make a", "make a"]


def test_stop_finishes_what_runs_and_starts_nothing_new():
    world, stop = ToyWorld(), threading.Event()
    world.after = lambda step: stop.set()
    endings, _ = applied(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a")), stop=stop)
    assert endings == {"box/a": "stopped", "lid/top": "stopped"}
    assert world.writes == ["make a"]
    assert lines(planned(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a")))) == [
        "keep box/a",
        "create lid/top: make top",
    ]


def test_stop_is_heard_between_two_steps_of_one_resource(monkeypatch):
    steps = Box.steps
    monkeypatch.setattr(
        Box,
        "steps",
        staticmethod(
            lambda *what: [replace(s, fields={"size": 1}) if isinstance(s, Make) else s for s in steps(*what)]
        ),
    )
    world, stop = ToyWorld(), threading.Event()
    world.after = lambda step: stop.set()
    endings, _ = applied(world, site(box__a=BoxSpec(size=2)), stop=stop)
    assert endings == {"box/a": "stopped"}
    assert world.writes == ["make a"]
    assert applied(world, site(box__a=BoxSpec(size=2)))[0] == {"box/a": "done"}
    assert world.writes == ["make a", "change a"]


def test_stop_ends_the_wait_for_a_busy_server():
    stop = threading.Event()

    def fail(step):
        stop.set()
        raise Busy("come back later", retry_after=50)

    began = time.monotonic()
    endings, _ = applied(ToyWorld(fail=fail), site(box__a=BoxSpec()), stop=stop, retry=RetryPolicy())
    assert endings == {"box/a": "failed"}
    assert time.monotonic() - began < 40, "it waited for the server's 50 seconds"


def test_independent_branches_run_side_by_side():
    world, together = ToyWorld(), threading.Barrier(3, timeout=60)

    def run_together(step):
        world.lock.release()
        together.wait()
        world.lock.acquire()

    world.fail = run_together
    endings, _ = applied(world, site(box__a=BoxSpec(), box__b=BoxSpec(), box__c=BoxSpec()))
    assert set(endings.values()) == {"done"}


def test_an_item_ends_with_how_long_it_took_and_what_never_began_took_no_time():
    world = ToyWorld(fail=once(Denied("no right to make boxes")))
    _, events = applied(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a")))
    took, none = (each.seconds for each in events if isinstance(each, Ended))
    assert 0 < took < 60
    assert none == 0


class Exclusive(Make):
    """make {name}"""

    @property
    def exclusive(self) -> bool:
        return True


def guarded() -> ToyWorld:
    """Where making fails if something stands there."""
    world = ToyWorld()

    def fail(step):
        if ("box", step.name) in world.things:
            raise Exists("the name is taken")

    world.fail = fail
    return world


def test_a_step_that_fails_where_the_world_moved_needs_no_look_before_it(monkeypatch):
    monkeypatch.setattr(toys, "Make", Exclusive)
    world = guarded()
    assert applied(world, site(box__a=BoxSpec()))[0] == {"box/a": "done"}
    assert world.reads.count(("box", False)) == 1 + 1  # after it, and when all is over


def test_where_it_fails_the_world_is_looked_at_and_a_stranger_left_alone(monkeypatch):
    monkeypatch.setattr(toys, "Make", Exclusive)
    world, stranger = guarded(), ToyState(mark=None, fields={"size": 4})
    endings, events = applied(
        world, site(box__a=BoxSpec()), between=lambda: world.things.update({("box", "a"): stranger})
    )
    assert endings == {"box/a": "failed"}
    assert "did not make it" in problems(events)[0]
    assert (world.things["box", "a"], world.writes) == (stranger, [])


def test_what_others_show_of_a_second_machine_s_work_is_no_reason_to_fail_without_a_look(monkeypatch):
    monkeypatch.setattr(toys, "Make", Exclusive)
    world, elsewhere, decide = guarded(), ToyWorld(), toys.Box.steps
    applied(elsewhere, site(box__a=BoxSpec()))

    def steps(name, spec, state, context):
        if state is None and world.things:
            raise Refusal("no card is left")  # its host shows already who holds it
        return decide(name, spec, state, context)

    monkeypatch.setattr(toys.Box, "steps", staticmethod(steps))
    endings, events = applied(
        world, site(box__a=BoxSpec()), between=lambda: world.things.update(elsewhere.things)
    )
    assert (endings, world.writes) == ({"box/a": "done"}, []), problems(events)


def test_what_is_ready_as_soon_as_it_exists_is_not_read_once_more(monkeypatch):
    monkeypatch.setattr(toys.Toy, "ready", Kind.ready)
    world = ToyWorld()
    assert applied(world, site(box__a=BoxSpec()))[0] == {"box/a": "done"}
    assert world.reads.count(("box", False)) == 1 + 1 + 1  # before it, after it, and when all is over
    world.reads.clear()
    assert applied(world, site(box__a=BoxSpec()))[0] == {"box/a": "kept"}
    assert world.reads.count(("box", False)) == 0


def test_what_is_kept_and_takes_its_time_is_read_before_it_is_asked_whether_it_is_ready():
    world, wanted = ToyWorld(), site(box__a=BoxSpec())
    applied(world, wanted)
    drying = replace(world.things["box", "a"], phase="broken")

    def somebody_breaks_it():
        world.things["box", "a"] = drying

    endings, events = applied(world, wanted, between=somebody_breaks_it)
    assert (endings, "it is broken" in problems(events)[0]) == ({"box/a": "failed"}, True)


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (lambda world: world.things.pop(("box", "a")), "it was created, and is gone"),
        (
            lambda world: world.things.update(
                {
                    ("box", "a"): replace(
                        world.things["box", "a"], fields={**world.things["box", "a"].fields, "size": 4}
                    )
                }
            ),
            "size: 2 → 4",
        ),
    ],
)
def test_what_others_moved_while_it_ran_is_not_reported_as_done(kind, how):
    world = ToyWorld(after=lambda step: kind(world) if step.name == "z" else None)
    endings, events = applied(world, site(box__a=BoxSpec(size=2), lid__z=LidSpec(box="a")))
    assert endings == {"box/a": "failed", "lid/z": "done"}
    assert problems(events) == [
        f"box/a was changed while this ran; {how}; see who else changes it, then apply again"
    ]


def test_what_was_removed_and_exists_again_is_reported():
    world = ToyWorld()
    applied(world, site(box__a=BoxSpec(), box__b=BoxSpec()))
    back = world.things["box", "b"]
    world.after = lambda step: world.things.update({("box", "b"): back}) if step.name == "z" else None
    endings, _ = applied(world, site(box__a=BoxSpec(), lid__z=LidSpec(box="a")))
    assert endings == {"box/a": "kept", "box/b": "failed", "lid/z": "done"}


def test_what_can_not_be_looked_at_once_more_is_no_success():
    world = ToyWorld(
        after=lambda step: world.unreadable.update({"": "the line is dead"}) if step.name == "z" else None
    )
    endings, events = applied(world, site(box__a=BoxSpec(), lid__z=LidSpec(box="a")))
    assert endings == {"box/a": "failed", "lid/z": "done"}
    assert "can't be read once more" in problems(events)[0]


def test_what_waits_for_a_stopped_resource_is_stopped_and_not_failed():
    stop, a_ended = threading.Event(), threading.Event()

    class Slow(Box):
        def observe(self, wanted, needs, *, include_unlisted=True):
            if not include_unlisted and "a" in wanted:
                assert stop.wait(60)
            return super().observe(wanted, needs, include_unlisted=include_unlisted)

    class SlowWorld(ToyWorld):
        def kinds(self):
            return {**super().kinds(), "box": Slow(self)}

    def journal(event):
        if isinstance(event, StepBegun) and event.key.name == "b":
            stop.set()
            assert a_ended.wait(60)  # b still runs while what waits for a is judged
        if isinstance(event, Ended) and event.key.name == "a":
            a_ended.set()

    wanted = site(box__a=BoxSpec(), box__b=BoxSpec(), lid__top=LidSpec(box="a"))
    endings, events = applied(SlowWorld(), wanted, stop=stop, journal=journal)
    assert endings == {"box/a": "stopped", "box/b": "stopped", "lid/top": "stopped"}
    assert all("run the apply again to continue" in problem for problem in problems(events))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "no more files can be opened; Too many open files"),
        (PermissionError(errno.EACCES, "Permission denied", "disk.ova"), "disk.ova: Permission denied"),
    ],
)
def test_what_this_machine_refuses_ends_one_resource_and_not_the_run(error, words):
    def fail(step):
        if step.name == "a":
            raise error

    world = ToyWorld(fail=fail)
    endings, events = applied(world, site(box__a=BoxSpec(), box__b=BoxSpec()))
    assert endings == {"box/a": "failed", "box/b": "done"}
    assert words in problems(events)[0].replace("box/a: ", "")


@pytest.mark.parametrize(("deadline", "least", "most"), [(5, 5, 15), (None, 90, 100)])
def test_a_deadline_bounds_the_patience_with_a_server_that_is_away(monkeypatch, deadline, least, most):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def fail(step):
        now[0] += 0.01
        raise Busy("come back later")

    def sleep(seconds):
        now[0] += seconds

    endings, _ = applied(
        ToyWorld(fail=fail), site(box__a=BoxSpec()), deadline=deadline, retry=RetryPolicy(sleep=sleep)
    )
    assert endings == {"box/a": "failed"}
    assert least <= now[0] <= most


@pytest.mark.parametrize("jump", [-86_400 * 365, 86_400 * 365])
def test_a_clock_that_jumps_ends_no_wait_and_prolongs_none(monkeypatch, jump):
    dried = iter([waiting("it dries"), waiting("it dries"), READY])
    wall = time.time

    def readiness(_):
        monkeypatch.setattr(time, "time", lambda: wall() + jump)
        return next(dried, READY)

    began = time.monotonic()
    endings, _ = applied(ToyWorld(readiness=readiness), site(box__a=BoxSpec()), deadline=60)
    assert endings == {"box/a": "done"}
    assert time.monotonic() - began < 60


def test_what_a_stopped_run_did_not_finish_says_so_and_how_to_continue():
    flag = threading.Event()
    flag.set()
    endings, events = applied(ToyWorld(), site(box__a=BoxSpec()), stop=flag)
    assert endings == {"box/a": "stopped"}
    assert problems(events) == [
        "box/a was not finished; the run was stopped; run the apply again to continue"
    ]


@pytest.mark.parametrize("what", ["it is broken", "the lid of box/a is broken"])
def test_a_failure_names_its_resource_once(what):
    def fail(step):
        raise Denied(what)

    [problem] = problems(applied(ToyWorld(fail=fail), site(box__a=BoxSpec()))[1])
    assert problem.count("box/a") == 1


def test_a_ready_resource_whose_next_decision_fails_is_not_done(monkeypatch):
    """It reports why, as it would have before it was ready."""
    real, refused = Box.steps, []

    def steps(name, spec, state, context):
        if state is not None and refused:
            raise Refusal("it became too large")
        return real(name, spec, state, context)

    def ready(word):
        refused.append(word)
        return READY

    monkeypatch.setattr(Box, "steps", staticmethod(steps))
    world = ToyWorld(readiness=ready)
    endings, events = applied(world, site(box__a=BoxSpec(), lid__top=LidSpec(box="a")))
    assert endings == {"box/a": "failed", "lid/top": "blocked"}
    assert "it became too large" in problems(events)[0]


def test_what_is_undone_while_it_dries_is_mended_before_anything_lies_on_it():
    def readiness(word):
        state = world.things["box", "a"]
        if world.writes == ["make a"] and state.fields["size"] == 2:
            world.things["box", "a"] = replace(state, fields={"size": 7})
            return waiting("the glue dries")
        return READY

    world = ToyWorld(readiness=readiness)
    endings, _ = applied(world, site(box__a=BoxSpec(size=2), lid__top=LidSpec(box="a")))
    assert endings == {"box/a": "done", "lid/top": "done"}
    assert world.writes == ["make a", "change a", "make top"]


@pytest.mark.parametrize("error", [StillRunning("it takes long"), NotYet("its glue is not there yet")])
def test_what_takes_longer_than_it_was_given_is_waited_for_and_no_failure(error):
    def fail(step):
        raise error

    endings, events = applied(ToyWorld(fail=fail), site(box__a=BoxSpec(), lid__top=LidSpec(box="a")))
    assert endings == {"box/a": "still-waiting", "lid/top": "still-waiting"}
    assert problems(events)[1] == "lid/top waits for box/a; which is not ready yet"


def test_what_is_worth_knowing_of_something_ready_is_told():
    _, events = applied(ToyWorld(readiness=lambda _: Readiness(Ready.READY, note="at 10.0.0.1")), ONE)
    assert [each.note for each in events if isinstance(each, Ended)] == ["at 10.0.0.1"]


def test_what_waits_for_a_file_says_so_and_what_needs_it_no_more_is_kept(monkeypatch):
    def missing(name, spec, state, context):
        raise Awaited("its drawing is not there yet", field="size")

    wanted = site(box__a=BoxSpec(), lid__top=LidSpec(box="a"))
    for made, endings, said in (
        (False, {"box/a": "still-waiting", "lid/top": "still-waiting"}, ["lid/top waits for box/a"]),
        (True, {"box/a": "still-waiting", "lid/top": "kept"}, []),
    ):
        world = ToyWorld()
        if made:
            applied(world, wanted)
        with monkeypatch.context() as patch:
            patch.setattr(Box, "steps", staticmethod(missing))
            found, events = applied(world, wanted)
        assert (found, problems(events)) == (endings, ["box/a: box/a: its drawing is not there yet", *said])


class Listening(threading.Event):
    """A flag that notes how long somebody waits for it."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def wait(self, timeout=None):
        self.waits.append(timeout)
        return super().wait(timeout)


def test_a_run_pauses_only_where_something_takes_its_time(monkeypatch):
    world, drying = ToyWorld(), [waiting("the glue dries")] * 2
    applied(world, ONE)
    world.readiness = lambda _: drying.pop() if drying else READY
    slow, quick = Listening(), Listening()
    applied(world, ONE, stop=slow)
    assert max(slow.waits) > 0
    monkeypatch.setattr(toys.Toy, "ready", Kind.ready)
    applied(world, ONE, stop=quick)
    assert {*quick.waits} <= {0}


@dataclass
class Many(ToyWorld):
    """A world of several kinds of boxes."""

    kind: type[Box] = Box

    def kinds(self):
        found = {f"box{number}": self.kind(self) for number in range(8)}
        for word, each in found.items():
            each.word = word
        return found


MANY = site(**{f"box{number}__a": BoxSpec() for number in range(8)})


def test_four_kinds_are_asked_at_once_whether_they_are_ready_and_no_more():
    asked = AtOnce(4)

    class Slow(Box):
        def ready(self, spec, state):
            asked.passing()
            return READY

    applied(Many(), MANY)
    world = Many(kind=Slow)
    applied(world, MANY)
    applied(world, MANY)
    assert asked.most == 4


def test_a_stopped_run_waits_for_no_answer_whether_something_is_ready_and_asks_no_more():
    stop, go_on, threads = threading.Event(), threading.Event(), []

    class Slow(Box):
        def ready(self, spec, state):
            threads.append(threading.current_thread())
            if len(threads) == 4:
                stop.set()
            go_on.wait(10)
            answered.append(self.word)
            return READY

    world, answered = Many(), list[str]()
    applied(world, MANY)
    world.kind = Slow
    endings, _ = applied(world, MANY, stop=stop)
    assert ({*endings.values()}, answered) == ({"stopped"}, [])
    go_on.set()
    for each in {*threads}:
        each.join(60)
    assert len(threads) == 4
