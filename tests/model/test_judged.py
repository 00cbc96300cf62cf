"""What a site expects of drift, and what counts as an alarm."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bfinfra.model.drift import ALARMING, Cause, Drifted, DriftSettings, Ignore, Notify, Report, judged
from bfinfra.model.errors import Problem
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.render import notebook

DAY = dt.date(2026, 11, 29)
A = Key("host", "a")


def rule(address: str = "host/a", **more: Any) -> Ignore:
    return Ignore.model_validate({"address": address, "reason": "moved", "until": DAY, **more})


@pytest.mark.parametrize(
    ("address", "field", "covers"),
    [
        ("host/a", "limits", True),
        ("host/a", "limits.cpu", True),
        ("host/a", "limits.c*", True),
        ("host/a", "*", True),
        ("host/*", "limits", True),
        ("*", "limits", True),
        ("host/b", "limits", False),
        ("HOST/a", "limits", False),
        ("host/a", "limit", False),
        ("host/a", "limits.cpu.max", False),
        ("host/a", "Limits*", False),
    ],
)
def test_a_rule_is_for_a_field_and_all_below_it(address: str, field: str, covers: bool) -> None:
    assert rule(address, field=field).covers(Drifted(key=A, cause=Cause.DRIFT, field="limits.cpu")) is covers


def test_a_rule_without_a_field_is_for_all_of_a_resource() -> None:
    assert all(
        rule().covers(Drifted(key=A, cause=Cause.VANISHED, field=field)) for field in ("", "limits.cpu")
    )


def test_a_rule_holds_up_to_its_last_day_and_is_missed_afterwards() -> None:
    found = (Drifted(key=A, cause=Cause.DRIFT, field="cpu"), Drifted(key=A, cause=Cause.DRIFT, field="disk"))
    settings = DriftSettings(
        ignore=(
            rule(field="cpu", until=DAY - dt.timedelta(1), reason="over"),
            rule("host/nobody", until=DAY - dt.timedelta(1)),
            rule(field="cpu", until=DAY),
            rule(field="c*", until=DAY, reason="the second one"),
        )
    )
    drift, (warned,) = judged(found, settings, DAY)
    assert [each.ignored for each in drift] == ["moved (until 2026-11-29)", ""]
    assert str(warned.problem) == (
        "drift of host/a cpu is no longer ignored; the rule ended on 2026-11-28: over; correct the drift, or "
        "write a later until:"
    )


@pytest.mark.parametrize("url", ["https://hooks.example.com/drift", "https://h:8443/?a=b"])
def test_a_webhook_is_an_address_of_https(url: str) -> None:
    assert Notify(url=url, secret=Secret("env", "K")).url == url


@pytest.mark.parametrize(
    "url", ["http://h/", "https:///drift", "https://me@h/", "https://:pw@h/", "ftp://h", "h/drift", ""]
)
def test_what_is_no_webhook_is_refused_with_one_that_is(url: str) -> None:
    with pytest.raises(
        ValidationError, match=r"expected an address such as https://hooks\..*, without a user"
    ):
        TypeAdapter(Notify).validate_python({"url": url, "secret": {"env": "K"}})


def test_a_check_is_alarmed_by_what_nobody_expects() -> None:
    every = [Drifted(key=A, cause=cause, field=cause) for cause in Cause]
    assert Report("s", (*every, Drifted(key=A, cause=Cause.DRIFT, ignored="moved")), 0).alarming == tuple(
        each for each in every if each.cause in ALARMING
    )
    assert {*Cause} - {*ALARMING} == {Cause.UNAPPLIED, Cause.UNFINISHED}
    assert every[0].identity == "host/a drift drift"


def test_a_check_is_blind_where_something_was_not_read_or_not_decided() -> None:
    assert not Report("s", (), 0).blind
    assert Report("s", (), 0, problems=(Problem("x"),)).blind
    assert Report("s", (), 0, unreadable={"host/a": "no answer"}).blind


def test_a_notebook_shows_a_report_as_a_page() -> None:
    report = Report("s", (), 0, existing=("host/a",))
    assert report._repr_html_() == notebook.report(report)
    with pytest.warns(DeprecationWarning, match="Report.standing is called existing now") as told:
        assert report.standing == ("host/a",)
    assert told[0].filename == __file__, "who uses it is told where"
