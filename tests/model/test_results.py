"""The worst of several results counts for the whole, and progress is told while it is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from bfinfra.model.errors import Place
from bfinfra.model.events import Ended, Ending
from bfinfra.model.finding import Blocked, Finding, Health, bad, good, warning
from bfinfra.model.health import HealthCheck, HealthReport, ServerReport, Status
from bfinfra.model.outcome import Outcome
from bfinfra.model.plan import Action, Plan
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.site import Site, VCenterSettings
from bfinfra.model.sources import Sources
from bfinfra.model.surveying import SurveyProgress


@pytest.mark.parametrize(
    ("endings", "whole"),
    [
        ([], Ending.DONE),
        ([Ending.DONE, Ending.UNCHANGED], Ending.DONE),
        ([Ending.WAITING, Ending.DONE], Ending.WAITING),
        ([Ending.WAITING, Ending.STOPPED], Ending.STOPPED),
        ([Ending.STOPPED, Ending.BLOCKED], Ending.FAILED),
        ([Ending.DONE, Ending.FAILED, Ending.STOPPED], Ending.FAILED),
    ],
)
def test_a_run_ends_as_the_worst_of_its_items(endings: list[Ending], whole: Ending) -> None:
    ended = {
        (key := Key("box", str(number))): Ended(at=0, key=key, action=Action.CREATE, ending=each, seconds=1)
        for number, each in enumerate(endings)
    }
    assert Outcome(Plan("s", ()), ended, 1).ending is whole


def of(*statuses: Status, **more: object) -> ServerReport:
    return ServerReport("s", tuple(HealthCheck(each, "text") for each in statuses), **more)  # type: ignore[arg-type]  # what a test gives


@pytest.mark.parametrize(
    ("report", "worst"),
    [
        (of(), Status.UNCLEAR),
        (of(Status.SKIPPED), Status.SKIPPED),
        (of(Status.PASS, Status.MARGINAL, Status.SKIPPED), Status.MARGINAL),
        (of(Status.PASS, totals={Status.FATAL: 1}), Status.FATAL),
        (of(Status.PASS, totals={Status.FATAL: 0}), Status.PASS),
        (of(Status.FATAL, objections=("2 were counted",)), Status.UNCLEAR),
    ],
)
def test_a_health_report_is_as_good_as_its_worst_check(report: ServerReport, worst: Status) -> None:
    assert report.worst is worst
    assert HealthReport((report, of(Status.SKIPPED))).worst is worst
    assert HealthReport(()).worst is Status.UNCLEAR


def test_the_doctor_finds_things_good_bad_or_doubtful() -> None:
    key = Key("host", "a")
    assert good(key, "it answers") == Finding("host/a", Health.GOOD, "it answers", "", "", "")
    for find, health in ((warning, Health.WARNING), (bad, Health.BAD)):
        assert find(key, "slow", "old", "renew it") == Finding("host/a", health, "slow", "old", "renew it")
        assert find(key, "slow") == Finding("host/a", health, "slow", "", "", "")


def test_a_check_that_cannot_run_says_about_what_and_why() -> None:
    blocked = Blocked("vc.test:443", "it does not answer")
    assert (blocked.about, blocked.why, str(blocked)) == ("vc.test:443", *2 * ("it does not answer",))


def test_what_waits_is_told_from_what_a_person_must_mend() -> None:
    assert waiting("it boots") == Readiness(Ready.WAITING, "it boots")
    assert failed("it is empty") == Readiness(Ready.FAILED, "it is empty")


def test_a_survey_tells_what_it_reads_and_how_much_is_left() -> None:
    progress = SurveyProgress()
    assert progress.waiting() == {}
    progress.asks(2)
    progress.asks(3)
    with progress.asking("host"), progress.asking("box"):
        assert (progress.total, progress.read, progress.reading()) == (5, 0, ("host", "box"))
    with pytest.raises(KeyError), progress.asking("lid"):
        raise KeyError
    assert (progress.total, progress.read, progress.reading()) == (5, 3, ())


def test_what_is_not_written_has_the_place_of_what_contains_it() -> None:
    key, other = Key("host", "a"), Key("host", "b")
    spot = lambda line: Place(Path("s.yaml"), line, 1)  # noqa: E731 - a short name
    places = {(key, ""): spot(1), (key, "limits"): spot(2), (key, "limits.cpu.max"): spot(3)}
    site = Site("s", None, {}, places=places)
    fields = ("limits.cpu.max", "limits.cpu.min", "limits", "limit", "")
    assert [site.place(key, field) for field in fields] == [spot(3), spot(2), spot(2), spot(1), spot(1)]
    assert site.place(key) == spot(1)
    assert site.place(other, "limits") is None


@pytest.mark.parametrize("server", ["https://vc.test", "me@vc.test", "vc.test/sdk", "vc test"])
def test_the_server_of_a_site_is_a_host_and_no_url(server: str) -> None:
    with pytest.raises(ValueError, match="write host or host:port, without a scheme, a user or a path"):
        VCenterSettings(server=server)
    assert VCenterSettings(server="vc.test:8443").server == "vc.test:8443"


def test_the_variables_of_a_site_are_those_that_it_was_read_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOVC_USERNAME", "mine")
    given = {"sources": Sources(env={"GOVC_USERNAME": "theirs"})}
    for context, user in ((given, "theirs"), ({}, "mine"), (None, "mine")):
        found = VCenterSettings.model_validate({"server": "vc.test"}, context=context)
        assert found.env["GOVC_USERNAME"] == user
