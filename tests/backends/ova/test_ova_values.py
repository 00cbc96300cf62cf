"""Values of vApp properties, judged before vSphere does."""

from __future__ import annotations

import pytest

from bfinfra.backends.ova import Property, check


@pytest.mark.parametrize(
    ("kind", "qualifiers", "right", "wrong"),
    [
        ("boolean", "", "True", "yes"),
        ("uint16", "", "65535", "65536"),
        ("uint8", "", "0", "-1"),
        ("sint8", "", "-128", "128"),
        ("int", "", "-5", "5.5"),
        ("uint16", "MinValue(1500) MaxValue(9000)", "9000", "1499"),
        ("int(1..4)", "", "4", "5"),
        ("real32", "", "-1.5e3", "x"),
        ("ip", "", "172.24.210.80", "172.24.210"),
        ("ip:VM Network", "", "::1", "host"),
        ("string", "MinLen(8) MaxLen(10)", "12345678", "1234567"),
        ("string(2..3)", "", "abc", "abcd"),
        ("string", 'ValueMap{"a","b c"}', "b c", "c"),
        ('string["x","y"]', "", "y", "z"),
        ("password", "MinLen(8)", "longenough", "short"),
    ],
)
def test_a_value_is_judged_by_type_and_qualifiers(kind: str, qualifiers: str, right: str, wrong: str) -> None:
    prop = Property("k", kind, qualifiers=qualifiers)
    assert check(prop, right) == ""
    assert check(prop, wrong)


def test_nothing_is_right_unless_something_is_required() -> None:
    assert check(Property("k", "uint8"), "") == ""
    assert check(Property("k", "uint8", required=True), "") == "it can't be empty"


def test_a_value_is_never_repeated() -> None:
    assert "hunter2" not in check(Property("k", "password", qualifiers="MinLen(8)"), "hunter2")
