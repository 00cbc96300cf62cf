"""What a Job leaves behind, and which plans wait."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bfinfra.model.errors import Problem
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption, Step
from bfinfra.operator.approval import Approval, allowed, digest
from bfinfra.operator.result import LARGEST, Moved, Outcome, Planned, Result


@dataclass(frozen=True)
class Change(Step):
    name: str = "x"

    def title(self) -> str:
        return f"change {self.name}"


@dataclass(frozen=True)
class Reboot(Change):
    disruption = Disruption.REBOOT
    why = "a passthrough wants it"


def plan(*items: Item, **more: object) -> Plan:
    return Plan("example", items, **more)  # type: ignore[arg-type]  # a test's own keywords


UPDATE = Item(Key("gpu_host", "one"), Action.UPDATE, (Change(),))
HARSH = Item(Key("gpu_host", "one"), Action.UPDATE, (Reboot(),))
DELETE = Item(Key("namespace", "one"), Action.DELETE, (Change(),))
TAKES = Item(Key("namespace", "one"), Action.DELETE, (Change(),), contents=("Pod a/b",))


def test_a_result_is_read_as_it_was_written() -> None:
    found = Result(
        Outcome.APPROVAL,
        "why",
        3,
        1,
        (Moved("a/b", "c", "drift", "root"),),
        0,
        "abc",
        2,
        (Planned("a/b", "delete", "none"),),
        "def",
        4,
        (1.5, 2.0),
        {"vc:443": 1},
        {"t": 2},
    )
    assert Result.read(found.text()) == found


def test_however_much_was_found_it_fits_and_says_how_much_there_was() -> None:
    found = Result(
        Outcome.APPROVAL,
        "w" * 9000,
        drifted=500,
        moved=tuple(Moved(f"a/{n}", "f" * 80, "drift") for n in range(500)),
        planned=400,
        changes=tuple(Planned(f"a/{n}", "update") for n in range(400)),
        certificates={f"server-{n}:443": n for n in range(300)},
    )
    text = found.text()
    again = Result.read(text)
    assert again is not None
    assert len(text.encode()) <= LARGEST
    assert (again.drifted, again.planned) == (500, 400)
    assert 0 < len(again.moved) < 500


def test_what_is_not_ascii_fits_too() -> None:
    assert len(Result(Outcome.FAILED, "ü" * 9000).text().encode()) <= LARGEST


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '{"v":2}', '{"v":1,"outcome":"Bad"}', "Killed", '{"v":1', "9" * 5000]
)
def test_what_no_job_of_ours_wrote_is_no_result(text: str) -> None:
    assert Result.read(text) is None


@pytest.mark.parametrize(
    ("item", "rule", "waits"),
    [
        (UPDATE, Approval.DISRUPTIVE, False),
        (UPDATE, Approval.ALWAYS, True),
        (UPDATE, Approval.NEVER, False),
        (HARSH, Approval.DISRUPTIVE, True),
        (HARSH, Approval.NEVER, False),
        (DELETE, Approval.DISRUPTIVE, True),
        (DELETE, Approval.NEVER, False),
        (TAKES, Approval.DISRUPTIVE, True),
        (TAKES, Approval.NEVER, True),
    ],
)
def test_which_plans_wait(item: Item, rule: Approval, waits: bool) -> None:
    assert (allowed(plan(item), rule) is None) == waits
    assert allowed(plan(item), rule, digest(plan(item))) is not None


def test_what_would_undo_an_exception_waits() -> None:
    assert allowed(plan(UPDATE), Approval.DISRUPTIVE, expected=True) is None


def test_an_approved_plan_may_do_what_is_in_it_and_no_more() -> None:
    given = allowed(plan(TAKES, HARSH), Approval.ALWAYS, digest(plan(TAKES, HARSH)))
    assert given is not None
    assert (given.delete, given.disrupt, given.every_delete, given.every_disruption) == (
        {TAKES.key},
        {TAKES.key, HARSH.key},
        False,
        False,
    )


def test_another_plan_has_another_digest_and_what_goes_along_counts() -> None:
    assert len({digest(plan(each)) for each in (UPDATE, HARSH, DELETE, TAKES)}) == 4
    assert digest(plan(UPDATE)) == digest(plan(UPDATE))


def test_a_plan_that_can_not_be_carried_out_waits_for_nobody() -> None:
    assert allowed(plan(DELETE, problems=(Problem("no"),)), Approval.ALWAYS) is not None
