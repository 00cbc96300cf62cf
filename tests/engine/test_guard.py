"""What an apply may do without being allowed to, and what each refusal says to write."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bfinfra.engine.guard import Allow, check, objections
from bfinfra.model.errors import BfinfraError, Problem, Unsafe
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption, Step

A, B = Key("box", "a"), Key("box", "b")
ALL = Allow(every_delete=True, every_disruption=True)
HARSH = (Disruption.RESTART, Disruption.REBOOT, Disruption.POWER_CYCLE)
GOING = (Action.DELETE, Action.REPLACE)


@dataclass(frozen=True, kw_only=True)
class Paint(Step):
    """paint it"""


@dataclass(frozen=True, kw_only=True)
class Empty(Step):
    """empty the box"""

    destructive = True


@dataclass(frozen=True, kw_only=True)
class Rebuild(Step):
    """build it of steel"""

    disruption = Disruption.REPLACE
    why = "wood does not turn into steel"


class Harsh(Step):
    """A step that interrupts what runs."""

    why = "the box is shut meanwhile"


class Restart(Harsh):
    """restart it"""

    disruption = Disruption.RESTART


class Reboot(Harsh):
    """reboot it"""

    disruption = Disruption.REBOOT


class PowerCycle(Harsh):
    """switch it off and on"""

    disruption = Disruption.POWER_CYCLE


class Unexplained(Restart):
    """restart it"""

    why = ""


class AskedFor(Reboot):
    """reboot it, as the site asks"""

    preapproved = True


STEPS: dict[Disruption, Step] = {each.disruption: each() for each in (Restart, Reboot, PowerCycle)}


def item(action: Action, *steps: Step, key: Key = A, contents: tuple[str, ...] = ()) -> Item:
    return Item(key, action, steps, contents=contents)


def refused(allow: Allow, *items: Item) -> list[str]:
    """The refusals, as `check` raises them."""
    plan = Plan("toys", items)
    found = objections(plan, allow)
    if not found:
        check(plan, allow)
        return []
    with pytest.raises(Unsafe) as raised:
        check(plan, allow)
    assert list(raised.value.problems) == found
    return [str(each) for each in found]


def test_what_disturbs_nothing_needs_no_allowance() -> None:
    paint = Paint()
    assert refused(Allow(), item(Action.CREATE, paint), item(Action.UPDATE, paint), item(Action.KEEP)) == []


@pytest.mark.parametrize("action", GOING)
def test_a_resource_is_deleted_or_replaced_only_with_an_allowance(action: Action) -> None:
    going = item(action, Paint())
    assert refused(Allow(), going) == [
        f"the plan would {action} box/a; allow it with --allow-delete box/a, or --allow-delete all"
    ]
    assert refused(Allow(delete=frozenset({A})), going) == []
    assert refused(Allow(every_delete=True), going) == []


def test_a_replacement_says_what_can_not_be_changed_in_place() -> None:
    (told,) = refused(Allow(), item(Action.REPLACE, Rebuild(), Paint()))
    assert told.startswith("the plan would replace box/a; build it of steel; allow")


@pytest.mark.parametrize("action", GOING)
def test_contents_of_others_are_deleted_only_with_the_address_and_never_with_all(action: Action) -> None:
    full = item(action, Paint(), contents=("vm/theirs", "vm/hers"))
    told = [
        (
            "box/a contains objects that are not this site's: vm/theirs, vm/hers; "
            f"to {action} it would delete them too; move them, or allow it with --allow-delete box/a"
        )
    ]
    assert refused(Allow(), full) == refused(ALL, full) == told
    assert refused(Allow(every_delete=True, delete=frozenset({B})), full) == told
    assert refused(Allow(delete=frozenset({A})), full) == []


def test_contents_of_others_that_stay_need_no_allowance() -> None:
    assert refused(Allow(), item(Action.UPDATE, Paint(), contents=("vm/theirs",))) == []


def test_a_part_is_destroyed_only_with_an_allowance() -> None:
    partly = item(Action.UPDATE, Paint(), Empty())
    assert refused(Allow(), partly) == [
        (
            "the plan would destroy a part of box/a; empty the box; "
            "allow it with --allow-delete box/a, or --allow-delete all"
        )
    ]
    assert refused(Allow(delete=frozenset({A})), partly) == []
    assert refused(Allow(every_delete=True), partly) == []


@pytest.mark.parametrize("action", GOING)
def test_a_resource_that_goes_is_one_refusal_with_its_parts(action: Action) -> None:
    assert len(refused(Allow(), item(action, Empty()))) == 1


@pytest.mark.parametrize("how", HARSH)
@pytest.mark.parametrize("action", [Action.CREATE, Action.UPDATE])
def test_a_restart_a_reboot_and_a_power_cycle_need_an_allowance(how: Disruption, action: Action) -> None:
    harsh = item(action, Paint(), STEPS[how])
    assert refused(Allow(), harsh) == [
        (
            f"the plan needs a {how} of box/a; the box is shut meanwhile; "
            "allow it with --allow-disruption box/a, or --allow-disruption all"
        )
    ]
    assert refused(Allow(disrupt=frozenset({A})), harsh) == []
    assert refused(Allow(every_disruption=True), harsh) == []


def test_the_worst_disruption_is_named_and_the_same_reason_once() -> None:
    (told,) = refused(Allow(), item(Action.UPDATE, Unexplained(), Restart(), PowerCycle(), Reboot()))
    assert told.startswith("the plan needs a power-cycle of box/a; the box is shut meanwhile; allow")


def test_a_reboot_that_the_site_itself_asks_for_needs_no_further_allowance() -> None:
    assert refused(Allow(), item(Action.UPDATE, AskedFor())) == []
    assert len(refused(Allow(), item(Action.UPDATE, AskedFor(), Restart()))) == 1


def test_what_is_deleted_may_be_shut_down_for_it() -> None:
    assert refused(Allow(delete=frozenset({A})), item(Action.DELETE, Reboot())) == []


def test_a_replacement_that_needs_a_reboot_too_needs_both_allowances() -> None:
    both = item(Action.REPLACE, Reboot(), Rebuild())
    assert [each.split("--")[1] for each in refused(Allow(), both)] == [
        "allow-delete box/a, or ",
        "allow-disruption box/a, or ",
    ]
    assert len(refused(Allow(every_delete=True), both)) == 1
    assert len(refused(Allow(every_disruption=True), both)) == 1
    assert refused(ALL, both) == []


@pytest.mark.parametrize("step", [Reboot(), Empty()])
def test_an_allowance_for_one_thing_is_none_for_another(step: Step) -> None:
    needed = item(Action.UPDATE, step)
    delete, disrupt = Allow(delete=frozenset({A})), Allow(disrupt=frozenset({A}))
    assert [bool(refused(each, needed)) for each in (delete, disrupt)] in ([True, False], [False, True])
    assert refused(Allow(delete=frozenset({B}), disrupt=frozenset({B})), needed)


def test_an_allowance_for_one_address_is_none_for_another() -> None:
    told = refused(
        Allow(delete=frozenset({A}), disrupt=frozenset({A})),
        item(Action.DELETE, Paint()),
        item(Action.DELETE, Paint(), key=B),
        item(Action.UPDATE, Reboot()),
    )
    assert [each.split(";")[0] for each in told] == ["the plan would delete box/b"]


def test_all_that_is_not_allowed_is_said_in_one_go() -> None:
    told = refused(Allow(), item(Action.UPDATE, Reboot()), item(Action.DELETE, Paint(), key=B))
    assert [each.split(";")[0] for each in told] == [
        "the plan needs a reboot of box/a",
        "the plan would delete box/b",
    ]


def test_what_waits_for_a_file_does_nothing_yet_and_needs_nothing() -> None:
    assert refused(Allow(), Item(A, Action.UPDATE, (Reboot(), Empty()), held=Problem("no file"))) == []


def test_a_plan_with_problems_writes_nothing_whatever_is_allowed() -> None:
    wrong = Problem("box/b: no box is that large")
    with pytest.raises(BfinfraError) as raised:
        check(Plan("toys", (item(Action.CREATE, Paint()),), problems=(wrong,)), ALL)
    assert raised.value.problems == (wrong,)


def test_what_can_not_be_read_stops_the_apply() -> None:
    with pytest.raises(BfinfraError, match="box/b can't be read; no right"):
        check(Plan("toys", (item(Action.CREATE, Paint()),), unreadable={"box/b": "no right"}), ALL)


def test_problems_are_reported_with_what_can_not_be_read_which_is_named_once_for_each_cause() -> None:
    dead = "the server does not answer"
    plan = Plan(
        "toys",
        (item(Action.DELETE, Paint()),),
        problems=(Problem("no box is that large"),),
        unreadable={"box/b": dead, "lid/top": dead, "shelf": "no right to read shelves"},
    )
    with pytest.raises(BfinfraError) as raised:
        check(plan, ALL)
    assert [str(each) for each in raised.value.problems] == [
        "no box is that large",
        f"box/b, lid/top can't be read; {dead}; correct that and run again; nothing was written",
        "shelf can't be read; no right to read shelves; correct that and run again; nothing was written",
    ]
