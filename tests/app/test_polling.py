"""What no server reports is read once in the interval, spread over it."""

from __future__ import annotations

from bfinfra.app.polling import Again, Polling

KINDS = ("a", "b", "c", "d")


def test_each_kind_is_due_once_in_the_interval_and_never_all_at_once() -> None:
    polling = Polling(KINDS, KINDS, 60, now=1000)
    due = {second: polling.due(1000 + second) for second in range(1, 121)}
    assert {second: set(kinds) for second, kinds in due.items() if kinds} == {
        15: {"a"},
        30: {"b"},
        45: {"c"},
        60: {"d"},
        75: {"a"},
        90: {"b"},
        105: {"c"},
        120: {"d"},
    }


def test_after_a_long_pause_they_are_read_once_and_then_spread_again() -> None:
    polling = Polling(KINDS, KINDS, 60, now=0)
    assert polling.due(600) == set(KINDS)
    assert polling.due(601) == set()
    assert polling.due(615) == {"a"}
    assert polling.due(630) == {"b"}


def test_a_kind_that_is_hastened_is_due_now_and_then_as_before() -> None:
    polling = Polling(KINDS, KINDS, 60, now=0)
    polling.hasten({"c", "unknown"})
    assert polling.due(1) == {"c"}
    assert polling.due(45) == {"a", "b", "c"}


def test_a_kind_of_which_the_site_has_nothing_is_read_once_in_ten_intervals() -> None:
    polling = Polling(KINDS, {"a", "c"}, 60, now=0)
    due = {second: polling.due(second) for second in range(1, 1201)}
    times = {kind: [second for second, kinds in due.items() if kind in kinds] for kind in KINDS}
    assert times["a"] == list(range(15, 1201, 60))
    assert times["c"] == list(range(45, 1201, 60))
    assert times["b"] == [300, 900]
    assert times["d"] == [600, 1200]


def test_what_could_not_be_read_is_read_again_ever_more_seldom_until_it_can_be_read() -> None:
    again = Again()
    unread = frozenset({"a"})
    assert [second for second in range(200) if again.due(unread, second)] == [1, 3, 7, 15, 31, 63, 123, 183]
    assert again.due(frozenset(), 200) == set()
    assert [second for second in range(201, 206) if again.due(unread, second)] == [202, 204]
