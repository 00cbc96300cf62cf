"""A drift report as text, Markdown, data by its published schema, and JUnit."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from render_samples import units

from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.errors import Problem, Warned
from bfinfra.model.refs import Key
from bfinfra.render import data, drift
from bfinfra.render.junit import junit
from bfinfra.render.style import Style

SCHEMA = json.loads((Path(__file__).parents[2] / "specs/drift.schema.json").read_text())
SERVER, SPACE, HOST, NEW = (
    Key("bitfusion_server", "bf-01"),
    Key("supervisor_namespace", "cnasg"),
    Key("gpu_host", "esx1"),
    Key("workload", "w"),
)
SEEN = 1_780_000_000.0
REPORT = Report(
    "poc",
    (
        Drifted(
            key=SERVER,
            cause=Cause.DRIFT,
            field="power",
            applied="on",
            now="off",
            wanted="on",
            by="root",
            at=SEEN - 60,
            since=SEEN,
        ),
        Drifted(key=SERVER, cause=Cause.DRIFT, field="cpus", applied=8, now=4, wanted=8, since=SEEN),
        Drifted(
            key=SPACE,
            cause=Cause.CONFLICT,
            field="limits.memory",
            applied=2**30,
            now=2**31,
            wanted=2**32,
            since=SEEN,
        ),
        Drifted(
            key=SPACE,
            cause=Cause.UNAPPLIED,
            field="limits.cpu",
            applied=1000,
            now=1000,
            wanted=2000,
            since=SEEN,
        ),
        Drifted(key=NEW, cause=Cause.MISSING, why="it was never applied, or somebody deleted it", since=SEEN),
        Drifted(
            key=HOST,
            cause=Cause.DRIFT,
            field="passthrough",
            now="off",
            wanted="on",
            since=SEEN,
            ignored="being replaced (until 2026-12-01)",
        ),
    ),
    3,
    existing=(str(SERVER), str(SPACE), str(HOST), "namespace/a|b"),
    new=frozenset({"workload/w  missing"}),
    ended=("gpu_host/esx2 passthrough drift",),
    at=SEEN,
)
BLIND = replace(
    REPORT,
    found=(),
    ended=(),
    problems=(Problem("no such policy", "site.yaml:3:1", "why", "next"),),
    unreadable={"tanzu_cluster/c": "no answer"},
    warnings=(Warned(Problem("a rule ended")),),
)


def test_each_resource_says_who_moved_and_by_whom_and_since_when():
    assert (
        drift.text(REPORT, Style(units=units))
        == """\
~ bitfusion_server/bf-01 drifted: the live state changed
    power: is off, should be on  (changed by root at 2026-05-28 20:25 UTC, since 2026-05-28 20:26 UTC)
    cpus: is 4, should be 8  (since 2026-05-28 20:26 UTC)

≠ supervisor_namespace/cnasg conflict: the live state and the file both changed
    limits.memory: is 2GiB, should be 4GiB, was applied as 1GiB  (since 2026-05-28 20:26 UTC)

+ supervisor_namespace/cnasg is not applied yet: the file changed
    limits.cpu: is 1GHz, should be 2GHz

? workload/w does not exist
    it was never applied, or somebody deleted it  (since 2026-05-28 20:26 UTC)

no longer: gpu_host/esx2 passthrough drift

poc: 1 drifted, 1 in conflict, 1 not there, 1 not applied, 1 ignored; 3 up to date."""
    )


def test_what_is_ignored_is_shown_with_its_reason_when_asked():
    assert (
        "~ gpu_host/esx1 drifted: the live state changed (ignored: being replaced (until 2026-12-01))"
        in drift.text(REPORT, Style(verbose=True))
    )


def test_only_what_is_new_or_over_is_news():
    assert drift.changes(REPORT).splitlines()[0] == "? workload/w does not exist"
    assert drift.changes(REPORT).splitlines()[-1] == "no longer: gpu_host/esx2 passthrough drift"
    assert "bf-01" not in drift.changes(REPORT)


def test_agreement_says_so():
    assert drift.text(replace(REPORT, found=(), ended=())) == "poc: no drift: 3 resources up to date."
    assert drift.text(replace(REPORT, found=REPORT.found[3:4], ended=())).endswith(
        "poc: no drift: 3 resources up to date, 1 not applied."
    )


def test_a_blind_check_is_never_called_free_of_drift():
    text = drift.text(BLIND)
    assert "tanzu_cluster/c can't be read: no answer" in text
    assert "site.yaml:3:1" in text
    assert text.endswith(
        "poc: 1 unreadable, 1 problem, 3 up to date. What could not be read or decided may have drifted "
        "as well."
    )


def test_a_ticket_has_a_row_a_finding():
    text = drift.markdown(REPORT, Style(units=units))
    assert text.startswith("### bfinfra drift: poc\n")
    assert (
        "| ~ drift | `bitfusion_server/bf-01` | `power` | is `off`, should be `on` | changed by root at "
        "2026\\-05"
    ) in text.replace("2026-05", "2026\\-05")
    assert "#### No longer" in text
    assert "`tanzu_cluster/c` can't be read: no answer" in drift.markdown(BLIND)


@pytest.mark.parametrize("report", [REPORT, BLIND, Report("poc", (), 0)])
def test_data_keeps_to_the_published_schema(report):
    found = json.loads(data.text(drift.data(report)))
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(found, SCHEMA)
    assert found["drifted"] == bool(report.alarming)


def test_the_schema_knows_every_cause_and_refuses_others():
    assert SCHEMA["definitions"]["finding"]["properties"]["cause"]["enum"] == [str(cause) for cause in Cause]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**drift.data(REPORT), "more": 1}, SCHEMA)


def test_a_line_a_finding_and_the_sum_last():
    lines = list(drift.lines(REPORT))
    assert [each["type"] for each in lines] == ["finding"] * 6 + ["drift"]
    assert [each["new"] for each in lines[:-1]] == [False] * 4 + [True, False]


def test_junit_fails_what_drifted_and_skips_what_may():
    suite = ET.fromstring(junit(REPORT))
    cases = {
        f"{case.get('classname')}/{case.get('name')}": [child.tag for child in case]
        for case in suite.iter("testcase")
    }
    assert cases == {
        str(SERVER): ["failure"],
        str(SPACE): ["failure"],
        str(HOST): ["skipped"],
        "namespace/a|b": [],
        str(NEW): ["failure"],
    }
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "3",
        "errors": "0",
        "skipped": "1",
    }
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert (
        failure.text
        == "power: is off, should be on (changed by root at 2026-05-28 20:25 UTC)\ncpus: is 4, should be 8"
    )


def test_junit_has_an_error_for_what_can_not_be_judged():
    suite = ET.fromstring(junit(BLIND))
    assert suite.get("errors") == "2"


def test_junit_is_xml_whatever_the_words_contain():
    found = replace(REPORT, found=(replace(REPORT.found[0], now="\x00]]><&\ud800\n\x1b[2J"),))
    assert ET.fromstring(junit(found)) is not None
