"""Values, sizes, times."""

from __future__ import annotations

import pytest

from bfinfra.model.compare import Change, Unknown
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.render.safe import safe, width
from bfinfra.render.values import clock, duration, shown, utc


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "", "(none)"),
        (True, "", "true"),
        ("yes please", "", "yes please"),
        ("", "", '""'),
        ("1.20", "", '"1.20"'),
        ("true", "", '"true"'),
        (128 * 2**30, "bytes", "128GiB"),
        (1501, "bytes", "1501B"),
        (16 * 10**9, "bytes", "16GB"),
        ("15625000KiB", "bytes", "16GB"),
        ("2TiB", "bytes", "2TiB"),
        ("much", "bytes", "much"),
        (48000, "MHz", "48GHz"),
        (2100, "MHz", "2100MHz"),
        (600, "seconds", "10m"),
        (90, "seconds", "90s"),
        (0, "seconds", "0s"),
        ([1, "a"], "", "[1, a]"),
        ({"a": None}, "", "{a: (none)}"),
        ("a\nb", "", '"a\\nb"'),
        (Unknown(Key("vm", "x"), "ip"), "", "(known after vm/x: ip)"),
        (Secret("env", "PASSWORD"), "", "{env: PASSWORD}"),
        (Change("gpus", 1, 2), "", "{field: gpus, now: 1, wanted: 2}"),
        ({3, 1}, "", "[1, 3]"),
    ],
)
def test_a_value_reads_as_a_site_would_write_it(value, unit, text):
    assert shown(value, unit) == text


def test_a_long_value_is_cut():
    assert len(shown("x" * 9999)) == 161


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0s"),
        (9.9, "9.9s"),
        (9.96, "10s"),
        (250, "4m 10s"),
        (3780, "1h 3m"),
        (3600, "1h"),
        (59.7, "1m"),
        (-1, "0.0s"),
    ],
)
def test_durations_are_short(seconds, text):
    assert duration(seconds) == text


def test_times_are_utc():
    assert utc(1770091500.25) == "2026-02-03T04:05:00.250Z"
    assert clock(1770091500.25) == "04:05:00"


def test_everything_hidden_becomes_visible():
    assert safe("a\x00\x1b\x9b\u200b\u2028\udcff\tb") == "a\\x00\\x1b\\x9b\\u200b\\u2028\\udcff b"
    assert safe("x" * 10, 4) == "xxxx…"
    assert width("名a") == 3
