"""Fault rules strike the calls that they name, as often as they say."""

from __future__ import annotations

import pytest

from bfinfra.sandbox.faults import Answered, BadRule, Faults, Reset, old_names


def outcomes(
    faults: Faults, count: int, api: str = "rest", method: str = "GET /a", *objects: str
) -> list[str]:
    found = []
    for _ in range(count):
        try:
            with faults.during(api, method, *objects) as effect:
                found.append(effect.soap or "ok")
        except Answered as instead:
            found.append(str(instead.status))
        except Reset:
            found.append("reset")
    return found


def test_the_nth_call_fails_and_only_that_one() -> None:
    faults = Faults()
    faults.add({"api": "rest", "method": "GET *", "nth": 2, "do": {"status": 503, "retry_after": 3}})
    assert outcomes(faults, 4) == ["ok", "503", "ok", "ok"]


def test_the_old_name_of_a_field_is_understood_and_its_new_one_named() -> None:
    faults, rule = Faults(), {"door": "rest", "do": {"status": 503}}
    faults.add(rule)
    assert outcomes(faults, 1) == ["503"]
    assert old_names([rule, {"api": "rest"}]) == ["door is called api now"]


def test_times_makes_calls_in_a_row_fail() -> None:
    faults = Faults()
    faults.add({"nth": 2, "times": 2, "do": "reset_before"})
    assert outcomes(faults, 5) == ["ok", "reset", "reset", "ok", "ok"]


def test_a_rule_without_a_number_strikes_always_and_clear_ends_it() -> None:
    faults = Faults()
    faults.add({"do": {"soap": "NoPermission"}})
    assert outcomes(faults, 2) == ["NoPermission"] * 2
    faults.clear()
    assert outcomes(faults, 1) == ["ok"]


def test_probability_one_strikes_always_and_zero_never() -> None:
    always, never = Faults(), Faults()
    always.add({"probability": 1, "do": {"status": 500}})
    never.add({"probability": 0, "do": {"status": 500}})
    assert outcomes(always, 2) == ["500", "500"]
    assert outcomes(never, 2) == ["ok", "ok"]


def test_api_method_and_object_must_all_match() -> None:
    faults = Faults()
    faults.add({"api": "vcenter", "method": "Import*", "object": "bf-*", "do": {"status": 500}})
    assert outcomes(faults, 1, "vcenter", "ImportVApp", "resgroup-9", "bf-01") == ["500"]
    assert outcomes(faults, 1, "rest", "ImportVApp", "bf-01") == ["ok"]
    assert outcomes(faults, 1, "vcenter", "PowerOnVM_Task", "bf-01") == ["ok"]
    assert outcomes(faults, 1, "vcenter", "ImportVApp", "other") == ["ok"]


def test_a_reset_after_comes_when_the_call_was_refused_as_well() -> None:
    faults = Faults()
    faults.add({"do": "reset_after"})
    with pytest.raises(Reset), faults.during("vcenter", "AddCustomFieldDef"):
        raise ValueError("the name is taken")


def test_a_reset_after_comes_when_the_call_was_done() -> None:
    faults, done = Faults(), []
    faults.add({"do": "reset_after"})
    with pytest.raises(Reset), faults.during("rest", "GET /a"):
        done.append(True)
    assert done == [True]


@pytest.mark.parametrize(
    "bad",
    [
        {},
        [],
        "x",
        {"do": {}},
        {"do": "explode"},
        {"do": {"status": 500, "colour": 1}},
        {"do": "reset_after", "api": "cellar"},
        {"do": "reset_after", "nth": 0},
        {"do": "reset_after", "probability": 2},
        {"do": {"kill": 1, "when": "never"}},
        {"do": "reset_after", "times": -1},
    ],
)
def test_a_bad_rule_is_refused(bad: object) -> None:
    with pytest.raises(BadRule):
        Faults().add(bad if bad != [] else [[]])
