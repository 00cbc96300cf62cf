from __future__ import annotations

import datetime as dt
import itertools

import pytest

from bfinfra.model.errors import BfinfraError
from bfinfra.model.schedule import STEPS, Schedule


def field(text: str, least: int, most: int) -> set[int]:
    """One field of a crontab, by its own manual page."""
    range_, _, step = text.partition("/")
    low, high = (least, most) if range_ == "*" else (int(range_.split("-")[0]), int(range_.split("-")[-1]))
    return set(range(low, high + 1, int(step or 1)))


@pytest.mark.parametrize("every", STEPS)
@pytest.mark.parametrize("site", ["poc", "another", "x"])
def test_a_crontab_starts_it_at_equal_intervals(every, site):
    found = Schedule.every(every, site)
    minute, hour, *rest = found.cron.split()
    assert rest == ["*", "*", "*"]
    starts = [
        dt.datetime(2026, 1, day, h, m, tzinfo=dt.UTC)
        for day in (1, 2)
        for h in sorted(field(hour, 0, 23))
        for m in sorted(field(minute, 0, 59))
    ]
    assert {(b - a).total_seconds() for a, b in itertools.pairwise(starts)} == {found.seconds}


def test_sites_do_not_all_start_at_once():
    assert len({Schedule.every("1h", f"site-{n}").offset for n in range(100)}) > 30


@pytest.mark.parametrize("every", ["7m", "0m", "1w", "", "90m", "5"])
def test_what_divides_neither_an_hour_nor_a_day_is_refused_with_what_does(every):
    with pytest.raises(BfinfraError, match="no such interval") as raised:
        Schedule.every(every, "poc")
    assert "15m" in raised.value.problems[0].next
    assert "start at the same times each day" in raised.value.problems[0].why


@pytest.mark.parametrize(
    ("every", "seconds", "cron", "calendar"),
    [
        ("15m", 900, "{0}-59/15 * * * *", "*-*-* *:{0:02}/15:00 UTC"),
        ("1h", 3600, "{0} * * * *", "*-*-* *:{0:02}:00 UTC"),
        ("2h", 7200, "{0} */2 * * *", "*-*-* 00/2:{0:02}:00 UTC"),
        ("24h", 86400, "{0} 0 * * *", "*-*-* 00:{0:02}:00 UTC"),
        ("1d", 86400, "{0} 0 * * *", "*-*-* 00:{0:02}:00 UTC"),
    ],
)
def test_a_timer_and_a_crontab_start_it_at_the_same_times(
    every: str, seconds: int, cron: str, calendar: str
) -> None:
    offsets = set()
    for number in range(30):
        found = Schedule.every(every, f"site-{number}")
        assert found == Schedule.every(every, f"site-{number}"), "each time the same"
        assert (found.seconds, found.cron, found.calendar) == (
            seconds,
            cron.format(found.offset),
            calendar.format(found.offset),
        )
        offsets.add(found.offset)
    assert max(offsets) < min(seconds // 60, 60)
    assert len(offsets) > 9


def test_a_site_keeps_its_offset_from_release_to_release() -> None:
    assert [Schedule.every(each, "singapore-poc").offset for each in ("15m", "1h", "1d")] == [4, 19, 19]
