"""apply, destroy and adopt from the command line: confirmation, options, signals, exit codes."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import sys
import threading
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import ClassVar

import pytest

import bfinfra
from bfinfra.app import saved
from bfinfra.cli import ask, execute, main
from bfinfra.cli.signals import conduct
from bfinfra.engine import guard
from bfinfra.model.compare import Change
from bfinfra.model.errors import Problem
from bfinfra.model.events import Ended, Ending, Progressed, StepBegun, StepEnded
from bfinfra.model.kind import Done
from bfinfra.model.outcome import Outcome
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption, Step
from bfinfra.model.stop import Stop

SPACE, OLD, HOST = (
    Key("supervisor_namespace", "cnasg"),
    Key("supervisor_namespace", "old"),
    Key("gpu_host", "esx-01"),
)
SITE = "site: poc\nsupervisor_namespace:\n  cnasg: {cluster: compute}\n"


@dataclass(frozen=True, kw_only=True)
class Do(Step):
    """do {name}"""

    name: str


@dataclass(frozen=True, kw_only=True)
class Reboot(Step):
    """reboot {name}"""

    disruption: ClassVar[Disruption] = Disruption.REBOOT
    why: ClassVar[str] = "passthrough"
    name: str


CREATE = Plan(
    "poc", (Item(SPACE, Action.CREATE, (Do(name="cnasg", changes=(Change("cluster", None, "compute"),)),)),)
)
DELETE = Plan("poc", (Item(OLD, Action.DELETE, (Do(name="old"),), (), ("vm/other",)),))
REBOOT = Plan("poc", (Item(HOST, Action.UPDATE, (Reboot(name="esx-01"),)),))


class FakeApply:
    """Stands in for bfinfra.apply: asks for approval, guards, tells a few events; keeps how it was called."""

    def __init__(self, plan: Plan, ending: Ending = Ending.DONE) -> None:
        self.plan, self.ending, self.how, self.allow = plan, ending, {}, None
        self.meanwhile = lambda options: None

    def __call__(self, site, *, approve, options, on_event, context, **how):
        self.stop = context.stop
        self.how = {"site": site, "options": options, "context": context, **how}
        self.allow = approve(self.plan)
        if self.allow is None:
            return Outcome(self.plan, {}, 0.0, declined=True)
        guard.check(self.plan, self.allow)
        endings = {}
        for item in self.plan.items:
            on_event(StepBegun(at=0, key=item.key, title="do it", number=1))
            on_event(Progressed(at=0, key=item.key, progress=Done("disk", 1, 2)))
            on_event(StepEnded(at=1, key=item.key, title="do it", number=1, seconds=1.0))
            self.meanwhile(options)
            problem = None if self.ending is Ending.DONE else Problem("it did not")
            endings[item.key] = Ended(
                at=1,
                key=item.key,
                action=item.action,
                ending=self.ending,
                seconds=1.0,
                note="https://here",
                problem=problem,
            )
            on_event(endings[item.key])
        return Outcome(self.plan, endings, 1.0, 9, 2)


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "dumb")
    file = tmp_path / "site.yaml"
    file.write_text(SITE)
    return str(file)


@pytest.fixture
def world(monkeypatch):
    def put(plan, ending=Ending.DONE):
        made = FakeApply(plan, ending)
        monkeypatch.setattr("bfinfra.app.apply.apply", made)
        return made

    return put


@pytest.fixture
def types(monkeypatch):
    """Somebody sits at the terminal and types these lines."""

    def put(*lines):
        keyboard = io.StringIO("".join(f"{line}\n" for line in lines))
        keyboard.isatty = lambda: True
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    return put


@pytest.mark.parametrize("verb", [["apply"], ["destroy"], ["adopt"]])
def test_without_a_terminal_and_without_yes_it_refuses_and_says_why(verb, site, world, capsys, monkeypatch):
    reached = world(CREATE)
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert main([*verb, site, *([str(SPACE)] if verb == ["adopt"] else [])]) == 1
    err = capsys.readouterr().err
    assert f"error: {verb[0]} needs a confirmation, and there is no terminal to ask on" in err
    assert "then run with --yes" in err
    assert reached.how == {}


@pytest.mark.parametrize(
    ("ending", "code"),
    [(Ending.DONE, 0), (Ending.FAILED, 1), (Ending.BLOCKED, 1), (Ending.WAITING, 3), (Ending.STOPPED, 1)],
)
def test_the_ending_is_the_exit_code(ending, code, site, world):
    world(CREATE, ending)
    assert main(["apply", "--yes", site]) == code


def test_the_plan_the_progress_and_the_summary_are_printed_in_their_order(site, world, capsys):
    world(CREATE)
    assert main(["apply", "--yes", site]) == 0
    assert (
        capsys.readouterr().out
        == """\
+ create  supervisor_namespace/cnasg
    1. do cnasg
       cluster: compute

poc: 1 to create.
00:00:00  supervisor_namespace/cnasg: step 1 of 1: do it
00:00:01  supervisor_namespace/cnasg: created after 1.0s
✓ created       supervisor_namespace/cnasg  1.0s
        1.0s  do it
      https://here

poc: done in 1.0s: 1 created. 2 writes in 9 requests.
"""
    )


def test_json_is_one_document_and_the_progress_goes_beside_it(site, world, capsys):
    world(CREATE)
    assert main(["apply", "--yes", "--output", "json", site]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["resources"][0]["note"] == "https://here"
    assert "created after" in err


def test_jsonl_is_plan_events_and_outcome_a_line_each(site, world, capsys):
    world(CREATE)
    main(["apply", "--yes", "--output", "jsonl", site])
    kinds = [json.loads(line)["type"] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["item", "plan", "step_begun", "progressed", "step_ended", "ended", "outcome"]


def test_options_reach_the_engine(site, world):
    made = world(CREATE)
    main(
        [
            "apply",
            "--yes",
            "--parallelism",
            "3",
            "--deadline",
            "30m",
            "--allow-delete",
            f"{SPACE},all",
            "--allow-disruption",
            "all",
            site,
        ]
    )
    assert (made.how["options"].parallelism, made.how["options"].deadline) == (3, 1800.0)
    assert made.allow == guard.Allow(every_delete=True, every_disruption=True, delete=frozenset({SPACE}))


def test_yes_alone_allows_neither_deletion_nor_disruption(site, world, capsys):
    world(REBOOT)
    assert main(["apply", "--yes", site]) == 1
    assert "--allow-disruption gpu_host/esx-01" in capsys.readouterr().err
    world(DELETE)
    assert main(["apply", "--yes", "--allow-delete", "all", site]) == 1
    assert "contains objects that are not this site's: vm/other" in capsys.readouterr().err


def test_what_is_no_address_is_an_error(site, world, capsys):
    world(CREATE)
    assert main(["apply", "--yes", "--allow-delete", "old", site]) == 1
    assert "--allow-delete: error: 'old' is not an address" in capsys.readouterr().err
    assert main(["adopt", "--yes", site, "old"]) == 1
    assert "is not an address" in capsys.readouterr().err


def test_an_address_that_is_not_in_the_plan_allows_nothing_and_the_nearest_is_named(site, world, capsys):
    world(DELETE)
    assert main(["apply", "--yes", "--allow-delete", "supervisor_namespace/odl", site]) == 1
    error = capsys.readouterr().err
    assert "--allow-delete: error: supervisor_namespace/odl is not in the plan" in error
    assert "did you mean supervisor_namespace/old?" in error


def test_what_was_allowed_for_an_earlier_plan_may_stay_in_the_command(site, world):
    world(CREATE)
    assert main(["apply", "--yes", "--allow-delete", "supervisor_namespace/gone", site]) == 0


def test_a_deadline_has_a_unit(site, capsys):
    assert main(["apply", "--deadline", "30", site]) == 1
    assert "30 has no unit: write 30s, 30m or 30h" in capsys.readouterr().err


@pytest.mark.parametrize("none", ["0", "0s", "00m"])
def test_no_time_is_not_taken_for_the_default(site, capsys, none):
    assert main(["apply", "--deadline", none, site]) == 1
    assert f"expected a time such as 90s, 30m or 2h, not '{none}'" in capsys.readouterr().err


def test_typing_yes_goes_on(site, world, types, capsys):
    types("yes")
    made = world(CREATE)
    assert main(["apply", site]) == 0
    assert made.allow == guard.Allow()
    assert "Apply this plan? Only yes continues: " in capsys.readouterr().err


@pytest.mark.parametrize("answer", ["y", "", "no", "YES"])
def test_anything_else_leaves_it_as_it_is(answer, site, world, types, capsys):
    types(answer)
    made = world(CREATE)
    assert main(["apply", site]) == 1
    assert made.allow is None
    assert "nothing was written" in capsys.readouterr().err


def test_the_end_of_a_namespace_is_typed_by_its_name(site, world, types, capsys):
    types("old", "yes")
    made = world(DELETE)
    assert main(["apply", site]) == 0
    assert made.allow.delete == {OLD}
    assert (
        "This will delete supervisor_namespace/old and objects in it that are not this site's: vm/other."
        in capsys.readouterr().err
    )


def test_yes_is_not_the_name(site, world, types):
    types("yes", "yes")
    made = world(DELETE)
    assert main(["destroy", site]) == 1
    assert made.allow is None


def test_a_reboot_is_typed_by_the_hosts_name(site, world, types, capsys):
    types("esx-01", "yes")
    made = world(REBOOT)
    assert main(["apply", site]) == 0
    assert made.allow.disrupt == {HOST}
    assert "This needs a reboot of gpu_host/esx-01: passthrough." in capsys.readouterr().err


def test_nothing_to_do_is_not_asked_about(site, world, types, capsys):
    types()
    world(Plan("poc", (Item(SPACE, Action.KEEP),)))
    assert main(["apply", site]) == 0
    assert "Only yes" not in capsys.readouterr().err


def test_a_plan_with_problems_is_not_asked_about_but_shown_once(site, world, types, capsys):
    types("yes")
    world(
        replace(
            CREATE,
            problems=(Problem("the policy is not there", str(SPACE)),),
            unreadable={"gpu_host": "no answer"},
        )
    )
    assert main(["apply", site]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("the policy is not there") == 1
    assert "gpu_host can't be read" in err


def test_a_confirmation_for_a_program_shows_the_plan_beside_the_document(site, world, types, capsys):
    types("yes")
    world(CREATE)
    assert main(["apply", "--output", "json", site]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["ending"] == "done"
    assert "+ create  supervisor_namespace/cnasg" in err


def test_destroy_allows_deletion_and_aims_at_nothing(site, world):
    made = world(replace(DELETE, items=(replace(DELETE.items[0], contents=()),)))
    assert main(["destroy", "--yes", site]) == 0
    assert made.how["destroy"] is True


def test_adopt_names_its_key(site, world):
    made = world(CREATE)
    assert main(["adopt", "--yes", site, str(SPACE)]) == 0
    assert made.how["adopt"] == frozenset({SPACE})


def test_a_saved_plan_is_applied_as_it_was_saved(site, world, tmp_path, capsys):
    made = world(CREATE)
    file = tmp_path / "plan.json"
    saved.save_plan(file, bfinfra.load(site), CREATE, destroy=True)
    assert main(["apply", "--yes", str(file)]) == 0
    assert made.how["saved"].items().keys() == {str(SPACE)}
    assert made.how["destroy"] is True
    assert made.how["site"].name == "poc"
    assert main(["apply", "--yes", str(file), site]) == 1
    assert "give a saved plan alone" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_starts_nothing_new_and_ends_with_its_code(number, code, site, world, capsys):
    made = world(CREATE, Ending.STOPPED)
    seen = []

    def interrupt(options):
        os.kill(os.getpid(), number)
        seen.append(options.stop.wait(60))

    made.meanwhile = interrupt
    before = signal.getsignal(number)
    assert main(["apply", "--yes", site]) == code
    assert seen == [True]
    assert "no new one starts" in capsys.readouterr().err
    assert signal.getsignal(number) is before


def test_the_second_signal_leaves_at_once():
    stop, done = Stop(), threading.Event()

    def writes():
        stop.begin_writing()
        os.kill(os.getpid(), signal.SIGINT)
        stop.flag.wait(60)
        os.kill(os.getpid(), signal.SIGTERM)
        done.wait(60)
        return 0

    assert conduct(writes, stop) == 143
    done.set()


def test_a_signal_before_the_first_write_writes_nothing(site, world, monkeypatch, capsys):
    made = world(CREATE)

    def struck(found, screen):
        os.kill(os.getpid(), signal.SIGINT)
        made.stop.flag.wait(60)

    monkeypatch.setattr(execute, "_announce", struck)
    assert main(["apply", "--yes", site]) == 130
    assert made.allow is None
    assert capsys.readouterr().err == "interrupted\n"


def test_a_signal_just_before_a_wait_is_not_missed(monkeypatch):
    """The handler runs once the wait ends: none may be without an end."""

    class Events(SimpleQueue):
        def get(self, block=True, timeout=None):
            assert timeout is not None
            return super().get(block, timeout)

    monkeypatch.setattr("bfinfra.cli.signals.SimpleQueue", Events)
    stop = Stop()
    stop.begin_writing()
    assert conduct(lambda: (os.kill(os.getpid(), signal.SIGINT), stop.flag.wait(60), 0)[-1], stop) == 130


def test_a_question_nobody_answers_is_left_by_a_signal(site, world, monkeypatch, capsys):
    made = world(CREATE)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setattr(ask, "TICK", 0.01)
        monkeypatch.setattr(
            ask.select,
            "select",
            lambda *given: (os.kill(os.getpid(), signal.SIGTERM), made.stop.flag.wait(60), ([], [], []))[-1],
        )
        assert main(["apply", site]) == 143
    os.close(ours)
    assert made.allow is None


def test_a_reader_that_goes_away_does_not_stop_an_apply(site, world, monkeypatch, capsys):
    made = world(replace(CREATE, items=(*CREATE.items, *REBOOT.items)))
    real = sys.stdout.write

    def gone(text):
        if "step 1 of 1" in text:
            raise BrokenPipeError
        return real(text)

    monkeypatch.setattr(sys.stdout, "write", gone)
    assert main(["apply", "--yes", "--allow-disruption", "all", site]) == 0
    assert made.allow is not None
    out, err = capsys.readouterr()
    assert "2 writes in 9 requests" in out
    assert err == "progress is no longer shown: BrokenPipeError\n"


@pytest.mark.parametrize(("ending", "code"), [(Ending.DONE, 0), (Ending.WAITING, 3)])
def test_an_unread_summary_leaves_the_exit_code_as_it_is(ending, code, site, world, monkeypatch):
    world(CREATE, ending)

    def gone(text):
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "write", gone)
    monkeypatch.setattr(sys.stdout, "fileno", lambda: os.open(os.devnull, os.O_WRONLY))
    assert main(["apply", "--yes", "--output", "json", site]) == code
