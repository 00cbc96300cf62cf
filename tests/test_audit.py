"""script/audit says what pip and pip-audit found, and doesn't call it an audit where no service answered."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "script" / "audited.py"
LOCK = "requirements.lock"


@pytest.fixture(scope="module")
def judge():
    spec = importlib.util.spec_from_file_location("audited", SCRIPT)
    assert spec
    assert spec.loader
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return module.judge


@pytest.fixture
def reports(tmp_path):
    def write(*, pin=None, known=None):
        found = {
            "metadata": {"name": "yaml", "version": "6"},
            "download_info": {"archive_info": {"hashes": {"sha256": "ab"}}},
        }
        (tmp_path / f"{LOCK}.pip.json").write_text(json.dumps({"install": [{**found, **(pin or {})}]}))
        (tmp_path / "pypi.json").write_text(json.dumps({"dependencies": known}) if known else "")
        return tmp_path

    return write


def test_where_no_service_answers_it_says_that_nothing_was_audited(judge, reports):
    said, faults = judge(reports(known=[{"name": "yaml", "skip_reason": "not found"}]))
    assert faults == []
    assert "NOT AUDITED" in said[-1]
    assert judge(reports())[0] == said


def test_what_is_known_to_be_well_is_no_fault(judge, reports):
    said, faults = judge(reports(known=[{"name": "yaml", "version": "6", "vulns": []}]))
    assert (faults, said) == (
        [],
        [f"{LOCK}: pip was asked for 1 files", "1 releases were looked up in advisories"],
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"pin": {"is_yanked": True}}, "was withdrawn by its authors"),
        ({"pin": {"download_info": {}}}, "has no digest"),
        (
            {
                "known": [
                    {"name": "yaml", "version": "6", "vulns": [{"id": "PYSEC-1", "fix_versions": ["7"]}]}
                ]
            },
            "PYSEC-1, mended in 7",
        ),
        (
            {"known": [{"name": "yaml", "version": "6", "vulns": [{"id": "PYSEC-1"}]}]},
            "PYSEC-1, mended in no release",
        ),
    ],
)
def test_a_fault_is_named(judge, reports, more, words):
    _, (fault,) = judge(reports(**more))
    assert fault.startswith("yaml 6 ")
    assert words in fault
