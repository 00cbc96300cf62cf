from __future__ import annotations

from bfinfra.model.pauses import pause


def test_each_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    assert [pause(failures) for failures in range(1, 10)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert [pause(failures, 5, 30) for failures in range(1, 6)] == [5, 10, 20, 30, 30]


def test_what_fails_for_days_is_still_tried_again() -> None:
    assert pause(100_000) == 60
